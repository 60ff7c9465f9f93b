//! Large bodies, which the proxy must not hold.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::support::*;

const BODY: usize = 100 << 20;
/// The buffers of four sockets and of the proxy. The kernel decides about the sockets.
const BUFFERS: usize = 40 << 20;

/// Returns the byte at a position of the body.
fn byte(i: usize) -> u8 {
    (i % 251) as u8
}

/// Writes a part of the body that begins at a position. Returns the position after it.
async fn write_part(stream: &mut (impl AsyncWrite + Unpin), sent: usize) -> usize {
    let end = BODY.min(sent + (64 << 10));
    let part: Vec<u8> = (sent..end).map(byte).collect();
    sent + stream.write(&part).await.unwrap()
}

/// Writes the body until the peer takes no more for a while.
async fn write_until_it_stalls(stream: &mut (impl AsyncWrite + Unpin)) -> usize {
    let mut sent = 0;
    while sent < BODY {
        match timeout(Duration::from_millis(300), write_part(stream, sent)).await {
            Ok(end) => sent = end,
            Err(_) => break,
        }
    }
    sent
}

/// Writes the rest of the body. The peer reads it, but a busy machine may delay the peer.
async fn write_rest(stream: &mut (impl AsyncWrite + Unpin), mut sent: usize) {
    while sent < BODY {
        sent = in_time("the peer to take more of the body", write_part(stream, sent)).await;
    }
}

async fn read_body(stream: &mut (impl AsyncRead + Unpin)) {
    let (mut got, mut buffer) = (0, vec![0; 1 << 20]);
    while got < BODY {
        let read = in_time("the body", stream.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "the body ends at {got}");
        assert!(buffer[..read].iter().enumerate().all(|(i, &it)| it == byte(got + i)), "{got}");
        got += read;
    }
}

#[tokio::test]
async fn a_request_of_100_mb_is_streamed() {
    let (upstream, mut gates) = reporting(|mut stream, gates| async move {
        read_head(&mut stream).await;
        let (gate, open) = oneshot::channel::<()>();
        gates.send(gate).unwrap();
        open.await.unwrap();
        read_body(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").await.unwrap();
    })
    .await;
    let proxy = start(upstream).await;
    let head = format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n");
    let mut client = proxy.send(head).await;
    let sent = write_until_it_stalls(&mut client).await;
    assert!(sent < BUFFERS, "the proxy took {sent} bytes that the upstream does not read");
    in_time("the request", gates.recv()).await.unwrap().send(()).unwrap();
    write_rest(&mut client, sent).await;
    assert!(read_message(&mut client).await.unwrap().ends_with("done"));
}

#[tokio::test]
async fn an_answer_of_100_mb_is_streamed() {
    let (upstream, mut stalled) = reporting(|mut stream, stalled| async move {
        read_head(&mut stream).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let sent = write_until_it_stalls(&mut stream).await;
        stalled.send(sent).unwrap();
        write_rest(&mut stream, sent).await;
    })
    .await;
    let proxy = start(upstream).await;
    let mut client = proxy.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let sent = in_time("a stalled answer", stalled.recv()).await.unwrap();
    assert!(sent < BUFFERS, "the proxy took {sent} bytes that the client does not read");
    read_head(&mut client).await.unwrap();
    read_body(&mut client).await;
}

#[tokio::test]
async fn parts_of_an_answer_are_sent_as_they_come() {
    let (mut parts, answer) = tokio::io::duplex(64);
    let answer = std::sync::Mutex::new(Some(answer));
    let proxy = serving(move |mut stream| {
        let mut answer = answer.lock().unwrap().take().expect("one connection");
        async move {
            read_head(&mut stream).await;
            _ = tokio::io::copy(&mut answer, &mut stream).await;
        }
    })
    .await;
    let mut client = proxy.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    parts.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
    assert!(read_head(&mut client).await.unwrap().contains("chunked"));
    for i in 0..5 {
        parts.write_all(format!("8\r\ndata: {i}\n\r\n").as_bytes()).await.unwrap();
        assert_eq!(
            read_until(&mut client, "\n\r\n").await.unwrap(),
            format!("8\r\ndata: {i}\n\r\n")
        );
    }
    parts.write_all(b"0\r\n\r\n").await.unwrap();
    assert_eq!(read_until(&mut client, "\r\n\r\n").await.unwrap(), "0\r\n\r\n");
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_request_of_the_upstream() {
    let (upstream, mut reports) = reporting(|mut stream, report| async move {
        report.send(read_head(&mut stream).await.unwrap()).unwrap();
        report.send(read_all(&mut stream).await).unwrap();
    })
    .await;
    let proxy = start(upstream).await;
    let client = proxy.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    in_time("the request", reports.recv()).await.unwrap();
    drop(client);
    assert_eq!(in_time("the end of the request", reports.recv()).await.unwrap(), "");
}

#[tokio::test]
async fn a_client_may_send_its_whole_body_before_it_reads_a_large_answer() {
    // The upstream has read the whole body when the client begins to read the answer.
    let (upstream, mut read) = reporting(|mut stream, read| async move {
        read_head(&mut stream).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY}\r\n\r\n");
        let (mut from, mut to) = stream.split();
        to.write_all(head.as_bytes()).await.unwrap();
        let write = write_rest(&mut to, 0);
        let receive = async {
            read_body(&mut from).await;
            read.send(()).unwrap();
        };
        tokio::join!(write, receive);
    })
    .await;
    let proxy = start(upstream).await;
    let head = format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {BODY}\r\n\r\n");
    let mut client = proxy.send(head).await;
    write_rest(&mut client, 0).await;
    in_time("the upstream to read the body", read.recv()).await.unwrap();
    read_head(&mut client).await.unwrap();
    read_body(&mut client).await;
}
