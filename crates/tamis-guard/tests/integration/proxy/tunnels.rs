//! Connections whose protocol changes.

use super::support::*;

/// An upstream that changes to any protocol that it is asked for and returns what it gets.
async fn switching() -> std::net::SocketAddr {
    upstream(|mut stream| async move {
        let head = read_head(&mut stream).await.unwrap();
        let Some(protocol) = head.split("\r\nupgrade: ").nth(1) else {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{head}", head.len());
            return stream.write_all(answer.as_bytes()).await.unwrap();
        };
        let protocol = protocol.split('\r').next().unwrap();
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\
             sec-websocket-accept: x\r\n\r\nhello"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        let (mut read, mut write) = stream.split();
        _ = tokio::io::copy(&mut read, &mut write).await;
        _ = write.write_all(b"bye").await;
    })
    .await
}

#[tokio::test]
async fn a_tunnel_moves_bytes_in_both_directions_until_both_ends_close() {
    let proxy = start(switching().await).await;
    // The first bytes of the new protocol may come with the head.
    let request = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\n\
                   upgrade: WebSocket\r\nsec-websocket-key: k\r\n\r\nfirst";
    let mut client = proxy.send(request).await;
    let head = read_head(&mut client).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    for header in ["connection: upgrade", "upgrade: websocket", "sec-websocket-accept: x"] {
        assert!(head.contains(&format!("\r\n{header}\r\n")), "{head}");
    }
    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"), "{head}");
    let mut bytes = [0; 10];
    in_time("bytes", client.read_exact(&mut bytes)).await.unwrap();
    assert_eq!(&bytes, b"hellofirst");
    for _ in 0..100 {
        client.write_all(b"0123456789").await.unwrap();
        in_time("bytes", client.read_exact(&mut bytes)).await.unwrap();
        assert_eq!(&bytes, b"0123456789");
    }
    // The other direction stays open.
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "bye");
}

#[tokio::test]
async fn http_is_never_tunnelled_past_the_guard() {
    let proxy = start(switching().await).await;
    for protocol in ["h2c", "H2C", "HTTP/2.0", "TLS/1.2", "websocket, h2c", ""] {
        let answer = proxy
            .exchange(&format!(
                "GET / HTTP/1.1\r\nhost: a\r\nconnection: close, upgrade, http2-settings\r\n\
                 http2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\nupgrade: {protocol}\r\n\r\n"
            ))
            .await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{protocol}: {answer}");
        assert!(!answer.contains("upgrade") && !answer.contains("http2-settings"), "{answer}");
    }
    // A request with a body stays a request.
    let body = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close, upgrade\r\n\
                upgrade: websocket\r\ncontent-length: 2\r\n\r\nhi";
    let answer = proxy.exchange(body).await;
    assert!(!answer.contains("HTTP/1.1 101 ") && !answer.contains("upgrade"), "{answer}");
    // Without the Connection header, Upgrade asks for nothing.
    let answer = proxy.request("GET", "upgrade: websocket\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn a_client_learns_which_protocol_the_upstream_requires() {
    let upstream = answering(
        "HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         content-length: 0\r\n\r\n",
    )
    .await;
    let proxy = start(upstream).await;
    let mut client = proxy.connect().await;
    let answer = ask(&mut client, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("\r\nupgrade: websocket\r\n"), "{answer}");
}

#[tokio::test]
async fn an_upstream_that_changes_to_another_protocol_gets_no_tunnel() {
    let upstream = answering(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n",
    )
    .await;
    let proxy = start(upstream).await;
    let answer = proxy
        .exchange(
            "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: chat\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_shutdown_cuts_tunnels_at_its_limit() {
    let limit = std::time::Duration::from_millis(50);
    let proxy = start_set(switching().await, |options| options.shutdown_timeout = limit).await;
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";
    let mut client = proxy.send(request).await;
    read_until(&mut client, "hello").await.unwrap();
    assert_eq!(in_time("the shutdown", proxy.stop()).await.unwrap(), 1);
    assert_closed(&mut client).await;
}
