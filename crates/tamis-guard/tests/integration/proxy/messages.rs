//! Messages that pass.

use super::support::*;

#[tokio::test]
async fn the_target_is_sent_byte_for_byte() {
    let proxy = start(echo().await).await;
    for target in [
        "/",
        "/a/../b/./c//d;v=1",
        "//double/slash",
        "/%2e%2E/%zz/%00/%c3%28",
        "/a?b?c=%26&d=+&&=",
        "/?",
        "/{x}|\"'()*$!~@",
        "/七",
    ] {
        let answer = proxy.get(target).await;
        assert!(
            answer.contains(&format!("\r\n\r\nGET {target} HTTP/1.1\r\n")),
            "{target}: {answer}"
        );
    }
    let answer = proxy.exchange("OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(answer.contains("\r\n\r\nOPTIONS * HTTP/1.1\r\n"), "{answer}");
    let absolute =
        "GET http://a.example/x?y HTTP/1.1\r\nhost: A.example\r\nconnection: close\r\n\r\n";
    let answer = proxy.exchange(absolute).await;
    assert!(answer.contains("\r\n\r\nGET /x?y HTTP/1.1\r\n"), "{answer}");
    assert!(answer.contains("\r\nhost: A.example\r\n"), "{answer}");
}

#[tokio::test]
async fn headers_of_the_connection_are_removed_and_others_stay() {
    let proxy = start(echo().await).await;
    let answer = proxy
        .exchange(
            "GET / HTTP/1.1\r\nHost: shop.example:80\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
             Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: gzip\r\nUpgrade: websocket\r\n\
             X-Two: a\r\nX-Two: b\r\nX-Latin: \u{e9}\r\nX-Forwarded-For: 10.0.0.1\r\n\
             Forwarded: for=10.0.0.1\r\n\r\n",
        )
        .await;
    let request = answer.split_once("\r\n\r\n").unwrap().1;
    // The order of different names has no meaning.
    let mut lines: Vec<&str> = request.trim_end().split("\r\n").collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "GET / HTTP/1.1",
            "host: shop.example:80",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: shop.example:80",
            "x-forwarded-proto: http",
            "x-latin: \u{e9}",
            "x-two: a",
            "x-two: b",
        ]
    );

    let proxy = start_set(echo().await, |options| options.trust_forwarded = true).await;
    let answer = proxy
        .exchange(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: 10.0.0.1\r\n\
             X-Forwarded-Proto: https\r\nForwarded: for=10.0.0.1\r\nTE: trailers\r\n\r\n",
        )
        .await;
    for header in [
        "\r\nx-forwarded-for: 10.0.0.1, 127.0.0.1\r\n",
        "\r\nx-forwarded-proto: https\r\n",
        "\r\nforwarded: for=10.0.0.1\r\n",
        "\r\nte: trailers\r\n",
        "\r\nconnection: te\r\n",
    ] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
}

#[tokio::test]
async fn headers_of_the_upstreams_connection_are_removed() {
    let upstream = answering(
        "HTTP/1.1 200 Fine\r\ncontent-length: 2\r\nconnection: close, x-hop\r\nx-hop: 1\r\n\
         keep-alive: timeout=1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nupgrade: h2c\r\n\r\nok",
    )
    .await;
    let proxy = start(upstream).await;
    let mut client = proxy.connect().await;
    for _ in 0..2 {
        let answer = ask(&mut client, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 Fine\r\n"), "{answer}");
        assert!(answer.contains("set-cookie: a=1\r\nset-cookie: b=2\r\n"), "{answer}");
        assert!(!answer.contains("hop") && !answer.contains("keep-alive"), "{answer}");
        assert!(!answer.contains("connection") && !answer.contains("upgrade"), "{answer}");
    }
}

#[tokio::test]
async fn connections_stay_open_on_both_sides() {
    let (upstream, mut counted) = counting().await;
    let proxy = start(upstream).await;
    let mut client = proxy.connect().await;
    for i in 0..10 {
        let request = format!("POST /{i} HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi");
        let answer = ask(&mut client, request).await;
        assert!(answer.contains(&format!("POST /{i} ")) && answer.ends_with("\r\n\r\nhi"));
    }
    // Requests that are sent at once are answered in their order.
    client.write_all(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n".repeat(3).as_slice()).await.unwrap();
    for _ in 0..3 {
        assert!(read_message(&mut client).await.unwrap().contains("GET /x "));
    }
    assert!(in_time("the count", counted.recv()).await.is_some());
    assert!(counted.try_recv().is_err(), "the proxy opened a second connection");
}

#[tokio::test]
async fn bodies_keep_their_framing() {
    let proxy = start(echo().await).await;
    let chunked = "transfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let answer = proxy.request("POST", chunked).await;
    assert!(answer.contains("\r\ntransfer-encoding: chunked\r\n"), "{answer}");
    assert!(answer.ends_with("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "{answer}");
    // The method says nothing about the body.
    for method in ["GET", "DELETE"] {
        for body in [
            "content-length: 3\r\n\r\nabc",
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ] {
            let answer = proxy.request(method, body).await;
            assert!(answer.contains("abc"), "{method} {body} {answer}");
        }
    }
    let answer = proxy.request("POST", "content-length: 0\r\n\r\n").await;
    assert!(answer.contains("\r\ncontent-length: 0\r\n"), "{answer}");
}

#[tokio::test]
async fn answers_without_a_body_have_none() {
    for (request, answer, end) in [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", "content-length: 7"),
        ("HEAD", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", ""),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", ""),
        ("GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\netag: x\r\n\r\n", "etag: x"),
        (
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            "",
        ),
    ] {
        let proxy = start(answering(answer).await).await;
        let got = proxy.request(request, "\r\n").await;
        let status = answer.rsplit("HTTP/1.1 ").next().unwrap().split('\r').next().unwrap();
        assert!(got.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request} {answer}: {got}");
        assert!(got.ends_with("\r\n\r\n") && got.contains(end), "{request} {answer}: {got}");
        assert_eq!(got.matches("\r\n\r\n").count(), 1, "{got}");
        assert!(!got.contains("content-length: 0"), "{request} {answer}: {got}");
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it_when_the_upstream_takes_the_body() {
    let proxy = start(echo().await).await;
    let head = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    let mut client = proxy.send(head).await;
    assert_eq!(read_head(&mut client).await.unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    let answer = ask(&mut client, "hi").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhi"));
    assert!(!answer.contains("expect"), "{answer}");
}

#[tokio::test]
async fn an_unknown_expectation_is_left_to_the_upstream() {
    let proxy = start(echo().await).await;
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: tea\r\n\r\n";
    let answer = proxy.exchange(request).await;
    assert!(answer.contains("\r\nexpect: tea\r\n"), "{answer}");
}

#[tokio::test]
async fn http_1_0_clients_are_served() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let proxy = start(answering(answer).await).await;
    let answer = proxy.exchange("GET / HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") || answer.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(answer.ends_with("\r\n\r\nok") && !answer.contains("chunked"), "{answer}");
}

#[tokio::test]
async fn announced_trailers_pass_in_both_directions() {
    let (upstream, mut got) = reporting(|mut stream, sent| async move {
        read_head(&mut stream).await;
        sent.send(read_until(&mut stream, "\r\n\r\n").await.unwrap()).unwrap();
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                      2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let proxy = start(upstream).await;
    let answer = proxy
        .exchange(
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close, te\r\nte: trailers\r\n\
             trailer: x-sum, content-length\r\ntransfer-encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nx-sum: 2\r\ncontent-length: 5\r\n\r\n",
        )
        .await;
    // A trailer must not change the length of the message.
    assert_eq!(
        in_time("the request", got.recv()).await.unwrap(),
        "2\r\nhi\r\n0\r\nx-sum: 2\r\n\r\n"
    );
    assert!(answer.ends_with("2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n"), "{answer}");
}
