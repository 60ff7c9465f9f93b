//! Parses the cache directives of HTTP. The directives decide whether the guard may store a 404, and whether the guard
//! may reuse a stored 404.

use http::HeaderMap;
use http::header::{CACHE_CONTROL, PRAGMA};

/// The cache permissions that the headers of a request or a response grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheControl {
    /// True if a cache may reuse a stored response without revalidation.
    pub(crate) may_reuse: bool,
    /// True if a cache may store the response.
    pub(crate) may_store: bool,
}

impl CacheControl {
    /// The permissions of a message without cache directives.
    pub(crate) const DEFAULT: Self = Self { may_reuse: true, may_store: true };

    /// Parses the headers (RFC 9111, section 5.2). A `max-age` or `s-maxage` of 0 counts as `no-cache`.
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
        // HTTP/1.0 supports only the header `Pragma`. The only directive of `Pragma` is `no-cache`.
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
