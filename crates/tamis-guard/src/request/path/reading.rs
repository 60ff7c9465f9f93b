//! The interpretations of a path.
//!
//! Programs interpret `;v=1`, `%2F` and `..` in a path differently. A [`Reading`] describes one interpretation.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use smallvec::SmallVec;

/// An interpretation of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// True if a value ends at its first semicolon, as in servlets.
    pub(crate) cuts_parameters: bool,
    /// True if `%2F`, `%5C` and a backslash separate segments, as in servers that decode a path before routing.
    pub(crate) decodes_slashes: bool,
    /// True if `..` is an ordinary segment, as in servers that do not resolve `..`.
    pub(crate) keeps_dots: bool,
}

impl Reading {
    /// Returns this interpretation with values that end at their first semicolon.
    pub(crate) fn without_parameters(self) -> Self {
        Self { cuts_parameters: true, ..self }
    }

    /// Returns the interpretations, except the default interpretation, in which a route may match a path.
    pub(crate) fn others(path: &str) -> SmallVec<[Self; 3]> {
        let mut readings = SmallVec::new();
        if is_plain(path) {
            return readings;
        }
        let with_slashes = with_decoded_slashes(path);
        let has_slashes = *with_slashes != *path;
        let has_dots = count_dots(&with_slashes) > 0;
        for (decodes_slashes, keeps_dots) in [(true, false), (false, true), (true, true)] {
            if decodes_slashes <= has_slashes && keeps_dots <= has_dots {
                readings.push(Self { decodes_slashes, keeps_dots, ..Self::default() });
            }
        }
        readings
    }
}

/// The parts of a path from which the interpretations differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ambiguities {
    /// The number of segments `..`, also between encoded slashes.
    dots: usize,
    /// The number of encoded slashes and backslashes.
    slashes: usize,
}

impl Ambiguities {
    /// Counts the ambiguities of a path.
    pub(crate) fn of_path(path: &str) -> Self {
        let is_slash = |bytes: &&[u8]| bytes[0] == b'\\' || is_encoded_slash(bytes);
        let slashes = (0..path.len()).map(|at| &path.as_bytes()[at..path.len().min(at + 3)]);
        Self {
            dots: count_dots(&with_decoded_slashes(path)),
            slashes: slashes.filter(is_slash).count(),
        }
    }

    /// Adds the ambiguities of a decoded value.
    pub(crate) fn add(&mut self, value: &[u8]) {
        let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
        self.dots += value.split(is_slash).filter(|part| *part == b"..").count();
        self.slashes += value.iter().filter(|byte| is_slash(byte)).count();
    }
}

/// Tests whether a path contains no characters that programs interpret differently.
pub(crate) fn is_plain(path: &str) -> bool {
    !path.bytes().any(|byte| matches!(byte, b'%' | b';' | b'.' | b'\\'))
}

/// Tests whether all programs find the same segments in a path. A path with several interpretations has a semicolon, a
/// backslash, an empty segment, a segment `.` or `..`, or an encoding of one of these characters. An encoded letter or
/// digit also has several interpretations, because some programs compare a path before decoding. A slash at the end is
/// no empty segment.
pub(crate) fn has_one_reading(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains([';', '\\'])
        && !path.contains("//")
        && path.split('/').all(|part| !matches!(part, "." | ".."))
        && path.split('%').skip(1).all(|rest| encoded_byte(rest).is_some_and(needs_encoding))
}

/// Returns the byte that the two digits at the start of a text encode.
fn encoded_byte(text: &str) -> Option<u8> {
    let digits = text.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok()
}

/// Tests whether a client may have a reason to encode a byte of a segment (RFC 3986, section 2.3), and the byte has the
/// same meaning in all programs.
fn needs_encoding(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric()
        && !matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b'\\' | b';')
}

/// Returns the percent-decoded bytes of a segment.
pub(crate) fn decoded(part: &str) -> Cow<'_, [u8]> {
    percent_decode(part.as_bytes()).into()
}

/// Returns a segment without its matrix parameters, such as `;v=1`.
pub(crate) fn without_parameters(part: &str) -> &str {
    part.split(';').next().unwrap_or_default()
}

/// Counts the segments `..` of a path, also in encoded form and with matrix parameters.
fn count_dots(path: &str) -> usize {
    path.split('/').filter(|part| &*decoded(without_parameters(part)) == b"..").count()
}

/// Replaces each encoded slash, each encoded backslash and each backslash of a path by a slash.
pub(crate) fn with_decoded_slashes(path: &str) -> Cow<'_, str> {
    let has_encoded = |path: &str| path.as_bytes().windows(3).any(is_encoded_slash);
    if !path.contains('\\') && !has_encoded(path) {
        return Cow::Borrowed(path);
    }
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find(['%', '\\']) {
        let (before, from) = rest.split_at(at);
        decoded.push_str(before);
        let length = match from.as_bytes() {
            [b'\\', ..] => 1,
            bytes if bytes.get(..3).is_some_and(is_encoded_slash) => 3,
            _ => 0,
        };
        decoded.push(if length > 0 { '/' } else { '%' });
        rest = &from[length.max(1)..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Tests whether the bytes are an encoded slash or backslash.
fn is_encoded_slash(bytes: &[u8]) -> bool {
    bytes.eq_ignore_ascii_case(b"%2f") || bytes.eq_ignore_ascii_case(b"%5c")
}

/// Returns the segments of a path without empty segments and dot segments.
pub(crate) fn meaningful_segments(path: &str, keeps_dots: bool) -> Vec<&str> {
    let mut segments = Vec::new();
    for part in path.split('/') {
        match &*decoded(without_parameters(part)) {
            b"" | b"." => {}
            b".." if !keeps_dots => _ = segments.pop(),
            _ => segments.push(part),
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_several_interpretations_is_found() {
        for path in ["/", "/p", "/p/", "/p/search", "/p/a.b", "/p/...", "/%E4%BA%A7", "/a%20b%3A"] {
            assert!(has_one_reading(path), "{path}");
        }
        for path in [
            "",
            "p",
            "//",
            "/p//",
            "/p//q",
            "/p/.",
            "/./p",
            "/p/../q",
            "/p;x",
            "/p/;/q",
            "/p\\q",
            "/p%2Fq",
            "/p%5cq",
            "/p%3bx",
            "/%2e%2E/p",
            "/%73earch",
            "/a%7E",
            "/p%",
            "/p%2",
            "/p%zz",
            "/p%+1",
            "/p%é",
        ] {
            assert!(!has_one_reading(path), "{path}");
        }
    }

    #[test]
    fn a_value_and_its_segment_have_the_same_ambiguities() {
        for (path, value) in [
            ("/p/7", &b"7"[..]),
            ("/p/a%2Fb", b"a/b"),
            ("/p/a%2f..%5Cb", b"a/..\\b"),
            ("/p/a\\b", b"a\\b"),
            ("/p/%255c", b"%5c"),
        ] {
            let mut of_value = Ambiguities::default();
            of_value.add(value);
            assert_eq!(of_value, Ambiguities::of_path(path), "{path}");
        }
        assert_ne!(Ambiguities::of_path("/p/../a"), Ambiguities::default());
        // A `%` and two digits within a character of several bytes.
        assert_eq!(Ambiguities::of_path("/%2é%"), Ambiguities::default());
    }
}
