//! The request log: one event for each request, including the verdict of the guard.

use std::net::SocketAddr;
use std::time::Instant;

use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use tamis_sources::Verdict;

use crate::http::proxy::request_id::REQUEST_ID;
use crate::request::verdict_slot::VerdictSlot;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The maximum length of a client-supplied text in the log, in bytes.
const MAX_TEXT: usize = 256;

/// The log entry of a request whose response is not complete. Dropping the `LoggedRequest` writes the event, so that
/// the log also contains requests of clients that disconnect.
#[derive(Debug)]
pub(super) struct LoggedRequest {
    start: Instant,
    remote: SocketAddr,
    method: Method,
    path: String,
    request_id: Option<String>,
    trace_id: Option<String>,
    verdict: VerdictSlot,
    status: Option<StatusCode>,
}

impl LoggedRequest {
    /// Starts the log entry of a request. The guard writes its verdict to an extension of the request.
    pub(super) fn begin(parts: &mut Parts, remote: SocketAddr) -> Self {
        let verdict = VerdictSlot::default();
        parts.extensions.insert(verdict.clone());
        // The log omits the query, which may contain secrets.
        let path = shortened(parts.uri.path());
        let request_id = parts.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        Self {
            start: Instant::now(),
            remote,
            method: parts.method.clone(),
            path,
            request_id: request_id.map(shortened),
            trace_id: trace_id(&parts.headers),
            verdict,
            status: None,
        }
    }

    /// Records the status of the response.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        let decided = self.verdict.get();
        let (verdict, reason) = match decided.map(|decided| decided.verdict) {
            None => (None, None),
            Some(Verdict::Pass(reason)) => (Some("pass"), Some(reason.name())),
            Some(Verdict::Refuse(reason)) => (Some("refuse"), Some(reason.name())),
        };
        tracing::info!(
            remote = %self.remote,
            method = self.method.as_str(),
            path = self.path,
            status = self.status.map(|status| status.as_u16()),
            millis = self.start.elapsed().as_secs_f64() * 1e3,
            route = decided.map(|decided| &*decided.route),
            verdict,
            reason,
            request_id = self.request_id.as_deref(),
            trace_id = self.trace_id.as_deref(),
            "request",
        );
    }
}

/// Returns the trace id of a W3C `traceparent` header: `VERSION-TRACE-PARENT-FLAGS`.
fn trace_id(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(TRACEPARENT).map(HeaderValue::as_bytes)?;
    let id = value.split(|&byte| byte == b'-').nth(1)?;
    let is_id = id.len() == 32 && id.iter().all(u8::is_ascii_hexdigit);
    is_id.then(|| String::from_utf8_lossy(id).into_owned())
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_trace_id_is_logged() {
        let trace_of = |value: &'static str| {
            let headers = HeaderMap::from_iter([(TRACEPARENT, HeaderValue::from_static(value))]);
            trace_id(&headers)
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let whole = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_of(whole).as_deref(), Some(id));
        for wrong in ["", "00", "00-4bf9-00f0-01", "00-4bf92f3577b34da6a3ce929d0e0e473x-0-01"] {
            assert_eq!(trace_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(shortened("/a"), "/a");
        assert_eq!(shortened(&"七".repeat(100)).len(), 255);
    }
}
