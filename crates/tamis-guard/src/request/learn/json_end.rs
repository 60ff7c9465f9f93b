//! Finds the end of a JSON list or object in a stream of bytes.

/// Finds the end of the first JSON list or object. The scanner reads each byte once and counts brackets, so it does not
/// validate the JSON.
#[derive(Debug, Default)]
pub(super) struct JsonEnd {
    /// The number of open lists and objects.
    depth: u32,
    is_in_string: bool,
    is_escaped: bool,
}

/// The result of scanning a part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonPart {
    /// The scanned bytes do not contain the end of the JSON.
    More,
    /// The closing bracket is the byte before this index.
    EndsAt(usize),
    /// The text does not start with a list or an object.
    NotJson,
}

impl JsonEnd {
    /// Scans the next bytes of the stream.
    pub(super) fn read(&mut self, bytes: &[u8]) -> JsonPart {
        for (at, &byte) in bytes.iter().enumerate() {
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' | b'[' => self.depth += 1,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ if self.depth == 0 => return JsonPart::NotJson,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return JsonPart::EndsAt(at + 1);
                    }
                }
                b'"' => self.is_in_string = true,
                _ => {}
            }
        }
        JsonPart::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_in_parts_of_each_size() {
        for (text, end) in [
            (r#"{}"#, 2),
            (r#" {"a":"}\"]","b":[{"c":1}]}  "#, 27),
            (r#"[[["\\"]]]]"#, 10),
            ("{\"七\":\"\\u007d}\"} tail", 17),
        ] {
            for size in 1..=text.len() {
                let mut json = JsonEnd::default();
                let found =
                    text.as_bytes().chunks(size).enumerate().find_map(|(i, part)| {
                        match json.read(part) {
                            JsonPart::EndsAt(at) => Some(size * i + at),
                            JsonPart::More => None,
                            JsonPart::NotJson => panic!("{text}"),
                        }
                    });
                assert_eq!(found, Some(end), "{text} {size}");
            }
        }
    }

    #[test]
    fn other_texts_have_no_end() {
        for text in ["7", "\"{}\"", "}", "]", "null", "<html>{}", "\u{feff}{}"] {
            assert_eq!(JsonEnd::default().read(text.as_bytes()), JsonPart::NotJson, "{text}");
        }
        for text in ["", " \n", "{", "{\"}", "[[]", r#"{"a\"}"#] {
            assert_eq!(JsonEnd::default().read(text.as_bytes()), JsonPart::More, "{text}");
        }
    }
}
