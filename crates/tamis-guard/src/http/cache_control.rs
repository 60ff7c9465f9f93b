//! The directives of HTTP about caches: whether an answer 404 may be kept, and whether a kept one
//! may answer a request.

use http::HeaderMap;
use http::header::{CACHE_CONTROL, PRAGMA};

/// What the headers of a request or of an answer allow a cache to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheControl {
    /// A kept answer may be used again without a question to the service.
    pub(crate) may_reuse: bool,
    /// The answer may be kept.
    pub(crate) may_store: bool,
}

impl CacheControl {
    /// What a message without directives allows.
    pub(crate) const DEFAULT: Self = Self { may_reuse: true, may_store: true };

    /// Reads the headers (RFC 9111, section 5.2). An age of 0 is the same as `no-cache`.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut allowed = Self::DEFAULT;
        let values = headers.get_all(CACHE_CONTROL).iter();
        for directive in values.flat_map(|value| value.as_bytes().split(|&byte| byte == b',')) {
            let mut parts = directive.splitn(2, |&byte| byte == b'=').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            let is_age = is("max-age") || is("s-maxage");
            if is("no-store") {
                allowed = Self { may_reuse: false, may_store: false };
            } else if is("no-cache") || is_age && parts.next().is_some_and(is_zero) {
                allowed.may_reuse = false;
            }
        }
        // HTTP/1.0 knows only this header. Its only directive is `no-cache`.
        if headers
            .get(PRAGMA)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"no-cache"))
        {
            allowed.may_reuse = false;
        }
        allowed
    }
}

fn is_zero(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"\"").and_then(|it| it.strip_suffix(b"\""));
    let digits = digits.unwrap_or(number);
    !digits.is_empty() && digits.iter().all(|&digit| digit == b'0')
}
