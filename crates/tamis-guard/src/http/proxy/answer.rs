//! The responses that the proxy creates itself.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;

/// An error for which the proxy creates the response itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    /// The message for the client. The message reveals nothing about the network behind the proxy.
    pub(super) message: &'static str,
}

impl Failure {
    pub(super) const fn new(status: StatusCode, message: &'static str) -> Self {
        Self { status, message }
    }

    /// Returns the response. The JSON body has the same form as a refusal of the guard.
    pub(super) fn response(self) -> Response<Full<Bytes>> {
        // The messages contain no character that JSON must escape.
        let body = format!(r#"{{"code":{},"message":"{}"}}"#, self.status.as_u16(), self.message);
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        headers.insert(CONTENT_TYPE, json);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
