//! Builds responses and their headers. The headers permit the browser only the actions that the
//! page needs.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value as Json, json};
use tamis_console::{Asset, HEADERS};

/// The response to a request.
pub(super) type Answer = Response<Full<Bytes>>;

/// The status and the text of an error response. The text of an error response says what to do.
pub(super) type HttpError = (StatusCode, String);

/// Returns the error response for a request for which the user has no permission.
pub(super) fn not_allowed(command: &str) -> HttpError {
    (
        StatusCode::FORBIDDEN,
        format!("this user may not run '{command}', which returns the same data"),
    )
}

fn answer(status: StatusCode, kind: &'static str, cache: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
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

/// Returns a file of the page. Returns "not modified" if the browser already has the file.
pub(super) fn asset(asset: &Asset, headers: &HeaderMap) -> Answer {
    let mut known = headers.get_all(header::IF_NONE_MATCH).iter();
    let is_known = known.any(|known| known.to_str().is_ok_and(|known| asset.has_tag(known)));
    let (status, body) =
        if is_known { (StatusCode::NOT_MODIFIED, &[][..]) } else { (StatusCode::OK, asset.bytes) };
    let mut answer = answer(status, asset.kind, "no-cache", Bytes::from_static(body));
    let tag = HeaderValue::from_str(&asset.tag()).expect("a number between quotes");
    answer.headers_mut().insert(header::ETAG, tag);
    answer
}

/// Returns the page for an unknown path. The returned page reports that the path is unknown.
pub(super) fn unknown_path(page: &Asset) -> Answer {
    answer(StatusCode::NOT_FOUND, page.kind, "no-store", Bytes::from_static(page.bytes))
}
