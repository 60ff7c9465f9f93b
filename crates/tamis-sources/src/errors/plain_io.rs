//! Formats errors of the operating system for users.

use std::fmt;
use std::io;

/// Formats an error of the operating system without its number: `No such file or directory`.
pub struct PlainIo<'e>(pub &'e io::Error);

impl fmt::Display for PlainIo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        f.write_str(text.split(" (os error").next().unwrap_or(&text))
    }
}
