//! The response that a client gets if the guard refuses its request.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{HeaderMap, Response, StatusCode};
use http_body_util::Full;
use tamis_sources::RefuseReason;

use crate::request::cors::{Cors, allow_request};

/// The response to a request for an id that does not exist.
///
/// # Examples
///
/// ```
/// use tamis_guard::{Refusal, RefuseReason};
///
/// let refusal = Refusal::json(r#"{"code":404,"message":"产品不存在!"}"#);
/// assert_eq!(refusal.response(RefuseReason::Absent).status(), 404);
/// // The set is not complete, so the client may send the request again later.
/// assert_eq!(refusal.response(RefuseReason::Unsure).status(), 503);
/// ```
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The status of the response.
    pub status: StatusCode,
    /// The body of the response.
    pub body: Bytes,
    /// Additional headers, which replace the headers of the guard.
    pub headers: HeaderMap,
    /// The value of `Retry-After` in seconds. The guard sends the header `Retry-After` while the set of ids is not
    /// complete.
    pub retry_after: u32,
    /// The pages of other origins that may read the response. With `None`, only pages of the same origin may read the
    /// response.
    pub cors: Option<Cors>,
}

impl Default for Refusal {
    fn default() -> Self {
        Self::json(r#"{"code":404,"message":"not found"}"#)
    }
}

impl Refusal {
    /// Returns a refusal with the status 404 and a JSON body.
    #[must_use]
    pub fn json(body: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        // An id may be created at any time, so caches must not store the refusal.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self {
            status: StatusCode::NOT_FOUND,
            body: Bytes::copy_from_slice(body.as_bytes()),
            headers,
            retry_after: 1,
            cors: None,
        }
    }

    /// Returns the response to a request that is refused for a reason.
    #[must_use]
    pub fn response(&self, reason: RefuseReason) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        // The capacity includes the two headers below. A clone of the headers would have to grow.
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        headers.extend(self.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        *response.headers_mut() = headers;
        *response.status_mut() = self.status;
        if reason == RefuseReason::Unsure {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        response.headers_mut().insert(REASON_HEADER, HeaderValue::from_static(reason.name()));
        response
    }

    /// Returns the response to a preflight whose request is refused for a reason.
    pub(crate) fn preflight_response(
        &self,
        reason: RefuseReason,
        preflight: &HeaderMap,
    ) -> Response<Full<Bytes>> {
        let mut refusal = self.response(reason);
        self.allow_origin(preflight, &mut refusal);
        if !refusal.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            return refusal;
        }
        let mut allowed = Response::new(Full::default());
        *allowed.status_mut() = StatusCode::NO_CONTENT;
        *allowed.headers_mut() = std::mem::take(refusal.headers_mut());
        allowed.headers_mut().remove(CONTENT_TYPE);
        allow_request(preflight, allowed.headers_mut());
        allowed
    }

    /// Adds the CORS headers to a response of the guard.
    pub(crate) fn allow_origin<B>(&self, request: &HeaderMap, answer: &mut Response<B>) {
        if let Some(cors) = &self.cors {
            cors.write(request, answer.headers_mut());
        }
    }
}

/// The header that contains the reason of a refusal.
pub(crate) const REASON_HEADER: HeaderName = HeaderName::from_static("x-tamis-guard");
