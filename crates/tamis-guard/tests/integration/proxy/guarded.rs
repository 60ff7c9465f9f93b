//! The guard in the proxy.

use tamis_guard::{GuardLayer, IdSetOptions, Refusal};

use super::support::*;
use crate::checker::integers;
use crate::service::{known, route};

/// Returns a guard that knows the ids 1 to 9.
fn guard(path: &str, place: &str) -> GuardLayer {
    let ids = known(IdSetOptions::new(integers()), 1..10);
    let mut route = route(path, &[place], &ids);
    route.refusal = Refusal::json(r#"{"code":404,"message":"产品不存在!"}"#);
    GuardLayer::new(vec![route])
}

#[tokio::test]
async fn unknown_ids_are_answered_by_the_guard_and_routes_are_replaced_while_it_runs() {
    let proxy = start_guarded(guard("/p/{id}", "path:id")).await;
    assert!(proxy.get("/p/9").await.starts_with("HTTP/1.1 200 "));
    // The target in absolute form has the same id.
    for target in ["/p/10", "/p/x", "//p/./10", "http://a/p/10", "http://a/p/10#x"] {
        let answer = proxy.get(target).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{target}: {answer}");
        assert!(answer.ends_with(r#"{"code":404,"message":"产品不存在!"}"#), "{answer}");
    }
    let mut client = proxy.connect().await;
    let mut status = async |target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n");
        ask(&mut client, request).await.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status("/p/10").await, "404");
    proxy.handle.set_guard(guard("/q/{id}", "path:id"));
    // A connection that is open gets the new routes too.
    assert_eq!(status("/p/10").await, "200");
    assert_eq!(status("/q/10").await, "404");
}

#[tokio::test]
async fn the_guard_decides_about_the_headers_that_the_upstream_gets() {
    let guard = guard("/*", "header:x-id");
    let proxy = start_guarded(guard).await;
    for (headers, passes) in [
        ("x-id: 9\r\n", true),
        ("x-id: 10\r\n", false),
        // Removed before the guard sees it.
        ("connection: x-id\r\nx-id: 10\r\n", true),
    ] {
        let answer = proxy.request("GET", &format!("{headers}\r\n")).await;
        assert_eq!(answer.starts_with("HTTP/1.1 200 "), passes, "{headers}: {answer}");
        assert!(!answer.contains("x-id: 10"), "{answer}");
    }
}

#[tokio::test]
async fn bodies_that_the_guard_reads_arrive_unchanged() {
    let proxy = start_guarded(guard("/orders", "json:/id")).await;
    let head = "POST /orders HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    let exchange = async |rest: &str| proxy.exchange(&format!("{head}{rest}")).await;
    let answer = exchange("content-length: 8\r\n\r\n{\"id\":9}").await;
    assert!(answer.ends_with("\r\n\r\n{\"id\":9}"), "{answer}");
    let answer =
        exchange("transfer-encoding: chunked\r\n\r\n6\r\n{\"id\":\r\n2\r\n9}\r\n0\r\n\r\n").await;
    // The same bytes, in one chunk.
    assert!(answer.contains("8\r\n{\"id\":9}\r\n0\r\n\r\n"), "{answer}");
    assert!(exchange("content-length: 9\r\n\r\n{\"id\":10}").await.starts_with("HTTP/1.1 404 "));
    // Larger than the guard reads: the body passes, also its second half.
    let large = format!("{{\"id\":10,\"x\":\"{}\"}}", "x".repeat(300_000));
    let answer = exchange(&format!("content-length: {}\r\n\r\n{large}", large.len())).await;
    assert!(answer.ends_with(&large), "{}", &answer[..200]);
    // A body without its end is no request.
    let mut client = proxy.connect().await;
    client.write_all(format!("{head}content-length: 9\r\n\r\n{{\"id\"").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let answer = read_all(&mut client).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_still_sends_its_body_gets_the_refusal() {
    let proxy = start_guarded(guard("/p/{id}", "path:id")).await;
    for _ in 0..5 {
        let head = b"POST /p/10 HTTP/1.1\r\nhost: a\r\ncontent-length: 30000000\r\n\r\n";
        let mut client = proxy.send(head).await;
        // More than the sockets hold. A reset would break the write.
        client.write_all(&vec![b'x'; 30_000_000]).await.unwrap();
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(answer.ends_with(r#"{"code":404,"message":"产品不存在!"}"#), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_expects_100_continue_sends_no_body_after_a_refusal() {
    let proxy = start_guarded(guard("/p/{id}", "path:id")).await;
    let request = "POST /p/10 HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\
                   content-length: 100\r\n\r\n";
    let mut client = proxy.connect().await;
    assert!(ask(&mut client, request).await.starts_with("HTTP/1.1 404 "));
    // The next request would be read as the body, so there is none.
    assert_closed(&mut client).await;
}

#[tokio::test]
async fn a_body_that_the_guard_waits_for_has_a_limit_of_time() {
    let mut options = options(echo().await);
    options.body_timeout = std::time::Duration::from_millis(50);
    let proxy = start_with(options, guard("/orders", "json:/id")).await;
    let mut client = proxy.connect().await;
    let request = b"POST /orders HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{\"id\"";
    let answer = ask(&mut client, request).await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_closed(&mut client).await;
}
