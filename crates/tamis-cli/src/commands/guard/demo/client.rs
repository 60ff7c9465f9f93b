//! An HTTP client with one connection, which stays open between requests.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A client of one address.
pub struct Client {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
    /// The task that drives the connection. The task ends when the client is dropped.
    connection: JoinSet<()>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, sender: None, connection: JoinSet::new() }
    }

    /// Sends a GET request. Returns the status, or `None` if there is no response.
    pub async fn get(&mut self, path: &str) -> Option<StatusCode> {
        self.send(Method::GET, path).await.map(|(status, _)| status)
    }

    /// Sends a request without a body. Returns the status and the body of the response.
    pub async fn send(&mut self, method: Method, path: &str) -> Option<(StatusCode, Bytes)> {
        let sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => Some(sender),
            _ => self.connect().await,
        };
        let mut sender = sender?;
        sender.ready().await.ok()?;
        let request = Request::builder().method(method).uri(path);
        let request = request.header(HOST, self.address.to_string()).body(Full::default()).ok()?;
        let answer = sender.send_request(request).await.ok()?;
        let status = answer.status();
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        self.sender = Some(sender);
        Some((status, body))
    }

    async fn connect(&mut self) -> Option<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.address).await.ok()?;
        _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
        self.connection.abort_all();
        self.connection.spawn(async move { _ = connection.await });
        Some(sender)
    }
}
