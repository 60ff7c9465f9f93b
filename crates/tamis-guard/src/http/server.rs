//! A small HTTP/1.1 server for programs and operators: health, metrics, and filters to download.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::http::patient_stream::PatientStream;

/// The limits of an [`HttpServer`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLimits {
    /// The maximum number of concurrent connections. Further clients wait.
    pub(crate) connections: usize,
    /// The maximum size of a request head in bytes.
    pub(crate) head_bytes: usize,
    /// The time limit for a request head, and for the idle time between two requests.
    pub(crate) head_time: Duration,
    /// The time limit for the requests in progress after the shutdown begins.
    pub(crate) shutdown_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            // A follower that waits for changes occupies one connection.
            connections: 1024,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(30),
            shutdown_time: Duration::ZERO,
        }
    }
}

/// The maximum time during which a client accepts no byte of a response.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
/// The idle time after which the system probes the connection of a silent client.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// The pause of the server after an error, for example because of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An HTTP/1.1 server that listens, but does not serve requests yet. The server limits the number of connections, the
/// size of request heads, and the time for slow clients.
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use http_body_util::Full;
/// use tamis_guard::HttpServer;
///
/// # async fn serve() -> std::io::Result<()> {
/// let server = HttpServer::bind("127.0.0.1:0".parse().expect("an address")).await?;
/// println!("http://{}/", server.address());
/// server.run(|_| async { Response::new(Full::new(Bytes::from("ok\n"))) }).await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    limits: ServerLimits,
}

impl HttpServer {
    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if the address cannot be bound.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { address: listener.local_addr()?, listener, limits: ServerLimits::default() })
    }

    /// Returns the server with other limits.
    pub(crate) fn with_limits(self, limits: ServerLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests with the handler `answer` until the caller drops this future. Dropping the future closes all
    /// connections.
    pub async fn run<H, F, B>(self, answer: H)
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.run_until(std::future::pending(), answer).await;
    }

    /// Serves requests with the handler `answer` until `shutdown` completes. Then the server accepts no more
    /// connections, and finishes the requests in progress within [`ServerLimits::shutdown_time`].
    pub(crate) async fn run_until<H, F, B>(self, shutdown: impl Future<Output = ()>, answer: H)
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        // Dropping the sender starts the graceful shutdown of each connection.
        let (serving, stopped) = watch::channel(());
        // Dropping the `JoinSet` ends the tasks of all connections.
        let mut connections = JoinSet::new();
        let mut shutdown = pin!(shutdown);
        loop {
            while connections.try_join_next().is_some() {}
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut shutdown => break,
                next = next => next,
            };
            let Ok((stream, _)) = accepted else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (answer, stopped) = (answer.clone(), stopped.clone());
            connections.spawn(async move {
                serve(stream, self.limits, stopped, answer).await;
                drop(permit);
            });
        }
        drop((self.listener, serving));
        let finished = async { while connections.join_next().await.is_some() {} };
        _ = timeout(self.limits.shutdown_time, finished).await;
    }
}

/// Serves a connection until the client, a limit or the shutdown ends the connection.
async fn serve<H, F, B>(
    stream: TcpStream,
    limits: ServerLimits,
    mut stopped: watch::Receiver<()>,
    answer: H,
) where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    // The connection also works without these socket options, so errors are ignored.
    _ = stream.set_nodelay(true);
    _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    builder.max_buf_size(limits.head_bytes);
    let stream = TokioIo::new(PatientStream::new(stream, WRITE_LIMIT));
    let mut connection = pin!(builder.serve_connection(stream, service));
    let result = tokio::select! {
        result = connection.as_mut() => result,
        // The sender sends no value, so the future completes when the sender is dropped.
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection of a client broken");
    }
}
