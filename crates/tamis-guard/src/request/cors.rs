//! Cross-origin requests of browsers.
//!
//! Before some requests, a browser asks in a preflight whether a page may send the request. The preflight has the path
//! and the query of the request, so the guard knows ids there: a preflight of an absent id must not reach the program,
//! or it would be a way around the guard. But a browser does not send a request whose preflight is refused, and the page
//! sees a network error instead of the 404. So the guard answers such a preflight itself, for the pages that may read its
//! refusals, and refuses the request that follows.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method};

/// Which pages of other origins may read a refusal.
///
/// The program behind the guard answers preflights of ids that exist, and writes the headers of its own answers. A
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

/// Allows a page to send the request of a preflight, if `answer` allows it to read the refusal.
pub(crate) fn allow_request(preflight: &HeaderMap, answer: &mut HeaderMap) {
    for (asked, allowed) in [
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ] {
        if let Some(value) = preflight.get(asked) {
            answer.insert(allowed, value.clone());
        }
    }
    // The program must be asked as soon as the id exists.
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("0"));
}

/// Returns the method of the request that a browser will send after this one, if this is a preflight. It has none of
/// the headers, the cookies and the body of that request.
pub(crate) fn method_after_preflight(parts: &Parts) -> Option<Method> {
    if parts.method != Method::OPTIONS || !parts.headers.contains_key(ORIGIN) {
        return None;
    }
    let method = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    // No route names a method that is not one.
    Some(Method::from_bytes(method.as_bytes()).unwrap_or(Method::OPTIONS))
}
