//! The HTTP port: the console page, its data, `/metrics` and `/healthz`.
//!
//! ```text
//! socket ──▶ request ──▶ access control ──▶ route ──▶ page (embedded)
//!            hyper       guard.rs                     data as JSON (api.rs)
//! ```
//!
//! The first thread serves all connections and responds to `/healthz` immediately. The first thread
//! takes no lock of the keyspace. A second thread prepares all other responses, one after the
//! other. A third thread runs the sampler. Neither the second nor the third thread can delay
//! `/healthz`. The second and the third thread take only short shared locks. No request changes
//! data: the server accepts only `GET` and `HEAD`.

mod answer;
mod api;
mod assets;
pub(crate) mod connections;
mod console;
mod guard;
mod history;
mod kinds;
mod order;
mod sampler;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::config::{Config, HttpPort};
use crate::server_error::ServerError;
use crate::shared_state::SharedState;
use crate::system::runtime::runtime;
use answer::Answer;
use connections::{Connections, Open};
use console::Console;

/// The maximum length of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// The maximum time to receive the head of a request, and the maximum time between two requests on
/// a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum lifetime of a connection. Without a maximum lifetime, a client that reads nothing
/// could occupy a connection permanently.
const MAX_CONNECTION: Duration = Duration::from_secs(300);

/// After [`MAX_CONNECTION`], a connection has this time to end normally.
const GRACE: Duration = Duration::from_secs(5);

/// Opens the configured port of the console. Returns `None` if the console is off, or if the
/// default port is in use and the configuration does not require the port.
pub(crate) fn listen(config: &Config) -> Result<Option<TcpListener>, ServerError> {
    let (port, must_be) = match config.http_port {
        HttpPort::Off => return Ok(None),
        HttpPort::Auto => (HttpPort::DEFAULT, false),
        HttpPort::At(port) => (port, true),
    };
    let address = SocketAddr::new(config.http_bind, port);
    match open(address) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if !must_be && error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(ServerError::ListenHttp { address, error }),
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves requests until the server ends.
pub(crate) fn serve(shared: &Arc<SharedState>, listener: TcpListener) {
    runtime().block_on(async {
        let bound = listener.local_addr();
        let (address, listener) = match (bound, tokio::net::TcpListener::from_std(listener)) {
            (Ok(address), Ok(listener)) => (address, listener),
            (Err(error), _) | (_, Err(error)) => return tracing::error!(%error, "no console"),
        };
        let console = Arc::new(Console::new(shared.clone(), address));
        let sampler = match spawn_sampler(&console) {
            Ok(sampler) => sampler,
            Err(error) => {
                return tracing::error!(%error, "the console is off: its sampler cannot start");
            }
        };
        // The history runs in a separate task: a panic in that task does not stop the console.
        let recording = console.clone();
        tokio::task::spawn_local(async move { recording.history.keep(&recording.shared).await });
        let connections = Rc::default();
        tokio::select! {
            () = accept(&console, &connections, &listener) => {}
            () = shared.stopping() => {}
        }
        _ = sampler.join();
    });
}

/// Runs the sampler until the server ends. The sampler has a separate thread, because the sampler
/// waits for locks of the keyspace.
fn spawn_sampler(console: &Arc<Console>) -> io::Result<JoinHandle<()>> {
    let console = console.clone();
    std::thread::Builder::new().name("tamis-sampler".to_owned()).spawn(move || {
        runtime().block_on(async {
            tokio::select! {
                () = console.sampler.keep(&console.shared) => {}
                () = console.shared.stopping() => {}
            }
        });
    })
}

async fn accept(
    console: &Arc<Console>,
    connections: &Rc<Connections>,
    listener: &tokio::net::TcpListener,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let open = connections.admit();
                let (console, connections) = (console.clone(), connections.clone());
                tokio::task::spawn_local(async move {
                    connections.run(&open, connection(&console, &open, stream)).await;
                });
                // Yield, so that this connection can read its request before the next connection
                // may end this connection.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of the console");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(console: &Arc<Console>, open: &Rc<Open>, stream: TcpStream) {
    _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let (console, open) = (console.clone(), open.clone());
        async move {
            open.is_answering.set(true);
            let answer = answer_to(&console, &open, request).await;
            open.is_answering.set(false);
            answer
        }
    });
    let mut serving = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD_BYTES)
            .max_headers(64)
            .serve_connection(TokioIo::new(stream), service)
    );
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = tokio::time::sleep(MAX_CONNECTION) => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the console broke");
    }
}

async fn answer_to(
    console: &Arc<Console>,
    open: &Open,
    request: Request<Incoming>,
) -> Result<Answer, Infallible> {
    if let Some(refusal) = guard::refuse(console, &request) {
        return Ok(refusal);
    }
    if request.uri().path() == "/healthz" {
        return Ok(health(&console.shared));
    }
    if open.is_for_health {
        return Ok(guard::closing(answer::error(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many connections wait for answers: try again",
        )));
    }
    // The worker thread holds the permit, so the next response waits for the worker even if the
    // client disconnects.
    let turn = console.turn.clone().acquire_owned().await.expect("it is never closed");
    let (console, (request, _)) = (console.clone(), request.into_parts());
    let making = tokio::task::spawn_blocking(move || {
        let answer = route(&console, &request);
        drop(turn);
        answer
    });
    let answer = making.await.unwrap_or_else(|_| {
        answer::error(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed: see the server's log")
    });
    if answer.status() == StatusCode::UNAUTHORIZED {
        // Slow down clients that guess passwords.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(answer)
}

fn route(console: &Console, request: &Parts) -> Answer {
    let path = request.uri.path();
    let Some(user) = guard::user_of(&console.shared, &request.headers) else {
        return guard::unauthorized(&request.headers);
    };
    if let Some(asset) = assets::find(path) {
        return answer::asset(asset, &request.headers);
    }
    // Each path returns the data of a command, and the user needs the permission for that command.
    let needed = match path {
        "/metrics" | "/api/overview.json" | "/api/history.json" => "info",
        "/api/filters.json" | "/api/filter.json" => "tm.info",
        "/api/plan.json" => "tm.plan",
        _ => return not_found(path, &request.headers),
    };
    if !user.may_run(needed) {
        return answer::of(Err(answer::not_allowed(needed)));
    }
    let query = request.uri.query().unwrap_or_default();
    match path {
        "/metrics" => answer::metrics(crate::stats::metrics::text(&console.shared, |key| {
            api::may_see(&user, key)
        })),
        "/api/overview.json" => answer::json(StatusCode::OK, &api::overview(console)),
        "/api/history.json" => answer::of(api::history(console, query)),
        "/api/filters.json" => answer::of(api::filters(console, &user, query)),
        "/api/filter.json" => answer::of(api::filter(console, &user, query)),
        _ => answer::of(api::plan(&console.shared, query)),
    }
}

/// Returns the response to an unknown path. A browser gets the console page, which reports the
/// unknown path and links to the start page. A client that is not a browser gets an error.
fn not_found(path: &str, headers: &HeaderMap) -> Answer {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let is_browser = accepted.into_iter().any(|kinds| kinds.contains("text/html"));
    let is_data = path.starts_with("/api/") || path.starts_with("/console/");
    if is_browser && !is_data {
        return answer::unknown_path(assets::find("/").expect("the page is embedded"));
    }
    answer::error(StatusCode::NOT_FOUND, "there is no such page: begin at /")
}

fn health(shared: &SharedState) -> Answer {
    let (status, text) = match shared.log_failure() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(error) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("the log cannot be written: {error}\n"))
        }
    };
    answer::text(status, text)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::keyspace::tests::counting;
    use crate::server::Server;
    use crate::system::descriptors::{HEALTH_CONNECTIONS, MAX_HTTP_CONNECTIONS};
    use crate::test_server;

    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn status(stream: &mut TcpStream) -> String {
        let mut line = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_exact(&mut line));
        read.await.expect("no answer").unwrap();
        String::from_utf8(line[9..].to_vec()).unwrap()
    }

    /// The HTTP port of a server, without the sampler and the history.
    struct Port {
        console: Arc<Console>,
        connections: Rc<Connections>,
    }

    impl Port {
        async fn ask(&self, path: &str) -> TcpStream {
            ask(self.console.address, path).await
        }
    }

    /// Runs a test as the only client of a server's HTTP port.
    fn with_port(server: &Server, test: impl AsyncFnOnce(Port)) {
        test_server::block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let console = Arc::new(Console::new(server.shared().clone(), address));
            let connections = Rc::<Connections>::default();
            let (accepting, accepted) = (console.clone(), connections.clone());
            tokio::task::spawn_local(async move { accept(&accepting, &accepted, &listener).await });
            test(Port { console, connections }).await;
        });
    }

    #[test]
    fn health_is_answered_while_all_connections_wait_for_answers() {
        with_port(&test_server::start(), async |port| {
            // The server prepares no response until the test releases the permit.
            let turn = port.console.turn.acquire().await.unwrap();
            let mut waiting = Vec::new();
            for _ in 0..MAX_HTTP_CONNECTIONS {
                waiting.push(port.ask("/metrics").await);
                while port.connections.answering() < waiting.len() {
                    tokio::task::yield_now().await;
                }
            }
            // Open more connections for `/healthz` than the limit allows. The server closes the
            // idle connections.
            let mut monitors = Vec::new();
            for _ in 0..HEALTH_CONNECTIONS + 3 {
                let mut monitor = port.ask("/healthz").await;
                assert_eq!(status(&mut monitor).await, "200");
                monitors.push(monitor);
                assert!(port.connections.len() <= MAX_HTTP_CONNECTIONS + HEALTH_CONNECTIONS);
            }
            assert_eq!(status(&mut port.ask("/metrics").await).await, "503");
            drop(turn);
            for stream in &mut waiting {
                assert_eq!(status(stream).await, "200");
            }
        });
    }

    #[test]
    fn health_is_answered_while_another_response_is_prepared() {
        let server = test_server::start();
        with_port(&server, async |port| {
            // While the test holds the lock of the keyspace, the response to `/metrics` waits.
            let alone = server.shared().keyspace.exclusive();
            let mut metrics = port.ask("/metrics").await;
            while port.console.turn.available_permits() == 1 {
                tokio::task::yield_now().await;
            }
            assert_eq!(status(&mut port.ask("/healthz").await).await, "200");
            drop(alone);
            assert_eq!(status(&mut metrics).await, "200");
        });
    }

    #[test]
    fn health_is_answered_while_the_sampler_waits_for_the_keys() {
        let server = test_server::start();
        let shared = server.shared();
        shared.keyspace.shared().put(b"filter", 0, counting(), None);
        let listener = open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        // While the test holds the lock of the keyspace, the first round of the sampler waits.
        let alone = shared.keyspace.exclusive();
        let serving = std::thread::spawn({
            let shared = shared.clone();
            move || serve(&shared, listener)
        });
        test_server::block_on(async {
            for _ in 0..3 {
                assert_eq!(status(&mut ask(address, "/healthz").await).await, "200");
            }
        });
        drop(alone);
        shared.stop();
        tamis_testing::join("the HTTP port", serving);
    }
}
