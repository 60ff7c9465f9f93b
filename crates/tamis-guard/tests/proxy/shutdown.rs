//! The end of a proxy.

use std::time::Duration;

use tamis_guard::GuardLayer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::support::*;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Starts an upstream that sends half of its answer, and the rest when the test says so.
async fn halting() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    let (waiting, gates) = mpsc::unbounded_channel();
    let address = upstream(move |mut stream| {
        let waiting = waiting.clone();
        async move {
            if read_head(&mut stream).await.is_none() {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").await.unwrap();
            let (gate, open) = oneshot::channel();
            waiting.send(gate).unwrap();
            if open.await.is_ok() {
                stream.write_all(b"rest").await.unwrap();
            }
        }
    })
    .await;
    (address, gates)
}

#[tokio::test]
async fn a_shutdown_finishes_requests_and_closes_idle_connections() {
    let (upstream, mut gates) = halting().await;
    let proxy = start(upstream).await;
    let address = proxy.address;
    let (mut idle, mut client) = (proxy.connect().await, proxy.connect().await);
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "half").await.unwrap();
    let gate = gates.recv().await.unwrap();
    let stopped = proxy.stop();
    assert_closed(&mut idle).await;
    // The address is free while the last request runs.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished());
    gate.send(()).unwrap();
    assert_eq!(read_all(&mut client).await, "rest");
    assert_eq!(stopped.await.unwrap(), 0);
}

#[tokio::test]
async fn a_shutdown_cuts_requests_at_its_limit() {
    let (upstream, mut gates) = halting().await;
    let mut options = options(upstream);
    options.shutdown_timeout = Duration::from_millis(50);
    let proxy = start_with(options, GuardLayer::new(Vec::new())).await;
    let mut client = proxy.connect().await;
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "half").await.unwrap();
    let _gate = gates.recv().await.unwrap();
    assert_eq!(proxy.stop().await.unwrap(), 1);
    assert_closed(&mut client).await;
}
