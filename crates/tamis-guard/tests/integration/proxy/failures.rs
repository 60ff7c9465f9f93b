//! An upstream that does not work.

use std::time::Duration;

use tamis_guard::{GuardLayer, Proxy, ProxyError, ProxyOptions};
use tokio::net::TcpListener;

use super::secure::write_certificate;
use super::support::*;

#[tokio::test]
async fn an_upstream_that_refuses_connections_becomes_502() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let answer = start(address).await.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
    assert!(answer.contains("content-type: application/json"), "{answer}");
    assert!(answer.ends_with(r#"{"code":502,"message":"the upstream cannot be reached"}"#));
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_becomes_504() {
    let (silent, _end) = recording().await;
    let limit = Duration::from_millis(50);
    let proxy = start_set(silent, |options| options.response_timeout = limit).await;
    let answer = proxy.get("/").await;
    assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
    assert!(answer.ends_with(r#"{"code":504,"message":"the upstream did not answer in time"}"#));
}

#[tokio::test]
async fn an_upstream_that_does_not_finish_its_handshake_becomes_504() {
    let (silent, _end) = recording().await;
    let uri = format!("https://localhost:{}", silent.port());
    let folder = tempfile::tempdir().unwrap();
    let proxy = start_set(silent, |options| {
        options.upstream = uri.parse().unwrap();
        options.upstream_ca = Some(write_certificate(folder.path()).certificate);
        options.response_timeout = Duration::from_millis(50);
    })
    .await;
    assert!(proxy.get("/").await.starts_with("HTTP/1.1 504 "));
}

#[tokio::test]
async fn an_answer_before_the_end_of_an_upload_reaches_the_client() {
    let proxy = serving(|mut stream| async move {
        read_head(&mut stream).await;
        let answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig";
        stream.write_all(answer).await.unwrap();
        _ = read_all(&mut stream).await;
    })
    .await;
    for _ in 0..5 {
        let head = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3000000\r\n\r\n";
        let mut client = proxy.send(head).await;
        // The proxy may stop reading once it has answered.
        _ = client.write_all(&vec![b'x'; 3_000_000]).await;
        let answer = read_message(&mut client).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("big"), "{answer}");
    }
}

#[tokio::test]
async fn a_slow_upload_does_not_count_as_a_slow_upstream() {
    let limit = Duration::from_millis(100);
    let proxy = start_set(echo().await, |options| options.response_timeout = limit).await;
    let mut client = proxy.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n").await;
    for byte in b"hello" {
        tokio::time::sleep(Duration::from_millis(60)).await;
        client.write_all(&[*byte]).await.unwrap();
    }
    let answer = read_message(&mut client).await.unwrap();
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[tokio::test]
async fn a_client_sees_that_a_body_is_broken() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
    ] {
        let proxy = start(answering(answer).await).await;
        let got = proxy.get("/").await;
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got}");
        assert!(!got.ends_with("0\r\n\r\n"), "the body looks complete: {got}");
        if answer.contains("content-length") {
            assert!(got.contains("content-length: 10\r\n") && got.ends_with("half"), "{got}");
        } else {
            assert!(got.contains("transfer-encoding: chunked\r\n"), "{got}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_stops_in_a_body_is_broken_off() {
    let upstream = upstream(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
        _ = read_all(&mut stream).await;
    })
    .await;
    let limit = Duration::from_millis(50);
    let proxy = start_set(upstream, |options| options.body_timeout = limit).await;
    assert!(proxy.get("/").await.ends_with("half"));
}

#[tokio::test]
async fn a_connection_that_the_upstream_closed_is_not_used_again() {
    // Each connection serves one request and closes without saying so before.
    let proxy = start(answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await).await;
    let mut client = proxy.connect().await;
    for _ in 0..20 {
        let answer = ask(&mut client, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        // The close may still be on its way when the next request is sent.
        let is_race = answer.starts_with("HTTP/1.1 502 ");
        assert!(is_race || answer.starts_with("HTTP/1.1 200 "), "{answer}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_request_is_sent_once() {
    // Answers the first request, and closes after the head of the second.
    let (upstream, mut got) = reporting(|mut stream, sent| async move {
        read_message(&mut stream).await;
        _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        if let Some(request) = read_message(&mut stream).await {
            sent.send(request).unwrap();
        }
    })
    .await;
    let proxy = start(upstream).await;
    let mut client = proxy.connect().await;
    for expected in ["200", "502"] {
        let pay = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\npay";
        let answer = ask(&mut client, pay).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
    }
    assert!(in_time("the request", got.recv()).await.unwrap().ends_with("pay"));
    assert!(got.try_recv().is_err());
}

#[tokio::test]
async fn wrong_options_are_refused() {
    for (upstream, part) in [
        ("ftp://a", "begins with neither"),
        ("/a", "begins with neither"),
        ("http://u@a", "user name"),
        ("http://a/b", "has a path"),
    ] {
        let options = ProxyOptions::new(upstream.parse().unwrap());
        let error = Proxy::bind(options, GuardLayer::new(Vec::new())).await.expect_err(upstream);
        assert!(error.to_string().contains(part), "{error}");
    }
    let proxy = start(echo().await).await;
    let mut options = options(echo().await);
    options.listen = vec![proxy.address];
    let error = Proxy::bind(options, GuardLayer::new(Vec::new())).await.expect_err("in use");
    assert!(matches!(error, ProxyError::Listen { .. }), "{error}");
}
