//! The responses of the server.
//!
//! | request | response |
//! | --- | --- |
//! | `GET /` | the list of all files as a page |
//! | `GET /index.json` | the list as JSON |
//! | `GET /filters/NAME` | a file, or 304 if the client already has the file |

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use percent_encoding::percent_decode_str;
use tamis_guard::BearerToken;

use crate::commands::publish::catalog::{Catalog, Unavailable};
use crate::commands::publish::file_body::FileBody;
use crate::commands::publish::index;

type Answer = Response<Either<Full<Bytes>, FileBody>>;

/// Returns the response to a request.
pub async fn answer<B>(
    request: &Request<B>,
    catalog: &Catalog,
    token: Option<&BearerToken>,
) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let answer = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "use GET or HEAD\n");
        return with(answer, ALLOW, "GET, HEAD");
    }
    if token.is_some_and(|token| !token.is_in(request.headers())) {
        let message = "the token is missing or wrong: send Authorization: Bearer TOKEN\n";
        let answer = text(StatusCode::UNAUTHORIZED, "text/plain", message);
        return with(answer, WWW_AUTHENTICATE, "Bearer");
    }
    let path = request.uri().path();
    match path.strip_prefix("/filters/") {
        Some(name) => file(request, catalog, &percent_decode_str(name).decode_utf8_lossy()).await,
        None if path == "/" => {
            let page = index::html(&index::list(catalog).await);
            text(StatusCode::OK, "text/html; charset=utf-8", page)
        }
        None if path == "/index.json" => {
            let json = index::json(&index::list(catalog).await);
            text(StatusCode::OK, "application/json", format!("{json:#}\n"))
        }
        None => text(
            StatusCode::NOT_FOUND,
            "text/plain",
            "not found: this server has the paths /, /index.json and /filters/NAME\n",
        ),
    }
}

async fn file<B>(request: &Request<B>, catalog: &Catalog, name: &str) -> Answer {
    let file = match catalog.get(name).await {
        Ok(file) => file,
        Err(Unavailable::Missing) => {
            let message = "this server has no file of this name: the page / lists all files\n";
            return text(StatusCode::NOT_FOUND, "text/plain", message);
        }
        Err(Unavailable::Later) => {
            let message = "the file is being written, or is not a filter: try again later\n";
            let answer = text(StatusCode::SERVICE_UNAVAILABLE, "text/plain", message);
            return with(answer, RETRY_AFTER, "2");
        }
    };
    let (tag, len_bytes) = (file.tag.to_header(), file.stamp.len_bytes);
    let is_known = file.tag.is_known(request.headers());
    let mut answer = if is_known {
        let mut answer = Response::new(Either::Left(Full::default()));
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        let mut answer = Response::new(Either::Right(FileBody::new(file)));
        let octets = HeaderValue::from_static("application/octet-stream");
        answer.headers_mut().insert(CONTENT_TYPE, octets);
        answer.headers_mut().insert(CONTENT_LENGTH, len_bytes.into());
        answer
    };
    answer.headers_mut().insert(ETAG, tag);
    // Caches must revalidate each time, which costs one small response.
    with(answer, CACHE_CONTROL, "no-cache")
}

fn text(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    let answer = with(answer, CONTENT_TYPE, kind);
    with(answer, CACHE_CONTROL, "no-store")
}

fn with(mut answer: Answer, name: http::HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}
