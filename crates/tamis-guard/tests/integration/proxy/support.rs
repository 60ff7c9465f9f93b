//! A proxy, an upstream and a client, each on a port from the system.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use tamis_guard::{GuardLayer, Proxy, ProxyHandle, ProxyOptions};
use tamis_testing::DEADLINE;
use tokio::io::{AsyncRead, AsyncWrite};
pub use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Waits for a future.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`].
pub async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    timeout(DEADLINE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Waits until a condition holds.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`].
pub async fn wait_until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    in_time(what, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A proxy that runs until the test ends.
pub struct Running {
    pub address: SocketAddr,
    pub handle: ProxyHandle,
    stop: oneshot::Sender<()>,
    task: JoinHandle<usize>,
}

impl Running {
    /// Begins the shutdown. The result is how many connections it had to close.
    pub fn stop(self) -> JoinHandle<usize> {
        self.stop.send(()).unwrap();
        self.task
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a GET request on a connection of its own, and returns the answer.
    pub async fn get(&self, target: &str) -> String {
        self.exchange(&get(target)).await
    }

    /// Sends a request for `/` after whose answer the connection ends. `rest` has more headers and the body.
    pub async fn request(&self, method: &str, rest: &str) -> String {
        let head = format!("{method} / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
        self.exchange(&(head + rest)).await
    }

    /// Sends bytes on a connection of their own.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        stream
    }

    /// Sends bytes and returns all that the proxy answers before it closes the connection.
    pub async fn exchange(&self, request: &str) -> String {
        read_all(&mut self.send(request).await).await
    }
}

pub fn options(upstream: SocketAddr) -> ProxyOptions {
    ProxyOptions::new(format!("http://{upstream}").parse().unwrap())
}

/// Starts a proxy without routes.
pub async fn start(upstream: SocketAddr) -> Running {
    start_set(upstream, |_| {}).await
}

/// Starts a proxy without routes and with other options.
pub async fn start_set(upstream: SocketAddr, set: impl FnOnce(&mut ProxyOptions)) -> Running {
    let mut options = options(upstream);
    set(&mut options);
    start_with(options, GuardLayer::new(Vec::new())).await
}

/// Starts a proxy with a guard in front of an upstream that returns the requests.
pub async fn start_guarded(guard: GuardLayer) -> Running {
    start_with(options(echo().await), guard).await
}

pub async fn start_with(options: ProxyOptions, guard: GuardLayer) -> Running {
    let proxy = Proxy::bind(options, guard).await.unwrap();
    let (address, handle) = (proxy.addresses()[0], proxy.handle());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(proxy.run(async { _ = stopped.await }));
    Running { address, handle, stop, task }
}

/// Starts an upstream that serves each connection with a function.
pub async fn upstream<F, S>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// Starts a proxy without routes in front of such an upstream.
pub async fn serving<F, S>(serve: F) -> Running
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    start(upstream(serve).await).await
}

/// Starts an upstream whose connections send values to the test.
pub async fn reporting<T, F, S>(serve: F) -> (SocketAddr, UnboundedReceiver<T>)
where
    T: Send + 'static,
    F: Fn(TcpStream, UnboundedSender<T>) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = unbounded_channel();
    (upstream(move |stream| serve(stream, sender.clone())).await, receiver)
}

/// Starts an upstream that sends all bytes of a connection to the test at their end.
pub async fn recording() -> (SocketAddr, UnboundedReceiver<String>) {
    reporting(|mut stream, ended| async move {
        _ = ended.send(read_all(&mut stream).await);
    })
    .await
}

/// Starts an upstream that returns the requests, and counts its connections.
pub async fn counting() -> (SocketAddr, UnboundedReceiver<()>) {
    reporting(|stream, count| async move {
        count.send(()).unwrap();
        echo_on(stream).await;
    })
    .await
}

/// Starts an upstream that reads one request on each connection and answers with these bytes, then
/// closes the connection.
pub async fn answering(answer: &'static str) -> SocketAddr {
    upstream(move |mut stream| async move {
        read_message(&mut stream).await;
        _ = stream.write_all(answer.as_bytes()).await;
    })
    .await
}

/// Starts an upstream whose answers contain the requests as it got them.
pub async fn echo() -> SocketAddr {
    upstream(echo_on).await
}

pub async fn echo_on(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while let Some(request) = read_message(&mut stream).await {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.len());
        let body = if request.starts_with("HEAD ") { "" } else { &request };
        if stream.write_all((head + body).as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Returns a GET request after whose answer the connection ends.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
}

/// Sends a request, and reads its answer.
pub async fn ask(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: impl AsRef<[u8]>,
) -> String {
    stream.write_all(request.as_ref()).await.unwrap();
    read_message(stream).await.unwrap()
}

/// Reads a message with its body, byte for byte. `None` at the end of the stream.
pub async fn read_message(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut message = read_head(stream).await?;
    let lower = message.to_ascii_lowercase();
    if let Some(length) = lower.split("\r\ncontent-length: ").nth(1) {
        let length: usize = length.split('\r').next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        in_time("a body", stream.read_exact(&mut body)).await.ok()?;
        message.push_str(std::str::from_utf8(&body).unwrap());
    } else if lower.contains("\r\ntransfer-encoding: chunked\r\n") {
        // No test has a body that contains this.
        message.push_str(&read_until(stream, "0\r\n\r\n").await?);
    }
    Some(message)
}

pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    read_until(stream, "\r\n\r\n").await
}

pub async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        bytes.push(in_time("bytes", stream.read_u8()).await.ok()?);
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// Reads until the peer closes the connection or breaks it.
pub async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    _ = in_time("the end of a stream", stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Tests that the peer closes the connection without an answer.
pub async fn assert_closed(stream: &mut (impl AsyncRead + Unpin)) {
    assert_eq!(read_all(stream).await, "");
}
