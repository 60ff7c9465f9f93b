//! Limits of time and number.

use std::time::Duration;

use tokio::time::Instant;

use super::support::*;

/// A limit that ends during a test.
const SHORT: Duration = Duration::from_millis(100);
/// A limit that a client on a busy machine keeps.
const LONG: Duration = Duration::from_secs(2);
/// A limit that no test reaches.
const NEVER: Duration = Duration::from_secs(600);
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// Starts a proxy with limits of the time for a head, and of the time between two requests.
async fn with_timeouts(header: Duration, idle: Duration) -> Running {
    start_set(echo().await, |options| {
        (options.header_timeout, options.idle_timeout) = (header, idle);
    })
    .await
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_head_is_closed() {
    let proxy = start_set(echo().await, |options| options.header_timeout = SHORT).await;
    for sent in [&b""[..], b"G", b"PRI * HTTP/2.0\r\n", b"GET / HTTP/1.1\r\nhost: a\r\nx: "] {
        let begin = Instant::now();
        let mut client = proxy.send(sent).await;
        assert_closed(&mut client).await;
        assert!(begin.elapsed() >= SHORT, "{sent:?} {:?}", begin.elapsed());
    }
    // Also the second head of a connection, and also if its bytes come one by one.
    let proxy = with_timeouts(LONG, NEVER).await;
    let mut client = proxy.connect().await;
    ask(&mut client, GET).await;
    let begin = Instant::now();
    let bytes_until_closed = async {
        while client.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(30 * LONG, bytes_until_closed).await.expect("the client is closed");
    assert!(begin.elapsed() >= LONG / 2, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn an_idle_client_is_closed_after_its_own_limit() {
    let proxy = with_timeouts(LONG, NEVER).await;
    let mut client = proxy.connect().await;
    for pause in [Duration::ZERO, LONG + LONG / 4] {
        tokio::time::sleep(pause).await;
        assert!(ask(&mut client, GET).await.starts_with("HTTP/1.1 200 "));
    }
    let proxy = with_timeouts(NEVER, SHORT).await;
    let begin = Instant::now();
    let mut client = proxy.connect().await;
    assert!(ask(&mut client, GET).await.starts_with("HTTP/1.1 200 "));
    assert_closed(&mut client).await;
    assert!(begin.elapsed() >= SHORT / 2, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_client_that_is_slow_with_its_body_gets_408() {
    let proxy = start_set(echo().await, |options| options.body_timeout = SHORT).await;
    let mut client = proxy.connect().await;
    let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhal";
    let answer = ask(&mut client, head).await;
    assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    // Its rest must not be read as a request.
    assert_closed(&mut client).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answer_is_closed() {
    let (upstream, mut end) = reporting(|mut stream, ended| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        stream.write_all(head).await.unwrap();
        while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
        ended.send(()).unwrap();
    })
    .await;
    let proxy = start_set(upstream, |options| options.body_timeout = SHORT).await;
    let _client = proxy.send(GET).await;
    let closed = tokio::time::timeout(Duration::from_secs(10), end.recv()).await;
    assert_eq!(closed, Ok(Some(())));
}

#[tokio::test]
async fn a_client_waits_while_all_connections_are_in_use() {
    let proxy = start_set(echo().await, |options| options.max_connections = 2).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = proxy.connect().await;
        ask(&mut client, GET).await;
        clients.push(client);
    }
    let mut third = proxy.connect().await;
    third.write_all(GET).await.unwrap();
    let answer = tokio::time::timeout(SHORT, third.readable()).await;
    assert!(answer.is_err(), "the third client was served");
    clients.pop();
    assert!(read_message(&mut third).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn an_unused_connection_to_the_upstream_is_closed() {
    let (upstream, mut closed) = reporting(|stream, closed| async move {
        echo_on(stream).await;
        closed.send(()).unwrap();
    })
    .await;
    let proxy = start_set(upstream, |options| options.upstream_idle_timeout = SHORT).await;
    let begin = Instant::now();
    let mut client = proxy.connect().await;
    ask(&mut client, GET).await;
    in_time("the end of the connection", closed.recv()).await.unwrap();
    assert!(begin.elapsed() >= SHORT, "{:?}", begin.elapsed());
    // The client's connection is still open, and the next request gets a new one.
    assert!(ask(&mut client, GET).await.starts_with("HTTP/1.1 200 "));
}
