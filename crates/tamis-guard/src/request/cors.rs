//! Handles cross-origin requests of browsers (CORS).
//!
//! Before some requests, a browser sends a preflight, which requests permission for a page to send the request. The
//! preflight contains the path and the query of the request, so the guard can decide about ids in the path and the
//! query. If preflights of absent ids reached the upstream service, an attacker could bypass the guard with preflights.
//! But if the guard refused the preflight, the browser would not send the request. After a refused preflight, the page
//! would see a network error instead of the 404. Therefore the guard itself responds to preflights of absent ids if the
//! page may read its refusals. After its response to the preflight, the guard refuses the actual request.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, Method};

/// The pages of other origins that may read a refusal.
///
/// The upstream service responds to preflights of existing ids, and adds the CORS headers to its own responses. A
/// refusal of the guard needs CORS headers too. Without CORS headers, a page sees a network error instead of the 404.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// The allowed origins, such as `https://shop.example.com`. An empty list allows all origins.
    pub origins: Vec<HeaderValue>,
    /// True if pages may send cookies. Browsers accept cookies only together with a list of origins.
    pub has_credentials: bool,
}

impl Cors {
    /// Adds the CORS headers to a response. `request` contains the headers of the request.
    pub(crate) fn write(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        let allowed = if self.origins.is_empty() {
            Some(HeaderValue::from_static("*"))
        } else {
            // The response depends on the origin, so a cache must store one response per origin.
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

/// Allows a page to send the request that follows a preflight, if `answer` allows the page to read the refusal.
pub(crate) fn allow_request(preflight: &HeaderMap, answer: &mut HeaderMap) {
    for (asked, allowed) in [
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ] {
        if let Some(value) = preflight.get(asked) {
            answer.insert(allowed, value.clone());
        }
    }
    // The browser must not cache the permission of a preflight, so that requests reach the upstream service as soon as
    // the id exists.
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("0"));
}

/// Returns the method of the request that follows a preflight. Returns `None` if the request `parts` is not a
/// preflight. A preflight does not contain the headers, the cookies or the body of the request that follows it.
pub(crate) fn method_after_preflight(parts: &Parts) -> Option<Method> {
    if parts.method != Method::OPTIONS || !parts.headers.contains_key(ORIGIN) {
        return None;
    }
    let method = parts.headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    // A route never contains an invalid method, so any other method can replace an invalid method.
    Some(Method::from_bytes(method.as_bytes()).unwrap_or(Method::OPTIONS))
}
