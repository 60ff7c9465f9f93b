//! The bearer token of a request: `Authorization: Bearer TOKEN`.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use subtle::ConstantTimeEq as _;

/// A token that clients send as `Authorization: Bearer`. Messages never show the token.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(HeaderValue);

/// The error for a token that is empty or contains a character that is invalid in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyToken;

impl fmt::Display for EmptyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token must have at least one character, and no line break")
    }
}

impl std::error::Error for EmptyToken {}

impl BearerToken {
    /// Creates a token.
    ///
    /// # Errors
    ///
    /// [`EmptyToken`] if the text is empty or contains a character that is invalid in a header.
    pub fn new(token: &str) -> Result<Self, EmptyToken> {
        if token.trim().is_empty() {
            return Err(EmptyToken);
        }
        let mut value =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| EmptyToken)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// Tests whether a request contains the token. The comparison takes constant time: it depends only on the length of
    /// the token in the request.
    #[must_use]
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        headers
            .get(AUTHORIZATION)
            .is_some_and(|given| given.as_bytes().ct_eq(self.0.as_bytes()).into())
    }

    /// Adds the token to the headers of a request.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        headers.insert(AUTHORIZATION, self.0.clone());
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_matches_and_none_is_shown() {
        let token = BearerToken::new("a secret").unwrap();
        let mut headers = HeaderMap::new();
        assert!(!token.is_in(&headers));
        token.add_to(&mut headers);
        assert!(token.is_in(&headers));
        assert!(!BearerToken::new("a secreT").unwrap().is_in(&headers));
        assert!(!format!("{token:?}{headers:?}").contains("secret"));
        for text in ["", " ", "a\nb"] {
            assert_eq!(BearerToken::new(text), Err(EmptyToken), "{text:?}");
        }
    }
}
