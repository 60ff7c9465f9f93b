//! A small HTTP/1.1 server for programs and operators: health, metrics, and filters to download.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::http::patient_stream::PatientStream;

/// The most connections at once. Further ones wait. A follower holds one while it waits for news.
const MAX_CONNECTIONS: usize = 1024;
/// The largest head of a request in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The longest time for the head of a request, and between two requests.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// How long a client may take no byte of an answer.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
/// How long the server waits after an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An HTTP/1.1 server that listens and does not serve yet. It bounds the number of connections, the
/// heads of requests, and the time for which a slow client is served.
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
}

impl HttpServer {
    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests with `answer` until this future is dropped. That closes all connections.
    pub async fn run<H, F, B>(self, answer: H)
    where
        H: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        // Its tasks end with it.
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // Without it, a connection works too.
            _ = stream.set_nodelay(true);
            let answer = answer.clone();
            connections.spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
                builder.max_buf_size(MAX_HEAD);
                let stream = TokioIo::new(PatientStream::new(stream, WRITE_LIMIT));
                if let Err(error) = builder.serve_connection(stream, service).await {
                    tracing::debug!(%error, "connection of a client broken");
                }
                drop(permit);
            });
        }
    }
}
