//! The ETag of a response.

use std::fmt;

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue};

/// A strong ETag without its quotes. Equal tags guarantee equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// Creates a tag. Returns `None` if the text is not a valid tag.
    #[must_use]
    pub fn new(tag: impl Into<String>) -> Option<Self> {
        let tag = tag.into();
        let is_valid = !tag.is_empty() && tag.bytes().all(|it| it.is_ascii_graphic() && it != b'"');
        is_valid.then_some(Self(tag))
    }

    /// Returns the strong tag of a response. Returns `None` for a weak tag, because a weak tag does not guarantee equal
    /// bytes.
    #[must_use]
    pub fn of_answer(headers: &HeaderMap) -> Option<Self> {
        let tag = headers.get(ETAG)?.to_str().ok()?;
        Self::new(tag.strip_prefix('"')?.strip_suffix('"')?)
    }

    /// Tests whether `If-None-Match` of a request contains the tag. If the result is true, the server should respond
    /// with 304.
    #[must_use]
    pub fn is_known(&self, headers: &HeaderMap) -> bool {
        let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
        let mut tags = tags.flat_map(|tags| tags.split(',')).map(str::trim);
        // RFC 9110 requires a weak comparison for `If-None-Match`.
        let is_same = |tag: &str| {
            let tag = tag.strip_prefix("W/").unwrap_or(tag);
            let tag = tag.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            tag == Some(&*self.0)
        };
        tags.any(|tag| tag == "*" || is_same(tag))
    }

    /// Returns the tag as a value for the headers `ETag` and `If-None-Match`.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "a tag has visible characters only")]
    pub fn to_header(&self) -> HeaderValue {
        HeaderValue::from_str(&format!("\"{}\"", self.0)).expect("a tag has visible characters")
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_knows_a_tag_in_each_form_of_the_header() {
        let tag = EntityTag::new("ab-1").unwrap();
        let known = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static(text));
            tag.is_known(&headers)
        };
        for text in ["\"ab-1\"", "*", "W/\"ab-1\"", "\"x\", \"ab-1\"", "\"x\",\"ab-1\" "] {
            assert!(known(text), "{text}");
        }
        for text in ["ab-1", "\"ab\"", "", "\"ab-1", "\"ab-12\""] {
            assert!(!known(text), "{text}");
        }
        assert!(!tag.is_known(&HeaderMap::new()));
        assert_eq!(tag.to_header(), "\"ab-1\"");
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, tag.to_header());
        assert_eq!(EntityTag::of_answer(&headers), Some(tag));
        headers.insert(ETAG, HeaderValue::from_static("W/\"ab-1\""));
        assert_eq!(EntityTag::of_answer(&headers), None);
        assert_eq!(EntityTag::new("a\"b"), None);
    }
}
