//! Cross-origin requests of browsers: a preflight passes, and a refusal may be read by a page.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method};

/// Which pages of other origins may read a refusal.
///
/// The program behind the guard answers preflights and writes the headers of its own answers. A
/// refusal needs the same headers: without them, a page sees a network error instead of the 404.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// The origins, such as `https://shop.example.com`. Empty for all.
    pub origins: Vec<HeaderValue>,
    /// Whether pages may send cookies. Browsers accept this only with a list of origins.
    pub has_credentials: bool,
}

impl Cors {
    /// Adds the headers of an answer to a request with the headers `request`.
    pub(crate) fn write(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        let allowed = if self.origins.is_empty() {
            Some(HeaderValue::from_static("*"))
        } else {
            // The answer depends on the origin, so that a cache must keep one for each.
            answer.append(VARY, HeaderValue::from_static("origin"));
            request.get(ORIGIN).filter(|origin| self.origins.contains(origin)).cloned()
        };
        let Some(allowed) = allowed else { return };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        let exposed = HeaderValue::from_static("retry-after, x-tamis-guard");
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        if self.has_credentials {
            answer.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
    }
}

/// Tests whether a request is the question of a browser whether a page may send another request. It
/// has none of the headers, the cookies and the body of that request, so that it may have no id.
pub(crate) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(ORIGIN)
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
