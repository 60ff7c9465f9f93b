//! The end of a proxy.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::secure::{http2, write_certificate};
use super::support::*;
use crate::service::Script;

const LIMIT: Duration = Duration::from_millis(50);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Starts an upstream that sends half of its answer, and the rest when the test says so.
async fn halting() -> (std::net::SocketAddr, mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
    reporting(|mut stream, waiting| async move {
        if read_head(&mut stream).await.is_none() {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").await.unwrap();
        let (gate, open) = oneshot::channel();
        waiting.send(gate).unwrap();
        if open.await.is_ok() {
            stream.write_all(b"rest").await.unwrap();
        }
    })
    .await
}

#[tokio::test]
async fn a_shutdown_finishes_requests_and_closes_idle_connections() {
    let (upstream, mut gates) = halting().await;
    let proxy = start(upstream).await;
    let address = proxy.address;
    let (mut idle, mut client) = (proxy.connect().await, proxy.connect().await);
    client.write_all(GET).await.unwrap();
    read_until(&mut client, "half").await.unwrap();
    let gate = in_time("the request", gates.recv()).await.unwrap();
    let stopped = proxy.stop();
    assert_closed(&mut idle).await;
    // The address is free while the last request runs.
    wait_until("the address is free", async || TcpStream::connect(address).await.is_err()).await;
    assert!(!stopped.is_finished());
    gate.send(()).unwrap();
    assert_eq!(read_all(&mut client).await, "rest");
    assert_eq!(in_time("the shutdown", stopped).await.unwrap(), 0);
}

#[tokio::test]
async fn a_shutdown_cuts_requests_at_its_limit() {
    let (upstream, mut gates) = halting().await;
    let proxy = start_set(upstream, |options| options.shutdown_timeout = LIMIT).await;
    let mut client = proxy.send(GET).await;
    read_until(&mut client, "half").await.unwrap();
    let _gate = in_time("the request", gates.recv()).await.unwrap();
    assert_eq!(in_time("the shutdown", proxy.stop()).await.unwrap(), 1);
    assert_closed(&mut client).await;
}

#[tokio::test]
async fn a_shutdown_cuts_http_2_requests_at_its_limit() {
    let (upstream, mut gates) = halting().await;
    let proxy = start_set(upstream, |options| options.shutdown_timeout = LIMIT).await;
    let mut sender = http2(proxy.connect().await).await;
    let request = http::Request::get("http://a/").body(Script::default()).unwrap();
    let answer = in_time("the answer", sender.send_request(request)).await.unwrap();
    let _gate = in_time("the request", gates.recv()).await.unwrap();
    assert_eq!(in_time("the shutdown", proxy.stop()).await.unwrap(), 1);
    let body = in_time("the body", http_body_util::BodyExt::collect(answer.into_body())).await;
    assert!(body.is_err(), "the body looks complete");
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = start_set(echo().await, |options| {
        options.shutdown_timeout = LIMIT;
        options.tls = Some(write_certificate(folder.path()));
    })
    .await;
    // The first bytes of a handshake.
    let mut client = proxy.send(b"\x16\x03\x01").await;
    assert!(in_time("the shutdown", proxy.stop()).await.unwrap() <= 1);
    assert_closed(&mut client).await;
}
