//! Responses and their headers. The headers restrict what a browser may do to what the page needs.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value as Json, json};

use crate::http::assets::Asset;

/// The response to a request.
pub(super) type Answer = Response<Full<Bytes>>;

/// Why a request gets no data: the status and what to do.
pub(super) type HttpError = (StatusCode, String);

/// Returns the refusal for a request that the user has no permission for.
pub(super) fn not_allowed(command: &str) -> HttpError {
    (
        StatusCode::FORBIDDEN,
        format!("this user may not run '{command}', which returns the same data"),
    )
}

/// No resource of another host, no inline resource, and no frame around the page.
const POLICY: &str = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

const HEADERS: [(header::HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

fn answer(status: StatusCode, kind: &'static str, cache: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    answer
}

pub(super) fn text(status: StatusCode, text: String) -> Answer {
    answer(status, "text/plain; charset=utf-8", "no-store", text.into())
}

pub(super) fn metrics(text: String) -> Answer {
    answer(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", "no-store", text.into())
}

pub(super) fn json(status: StatusCode, value: &Json) -> Answer {
    answer(status, "application/json", "no-store", value.to_string().into())
}

pub(super) fn error(status: StatusCode, text: &str) -> Answer {
    json(status, &json!({ "error": text }))
}

pub(super) fn of(result: Result<Json, HttpError>) -> Answer {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err((status, text)) => error(status, &text),
    }
}

/// Responds with a file of the page, or with "not modified" if the browser has the file.
pub(super) fn asset(asset: &Asset, headers: &HeaderMap) -> Answer {
    let tag = asset.tag();
    let is_known = headers.get_all(header::IF_NONE_MATCH).iter().any(|known| {
        known.to_str().is_ok_and(|known| known.split(',').any(|known| known.trim() == tag))
    });
    let (status, body) =
        if is_known { (StatusCode::NOT_MODIFIED, &[][..]) } else { (StatusCode::OK, asset.bytes) };
    let mut answer = answer(status, asset.kind, "no-cache", Bytes::from_static(body));
    let tag = HeaderValue::from_str(&tag).expect("a number between quotes");
    answer.headers_mut().insert(header::ETAG, tag);
    answer
}

/// Responds to an unknown path with the page, which reports the error.
pub(super) fn unknown_path(page: &Asset) -> Answer {
    answer(StatusCode::NOT_FOUND, page.kind, "no-store", Bytes::from_static(page.bytes))
}
