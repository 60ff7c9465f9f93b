//! Parses inline commands. An inline command is a line of words that a user types into a terminal.
//!
//! Spaces, tabs and carriage returns separate words. A word may contain quoted parts. Inside double quotes, `\n`, `\r`,
//! `\t`, `\b`, `\a` and `\xff` are escape sequences, and for any other escaped character, the parser removes only the
//! backslash. Inside single quotes, only `\'` is an escape sequence. White space must follow a closing quote. Vertical
//! tabs and form feeds are white space before a word and after a closing quote. Inside a word, vertical tabs and form
//! feeds are part of the word. Redis follows the same rules as this parser, with one exception: Redis stops at a zero
//! byte, but this parser accepts a zero byte in a word.

use crate::request::WordSpan;

/// Tests whether the line contains quotes. Words with quotes need decoding.
pub(crate) fn has_quotes(line: &[u8]) -> bool {
    line.iter().any(|&byte| matches!(byte, b'"' | b'\''))
}

/// Appends the spans of the words in a line without quotes. The line must start at the first byte
/// of the input.
pub(crate) fn push_spans(line: &[u8], words: &mut Vec<WordSpan>) {
    let mut at = 0;
    while let Some(skipped) = line[at..].iter().position(|&byte| !is_space(byte)) {
        let start = at + skipped;
        let len = line[start..].iter().position(|&byte| ends_word(byte));
        at = len.map_or(line.len(), |len| start + len);
        words.push(WordSpan { start, end: at });
    }
}

/// Returns the words of a line. Returns `None` if the quotes in the line are invalid.
pub(crate) fn unquote(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        while let [byte, behind @ ..] = rest
            && is_space(*byte)
        {
            rest = behind;
        }
        if rest.is_empty() {
            return Some(words);
        }
        words.push(word(&mut rest)?);
    }
}

/// Removes and decodes the first word of a line.
fn word(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut word = Vec::new();
    while let [byte, behind @ ..] = *rest {
        if ends_word(*byte) {
            break;
        }
        *rest = behind;
        match byte {
            b'"' | b'\'' => quoted(*byte, rest, &mut word)?,
            _ => {
                word.push(*byte);
                continue;
            }
        }
        return rest.first().is_none_or(|&byte| is_space(byte)).then_some(word);
    }
    Some(word)
}

/// Decodes the bytes before the closing quote into `word`, and removes the bytes and the quote from
/// the line. Returns `None` without a closing quote.
fn quoted(quote: u8, rest: &mut &[u8], word: &mut Vec<u8>) -> Option<()> {
    let is_double = quote == b'"';
    loop {
        let (byte, behind) = match *rest {
            [byte, behind @ ..] if *byte == quote => {
                *rest = behind;
                return Some(());
            }
            [b'\\', b'x', high, low, behind @ ..]
                if is_double && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (nibble(*high) << 4 | nibble(*low), behind)
            }
            [b'\\', escaped, behind @ ..] if is_double => (unescape(*escaped), behind),
            [b'\\', b'\'', behind @ ..] => (b'\'', behind),
            [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        word.push(byte);
        *rest = behind;
    }
}

/// Returns the byte for an escaped character in double quotes.
fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// Returns the value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    char::from(digit).to_digit(16).expect("a hexadecimal digit") as u8
}

/// Tests whether a byte is white space before a word or after a closing quote.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Tests whether a byte ends a word outside quotes.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_split_and_unquoted_as_in_redis() {
        let cases: &[(&[u8], &[&[u8]])] = &[
            (b"", &[]),
            (b" \t ", &[]),
            (b"PING", &[b"PING"]),
            (b"  GET  key\t", &[b"GET", b"key"]),
            (b"a\rb", &[b"a", b"b"]),
            (b"a\x0bb \x0bc", &[b"a\x0bb", b"c"]),
            (b"a\0b", &[b"a\0b"]),
            (b"set \"a b\" 'c d'", &[b"set", b"a b", b"c d"]),
            (b"\"\" ''", &[b"", b""]),
            (b"ab\"c d\"", &[b"abc d"]),
            (b"\"\\n\\r\\t\\b\\a\\q\\\\\\\"\"", &[b"\n\r\t\x08\x07q\\\""]),
            (b"\"\\xff\\x0A\\xg1\\x\"", &[b"\xff\nxg1x"]),
            (b"'\\n\\'\\x41'", &[b"\\n'\\x41"]),
            (b"a\\n", &[b"a\\n"]),
            (b"\"a\"\x0bb", &[b"a", b"b"]),
        ];
        for (line, words) in cases {
            assert_eq!(unquote(line).unwrap(), *words, "{:?}", line.escape_ascii().to_string());
        }
    }

    #[test]
    fn unbalanced_quotes_are_rejected() {
        for line in
            ["\"", "'", "a \"b", "a 'b", "\"a\"b", "'a'b", "\"a\"\"b\"", "\"\\\"", "'\\'", "\"a\\"]
        {
            assert_eq!(unquote(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_line_without_quotes_has_the_same_words_both_ways(
            line in prop::collection::vec(prop::sample::select(&b"ab \t\r\x0b\x0c\\x\0\xff"[..]), 0..40)
        ) {
            let mut spans = Vec::new();
            push_spans(&line, &mut spans);
            let words: Vec<_> = spans.iter().map(|span| span.of(&line).to_vec()).collect();
            prop_assert!(!has_quotes(&line));
            prop_assert_eq!(Some(words), unquote(&line));
        }

        #[test]
        fn any_words_can_be_quoted(words in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
            let quoted = words.iter().map(|word| {
                let escaped: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
                format!("\"{escaped}\"")
            });
            let line = quoted.collect::<Vec<_>>().join(" ");
            prop_assert_eq!(unquote(line.as_bytes()), Some(words));
        }
    }
}
