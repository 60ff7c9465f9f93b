//! The figures in a text, in a form that does not depend on the language.

/// The words and characters after a number that multiply the number.
const MULTIPLIERS: [(&str, f64); 8] = [
    ("万", 1e4),
    ("亿", 1e8),
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
];

/// Returns the figures of a text, sorted.
///
/// `1,000`, `1 000` and `1 k` are equal, and `10 M`, `10 million` and `1000 万` are equal. A superscript is a part of its
/// figure, such as in `2³²`. The text outside the figures and spelled numbers such as "two" are ignored.
pub fn figures(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (digits, after) = number(&rest[start..]);
        let (multiplier, after) = multiplier(after);
        let end = after.find(|c| !is_superscript(c)).unwrap_or(after.len());
        let value = digits.parse::<f64>().unwrap_or_default() * multiplier;
        // Six decimals remove the rounding errors of the multiplication.
        let value = format!("{value:.6}");
        let value = value.trim_end_matches('0').trim_end_matches('.');
        found.push(format!("{value}{}", &after[..end]));
        rest = &after[end..];
    }
    found.sort();
    found
}

/// Splits the text into a number without separators and the text after the number. The text must start with a digit.
fn number(text: &str) -> (String, &str) {
    let mut digits = String::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        digits.push_str(&rest[..end]);
        rest = &rest[end..];
        let mut chars = rest.chars();
        let separator = chars.next().unwrap_or_default();
        let after = chars.as_str();
        let group = after.chars().take_while(char::is_ascii_digit).count();
        let is_group = group == 3 && matches!(separator, ',' | ' ' | '\u{a0}' | '\u{202f}');
        let is_point = group > 0 && separator == '.' && !digits.contains('.');
        if is_point {
            digits.push('.');
        } else if !is_group || digits.contains('.') {
            return (digits, rest);
        }
        rest = after;
    }
}

/// Returns the factor that follows a number, and the text after the factor. Without such a factor, returns 1 and the
/// whole text.
fn multiplier(text: &str) -> (f64, &str) {
    let word = text.trim_start_matches(' ');
    for (name, factor) in MULTIPLIERS {
        let Some(after) = word.strip_prefix(name) else { continue };
        // In `16 MiB` and `5 kHz`, the letter is the start of a unit.
        let is_unit = name.is_ascii() && after.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !is_unit {
            return (factor, after);
        }
    }
    (1.0, text)
}

fn is_superscript(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹' | '⁻')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_equal_in_both_languages() {
        for (english, chinese) in [
            ("10 M items", "1000 万个元素"),
            ("8.3 M of 20 M", "2000 万中的 830 万"),
            ("65,536 and 10 000", "65 536 与 1 万"),
            ("100 k, 5 billion", "50 亿，10 万"),
            ("at 1 %, twice", "1 % 时为两倍"),
            ("10⁻⁴ up to 60 M", "6000 万以内 10⁻⁴"),
        ] {
            assert_eq!(figures(english), figures(chinese), "{english}");
        }
    }

    #[test]
    fn other_figures_differ() {
        for (one, other) in [("10 M", "10"), ("2³²", "2³¹"), ("16 MiB", "16 M"), ("1.5", "1, 5")]
        {
            assert_ne!(figures(one), figures(other), "{one}");
        }
    }

    #[test]
    fn a_list_of_numbers_keeps_its_numbers() {
        assert_eq!(figures("1, 2, 30"), ["1", "2", "30"]);
        assert_eq!(figures("7.0.15"), ["15", "7"]);
        assert_eq!(figures("2.4 / 13 and 118–151"), ["118", "13", "151", "2.4"]);
    }
}
