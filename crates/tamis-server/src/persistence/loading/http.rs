//! The HTTP port while the data is loaded. During the load, `/metrics` returns one number. Every
//! path except `/metrics` returns the error that the server is loading its data.

use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::http::connections::Connections;

/// The maximum lifetime of a connection. Each connection serves only one request.
const MAX_CONNECTION: Duration = Duration::from_secs(5);

const MAX_HEAD_BYTES: usize = 16 << 10;

/// Accepts connections and serves their requests.
///
/// `open` counts the open connections, so that the caller can wait until all connections are
/// closed.
pub(super) async fn serve(listener: TcpListener, open: &watch::Sender<usize>) {
    let connections = Rc::<Connections>::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A new connection may close the oldest connection: the server responds
                // immediately, so no open connection waits for a response.
                let (admitted, connections) = (connections.admit(), connections.clone());
                let open = open.clone();
                open.send_modify(|count| *count += 1);
                tokio::task::spawn_local(async move {
                    let connection = async {
                        _ = tokio::time::timeout(MAX_CONNECTION, connection(stream)).await;
                    };
                    connections.run(&admitted, connection).await;
                    open.send_modify(|count| *count -= 1);
                });
                // Yield, so that this connection can read its request before the next connection
                // may close this connection.
                tokio::task::yield_now().await;
            }
            // The usual cause of this error is the limit of open files.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn connection(stream: TcpStream) {
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
        Ok::<_, Infallible>(answer(request.method(), request.uri().path()))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_CONNECTION)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "a connection of the console broke");
    }
}

fn answer(method: &Method, path: &str) -> Response<Full<Bytes>> {
    let (status, kind, text) = match path {
        _ if !matches!(*method, Method::GET | Method::HEAD) => {
            (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "send GET or HEAD\n")
        }
        "/metrics" => (StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", METRICS),
        _ => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, "loading: the server reads its data\n"),
    };
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

const PLAIN: &str = "text/plain; charset=utf-8";

const METRICS: &str = "\
# HELP tamis_loading 1 while the server reads its data.
# TYPE tamis_loading gauge
tamis_loading 1
";
