//! Escapes texts that come from other programs.

use std::fmt;
use std::fmt::Write as _;

/// Formats a text with escaped control characters. The text may come from a server.
pub struct Escaped<'t>(pub &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            if char.is_control() {
                write!(f, "{}", char.escape_default())?;
            } else {
                f.write_char(char)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_control_characters() {
        let text = "relation \"产品\"\n\u{1b}[2J\u{9b}2J does not exist";
        let escaped = r#"relation "产品"\n\u{1b}[2J\u{9b}2J does not exist"#;
        assert_eq!(Escaped(text).to_string(), escaped);
    }
}
