//! The HTTP port: the console's page, the numbers behind it, `/metrics` and `/healthz`.
//!
//! ```text
//! socket ──▶ request ──▶ may it enter? ──▶ route ──▶ page (embedded)
//!            hyper       guard.rs                    numbers as JSON (api.rs) from rounds and history
//! ```
//!
//! All of it runs on one thread of its own, takes nothing from the threads that answer commands but short shared locks,
//! and changes nothing: only `GET` and `HEAD` are answered.

mod answer;
mod api;
mod assets;
mod guard;
mod history;
mod kinds;
mod order;
mod rounds;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::config::{Config, HttpPort};
use crate::server::{ServerError, Shared, runtime};
use history::History;
use rounds::Rounds;

/// Connections at a time; browsers take six.
pub(crate) const MAX_CONNECTIONS: usize = 64;

/// The longest head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// Time for the head of a request, and between two of one connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// No connection lasts longer, so that whoever reads nothing does not keep one for ever.
const MAX_CONNECTION: Duration = Duration::from_secs(300);

/// Time for a connection to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// What all requests share, on the one thread.
struct Console {
    shared: Arc<Shared>,
    address: SocketAddr,
    history: History,
    rounds: Rounds,
    /// The connections that are open, by the order in which they came.
    open: RefCell<BTreeMap<u64, Rc<Open>>>,
}

/// A connection that is open.
#[derive(Default)]
struct Open {
    /// A whole request has come, and is being answered.
    is_answering: Cell<bool>,
    /// Told when the connection shall end.
    end: Notify,
}

impl Console {
    /// Makes room for a connection: ends the oldest that has sent no whole request. False if all are being answered.
    fn make_room(&self) -> bool {
        let mut open = self.open.borrow_mut();
        if open.len() < MAX_CONNECTIONS {
            return true;
        }
        let oldest = open.iter().find(|(_, it)| !it.is_answering.get()).map(|(number, _)| *number);
        let Some(ended) = oldest.and_then(|number| open.remove(&number)) else { return false };
        ended.end.notify_one();
        true
    }
}

/// Opens the port that the options say; `None` if they say none, or leave it open and it is taken.
pub(crate) fn listen(config: &Config) -> Result<Option<TcpListener>, ServerError> {
    let (port, must_be) = match config.http_port {
        HttpPort::Off => return Ok(None),
        HttpPort::Auto => (HttpPort::USUAL, false),
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

/// Answers requests until the server ends.
pub(crate) fn serve(shared: &Arc<Shared>, listener: TcpListener) {
    let local = LocalSet::new();
    local.block_on(&runtime(), async {
        let bound = listener.local_addr();
        let (address, listener) = match (bound, tokio::net::TcpListener::from_std(listener)) {
            (Ok(address), Ok(listener)) => (address, listener),
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "no console");
                return;
            }
        };
        let console = Rc::new(Console {
            shared: shared.clone(),
            address,
            history: History::default(),
            rounds: Rounds::default(),
            open: RefCell::default(),
        });
        let (sampling, looking, accepting) = (console.clone(), console.clone(), console.clone());
        tokio::task::spawn_local(async move { sampling.history.keep(&sampling.shared).await });
        tokio::task::spawn_local(async move { looking.rounds.keep(&looking.shared).await });
        tokio::select! {
            () = accept(&accepting, &listener) => {}
            () = shared.stopping() => {}
        }
    });
}

async fn accept(console: &Rc<Console>, listener: &tokio::net::TcpListener) {
    for number in 0.. {
        match listener.accept().await {
            Ok((stream, _)) if !console.make_room() => {
                let text = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                // A new socket has room for it.
                _ = stream.try_write(text);
            }
            Ok((stream, _)) => {
                let open = Rc::new(Open::default());
                console.open.borrow_mut().insert(number, open.clone());
                let console = console.clone();
                tokio::task::spawn_local(async move {
                    tokio::select! {
                        () = connection(&console, &open, stream) => {}
                        () = open.end.notified() => {}
                    }
                    console.open.borrow_mut().remove(&number);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of the console");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn connection(console: &Rc<Console>, open: &Rc<Open>, stream: TcpStream) {
    _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let (console, open) = (console.clone(), open.clone());
        async move {
            open.is_answering.set(true);
            let answer = answer_to(&console, &request).await;
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

type Answer = Response<Full<Bytes>>;

async fn answer_to(console: &Console, request: &Request<Incoming>) -> Result<Answer, hyper::Error> {
    let refusal = guard::refuse(console, request);
    let answer = refusal.unwrap_or_else(|| route(console, request));
    if answer.status() == StatusCode::UNAUTHORIZED {
        // Whoever guesses passwords waits.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(answer)
}

fn route(console: &Console, request: &Request<Incoming>) -> Answer {
    let path = request.uri().path();
    if path == "/healthz" {
        return health(&console.shared);
    }
    let Some(user) = guard::user_of(&console.shared, request.headers()) else {
        return guard::ask_who(request.headers());
    };
    if let Some(asset) = assets::find(path) {
        return answer::asset(asset, request.headers());
    }
    // Each tells what a command does, to those who may run that.
    let needed = match path {
        "/metrics" | "/api/overview.json" | "/api/history.json" => "info",
        "/api/filters.json" | "/api/filter.json" => "tm.info",
        "/api/plan.json" => "tm.plan",
        _ => return not_found(path, request.headers()),
    };
    if !user.may_run(needed) {
        return answer::of(Err(answer::not_allowed(needed)));
    }
    let query = request.uri().query().unwrap_or_default();
    match path {
        "/metrics" => {
            answer::metrics(crate::metrics::text(&console.shared, |key| api::may_see(&user, key)))
        }
        "/api/overview.json" => answer::json(StatusCode::OK, &api::overview(console)),
        "/api/history.json" => answer::of(api::history(console, query)),
        "/api/filters.json" => answer::of(api::filters(console, &user, query)),
        "/api/filter.json" => answer::of(api::filter(console, &user, query)),
        _ => answer::of(api::plan(&console.shared, query)),
    }
}

/// Answers a browser with the page, which says that there is nothing here and leads on; programs with an error.
fn not_found(path: &str, headers: &HeaderMap) -> Answer {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let is_browser = accepted.into_iter().any(|kinds| kinds.contains("text/html"));
    let is_data = path.starts_with("/api/") || path.starts_with("/console/");
    if is_browser && !is_data {
        return answer::page_of_nothing(assets::find("/").expect("the page is embedded"));
    }
    answer::error(StatusCode::NOT_FOUND, "there is no such page: begin at /")
}

fn health(shared: &Shared) -> Answer {
    match shared.log_failure() {
        None => answer::text(StatusCode::OK, "ok\n".to_owned()),
        Some(error) => answer::text(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("the log cannot be written: {error}\n"),
        ),
    }
}
