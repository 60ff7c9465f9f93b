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

/// The maximum number of concurrent connections. Further clients wait. A follower that waits for changes occupies one
/// connection.
const MAX_CONNECTIONS: usize = 1024;
/// The maximum size of a request head in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The time limit for a request head, and for the idle time between two requests.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// The maximum time during which a client accepts no byte of a response.
const WRITE_LIMIT: Duration = Duration::from_secs(60);
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
}

impl HttpServer {
    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system if the address cannot be bound.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { address: listener.local_addr()?, listener })
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
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        // Dropping the `JoinSet` ends the tasks of all connections.
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // The connection also works without `TCP_NODELAY`, so an error is ignored.
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
