//! The admin server of a guard: health checks, metrics, and requests from programs and operators.
//!
//! | request | response |
//! | --- | --- |
//! | `GET /` | the console page |
//! | `GET /healthz` | 200 while the process runs |
//! | `GET /readyz` | 200 if each set with a source is synced or unproven, otherwise 503 |
//! | `GET /metrics` | the metrics in the text format of Prometheus |
//! | `GET /api/status` | the states, numbers and errors as JSON |
//! | `GET /filters/NAME` | a copy of a set for followers; needs the token of `ids.NAME.publish` |
//! | `POST /ids/NAME` | inserts and deletes ids; needs the token of `ids.NAME.push` |
//! | `POST /rebuild/NAME` | starts a full read of the source of a set; needs the token of `admin` |
//!
//! The admin server serves HTTP/1.1 on a separate address, so that clients of the proxy cannot reach it.

mod assets;
mod exposition;
mod metrics;
mod push;
mod status;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{LengthLimitError, Limited};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tamis_console::{Asset, HEADERS};

use crate::fleet::{PublicationBody, unauthorized};
use crate::guard_handle::GuardHandle;
use crate::http::answer::{Answer, error, json, text};
use crate::http::proxy::ProxyError;
use crate::http::server::HttpServer;

/// The maximum size of a request body in bytes.
const MAX_BODY: usize = 16 << 20;
/// The time limit for receiving a request body.
const LIMIT: Duration = Duration::from_secs(30);

/// An admin server that listens, but does not serve requests yet.
#[derive(Debug)]
pub(crate) struct Admin {
    server: HttpServer,
    settings: Settings,
}

/// The settings that all requests share.
#[derive(Default)]
struct Settings {
    token: Option<Box<[u8]>>,
    /// Status fields that the embedding program adds.
    fields: Vec<(&'static str, StatusValue)>,
}

/// A function that returns the current value of a status field.
pub(crate) type StatusValue = Box<dyn Fn() -> Value + Send + Sync>;

impl std::fmt::Debug for Settings {
    /// Formats the settings without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").finish_non_exhaustive()
    }
}

impl Admin {
    pub(crate) async fn bind(address: SocketAddr, token: Option<&str>) -> Result<Self, ProxyError> {
        let fail = |error| ProxyError::Listen { address, error };
        let server = HttpServer::bind(address).await.map_err(fail)?;
        let token = token.map(|token| token.as_bytes().into());
        Ok(Self { server, settings: Settings { token, fields: Vec::new() } })
    }

    /// Adds a field to the status.
    pub(crate) fn add_status(&mut self, field: &'static str, value: StatusValue) {
        self.settings.fields.push((field, value));
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Serves requests until the caller drops the future.
    pub(crate) async fn run(self, guard: GuardHandle) {
        let settings = Arc::new(self.settings);
        let answer = move |request| {
            let (guard, settings) = (guard.clone(), Arc::clone(&settings));
            async move { answer(request, &guard, &settings).await }
        };
        self.server.run(answer).await;
    }
}

/// Handles a request. Every response has headers that restrict what a browser may do.
async fn answer(
    request: Request<Incoming>,
    guard: &GuardHandle,
    settings: &Settings,
) -> Response<PublicationBody> {
    let name = request.uri().path().strip_prefix("/filters/").map(str::to_owned);
    let mut response = match name {
        Some(name) => published(&request, guard, &name).await,
        None => unrestricted(request, guard, settings).await.map(Into::into),
    };
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn unrestricted(
    request: Request<Incoming>,
    guard: &GuardHandle,
    settings: &Settings,
) -> Answer {
    let path = request.uri().path().to_owned();
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    match (&*path, is_get) {
        ("/healthz", true) => text(StatusCode::OK, "ok\n"),
        ("/readyz", true) => {
            let is_ready = status::is_ready(guard);
            let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            json(status, &status::states(guard))
        }
        ("/metrics", true) => {
            let mut response = text(StatusCode::OK, read(guard, metrics::text).await);
            let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, format);
            response
        }
        ("/api/status", true) => {
            let mut value = read(guard, status::status).await;
            for (field, more) in &settings.fields {
                value[*field] = more();
            }
            json(StatusCode::OK, &value)
        }
        (path, true) if let Some(asset) = assets::find(path) => page(asset, &request),
        _ if *request.method() != Method::POST => error(
            StatusCode::NOT_FOUND,
            "unknown path; use GET /, /healthz, /readyz, /metrics, /api/status, /filters/NAME, or POST \
             /ids/NAME, /rebuild/NAME",
        ),
        _ => match path.split_once('/').and_then(|(_, path)| path.split_once('/')) {
            Some(("ids", name)) => push(request, guard, name).await,
            Some(("rebuild", name)) => rebuild(&request, guard, name, settings.token.as_deref()),
            _ => error(StatusCode::NOT_FOUND, "unknown path; use POST /ids/NAME or /rebuild/NAME"),
        },
    }
}

/// Calls `read` on a blocking thread, because the estimate of a false positive rate reads all bits of a filter.
async fn read<T: Send + 'static>(guard: &GuardHandle, read: fn(&GuardHandle) -> T) -> T {
    let guard = guard.clone();
    match tokio::task::spawn_blocking(move || read(&guard)).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Returns the bearer token of a request.
fn bearer(request: &Request<Incoming>) -> Option<&[u8]> {
    request.headers().get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}

fn rebuild(
    request: &Request<Incoming>,
    guard: &GuardHandle,
    name: &str,
    token: Option<&[u8]>,
) -> Answer {
    let Some(token) = token else {
        return error(StatusCode::FORBIDDEN, "set admin.token in the configuration");
    };
    if !bearer(request).is_some_and(|given| bool::from(given.ct_eq(token))) {
        return error(StatusCode::UNAUTHORIZED, "the token is wrong");
    }
    if guard.rebuild(name) {
        json(StatusCode::ACCEPTED, &json!({ "rebuild": name }))
    } else {
        error(StatusCode::NOT_FOUND, "there is no set of ids of this name with a source")
    }
}

/// Handles a request of a follower.
async fn published(
    request: &Request<Incoming>,
    guard: &GuardHandle,
    name: &str,
) -> Response<PublicationBody> {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let set = guard.sets().into_iter().find(|set| *set.name == *name);
    match set.and_then(|set| set.publication) {
        Some(publication) => publication.answer(request).await,
        None => unauthorized().map(Into::into),
    }
}

async fn push(request: Request<Incoming>, guard: &GuardHandle, name: &str) -> Answer {
    let set = guard.sets().into_iter().find(|set| set.name == name);
    // An unknown set and a wrong token get the same response, so that clients cannot find out the names of sets.
    let Some(source) = set.and_then(|set| set.push) else {
        return error(StatusCode::UNAUTHORIZED, "the token is wrong, or ids.NAME.push is not set");
    };
    let token = bearer(&request).unwrap_or_default().to_vec();
    // The token is checked before the body is read, so that unauthenticated clients cannot fill the memory.
    if source.insert(&token, [""; 0]).is_err() {
        return error(StatusCode::UNAUTHORIZED, "the token is wrong, or ids.NAME.push is not set");
    }
    let too_large = || error(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 16 MiB");
    if request.body().size_hint().lower() > MAX_BODY as u64 {
        return too_large();
    }
    let body = http_body_util::BodyExt::collect(Limited::new(request.into_body(), MAX_BODY));
    let body = match tokio::time::timeout(LIMIT, body).await {
        Err(_) => return error(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        Ok(Err(failed)) if failed.is::<LengthLimitError>() => return too_large(),
        Ok(Err(_)) => return error(StatusCode::BAD_REQUEST, "the body is broken"),
        Ok(Ok(body)) => body.to_bytes(),
    };
    match push::apply(&source, &token, &body) {
        Ok(pushed) => json(StatusCode::OK, &pushed),
        Err(message) => error(StatusCode::BAD_REQUEST, &message),
    }
}

/// Responds with a file of the console. Responds with 304 if the browser already has the file.
fn page(asset: &Asset, request: &Request<Incoming>) -> Answer {
    let mut known = request.headers().get_all(IF_NONE_MATCH).iter();
    let is_known = known.any(|known| known.to_str().is_ok_and(|known| asset.has_tag(known)));
    let (status, bytes) =
        if is_known { (StatusCode::NOT_MODIFIED, &[][..]) } else { (StatusCode::OK, asset.bytes) };
    let mut response = text(status, Bytes::from_static(bytes));
    let tag = HeaderValue::from_str(&asset.tag()).expect("a number between quotes");
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ETAG, tag);
    response
}
