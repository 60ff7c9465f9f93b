//! Requests that two programs could read differently, as raw bytes.

use super::support::*;

/// What follows the head `POST / HTTP/1.1` with a host in requests that the upstream must not get.
const REFUSED_POSTS: &[(&str, &str)] = &[
    ("two lengths", "content-length: 1\r\ncontent-length: 2\r\n\r\nxx"),
    ("a list of lengths", "content-length: 1, 2\r\n\r\nxx"),
    ("a signed length", "content-length: +1\r\n\r\nx"),
    ("a negative length", "content-length: -1\r\n\r\nx"),
    ("a hexadecimal length", "content-length: 0x1\r\n\r\nx"),
    ("a huge length", "content-length: 99999999999999999999\r\n\r\nx"),
    ("an unknown coding", "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("a coding before chunked", "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("a coding after chunked", "transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
    ("chunked twice", "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a space before the colon", "transfer-encoding : chunked\r\n\r\n0\r\n\r\n"),
    ("a vertical tab", "transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("a folded header", "transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    (
        "a Connection header that removes the length",
        "connection: content-length\r\ncontent-length: 1\r\n\r\nx",
    ),
];

/// Other requests that the upstream must not get.
const REFUSED: &[(&str, &str)] = &[
    (
        "chunked in HTTP/1.0",
        "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("a lone CR", "GET / HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n"),
    ("a NUL", "GET / HTTP/1.1\r\nhost: a\r\nx: a\0b\r\n\r\n"),
    ("a header without a name", "GET / HTTP/1.1\r\nhost: a\r\n: b\r\n\r\n"),
    ("no host", "GET / HTTP/1.1\r\n\r\n"),
    ("an empty host", "GET / HTTP/1.1\r\nhost:\r\n\r\n"),
    ("two hosts", "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n"),
    ("a host with a user", "GET / HTTP/1.1\r\nhost: b@a\r\n\r\n"),
    ("a host with a path", "GET / HTTP/1.1\r\nhost: a/b\r\n\r\n"),
    ("a target of another host", "GET http://b/ HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a target with a user", "GET http://b@a/ HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a target without a path", "GET a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n"),
    ("a relative target", "GET a/b HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a star that is no target of GET", "GET * HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a tunnel to another host", "CONNECT b:443 HTTP/1.1\r\nhost: b:443\r\n\r\n"),
    ("a space in the target", "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a control character in the target", "GET /a\x01 HTTP/1.1\r\nhost: a\r\n\r\n"),
    (
        "a Connection header that removes the host",
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: host\r\n\r\n",
    ),
    ("another version", "GET / HTTP/1.2\r\nhost: a\r\n\r\n"),
    ("no version", "GET /\r\n\r\n"),
    ("a TLS handshake", "\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n"),
];

/// Sends bytes, and tests that the proxy answers with a status that begins so, or closes the connection.
async fn refuse(proxy: &Running, name: &str, request: &str, status: &str) {
    let mut client = proxy.connect().await;
    _ = client.write_all(request.as_bytes()).await;
    let answer = read_head(&mut client).await.unwrap_or_default();
    let is_refusal = answer.starts_with(&format!("HTTP/1.1 {status}"));
    assert!(answer.is_empty() || is_refusal, "{name}: {answer}");
}

#[tokio::test]
async fn ambiguous_requests_never_reach_the_upstream() {
    let (upstream, mut got) = counting().await;
    let proxy = start(upstream).await;
    let posts = REFUSED_POSTS
        .iter()
        .map(|(name, rest)| (*name, format!("POST / HTTP/1.1\r\nhost: a\r\n{rest}")));
    let others = REFUSED.iter().map(|(name, request)| (*name, (*request).to_owned()));
    for (name, request) in posts.chain(others) {
        refuse(&proxy, name, &request, "4").await;
        assert!(got.try_recv().is_err(), "{name} reached the upstream");
    }
}

#[tokio::test]
async fn a_length_beside_chunks_is_removed() {
    let proxy = start(echo().await).await;
    for (first, second) in [
        ("content-length: 3", "transfer-encoding: chunked"),
        ("transfer-encoding: chunked", "content-length: 3"),
    ] {
        let rest = format!("{first}\r\n{second}\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        let answer = proxy.request("POST", &rest).await;
        let request = answer.split_once("\r\n\r\n").map_or("", |(_, request)| request);
        let is_refused = answer.starts_with("HTTP/1.1 400");
        let is_chunked = request.contains("transfer-encoding: chunked\r\n")
            && request.ends_with("\r\n\r\n1\r\nx\r\n0\r\n\r\n")
            && !request.contains("content-length");
        assert!(is_refused || is_chunked, "{answer}");
    }
    // The same length twice has one meaning.
    let twice = "content-length: 1\r\ncontent-length: 1\r\n\r\nx";
    let answer = proxy.request("POST", twice).await;
    assert_eq!(answer.matches("content-length: 1\r\n").count(), 1, "{answer}");
}

#[tokio::test]
async fn malformed_chunks_break_the_request() {
    for body in [
        "1\nx\n0\n\n",
        "0x1\r\nx\r\n0\r\n\r\n",
        "-1\r\nx\r\n0\r\n\r\n",
        "1\r\nxy\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nx",
    ] {
        let (upstream, mut end) = recording().await;
        let proxy = start(upstream).await;
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        refuse(&proxy, body, &format!("{head}{body}"), "400").await;
        drop(proxy);
        // The upstream sees a body without its last chunk, or no request.
        if let Ok(Some(got)) =
            tokio::time::timeout(std::time::Duration::from_millis(200), end.recv()).await
        {
            assert!(!got.ends_with("0\r\n\r\n"), "{body:?}: {got}");
        }
    }
}

#[tokio::test]
async fn heads_have_a_limit() {
    let proxy = start(echo().await).await;
    let long = "x".repeat(100_000);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(1000)),
    ] {
        refuse(&proxy, "a long head", &request, "4").await;
    }
}

#[tokio::test]
async fn bytes_that_no_target_has_are_refused_or_sent_unchanged() {
    let proxy = start(echo().await).await;
    for byte in 0x21..0x7f_u8 {
        let target = format!("/a{0}b?c{0}d", char::from(byte));
        let answer = proxy.get(&target).await;
        let is_unchanged =
            byte != b'#' && answer.contains(&format!("\r\n\r\nGET {target} HTTP/1.1\r\n"));
        // `hyper` ends the target at a fragment, before the guard sees it.
        let is_cut = byte == b'#' && answer.contains("\r\n\r\nGET /a HTTP/1.1\r\n");
        assert!(
            is_unchanged || is_cut || answer.starts_with("HTTP/1.1 400 "),
            "{target}: {answer}"
        );
    }
}

#[tokio::test]
async fn ambiguous_answers_become_502() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nxx",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "nonsense\r\n\r\n",
        "",
    ] {
        let proxy = start(answering(answer).await).await;
        let got = proxy.get("/").await;
        assert!(got.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}: {got}");
        assert!(got.contains(r#"{"code":502,"message":""#), "{answer}: {got}");
    }
}
