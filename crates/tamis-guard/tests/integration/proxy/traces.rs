//! Request ids, trace headers and the request log.

use std::time::Duration;

use tamis_guard::{GuardLayer, IdSetOptions, ProxyOptions};
use tracing::Level;

use super::support::*;
use crate::checker::integers;
use crate::recorder::Recorder;
use crate::service::{known, route};

const TRACE: &str = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\
                     tracestate: a=1,b=2\r\n";

/// Returns a guard that knows no id.
fn guard() -> GuardLayer {
    let ids = known(IdSetOptions::new(integers()), []);
    let mut route = route("/p/{id}", &["path:id"], &ids);
    route.name = "product".to_owned();
    GuardLayer::new(vec![route])
}

fn request(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n")
}

#[tokio::test]
async fn trace_headers_and_request_ids_reach_the_upstream_unchanged() {
    let upstream = echo().await;
    let given = format!("{TRACE}x-request-id: from-the-client\r\n");
    for gives_request_ids in [false, true] {
        let options = ProxyOptions { gives_request_ids, ..options(upstream) };
        let proxy = start_with(options, guard()).await;
        let answer = proxy.exchange(&request("/other", &given)).await;
        let (head, sent) = answer.split_once("\r\n\r\n").unwrap();
        for line in given.lines() {
            assert!(sent.contains(&format!("\r\n{line}\r\n")), "{sent}");
        }
        assert_eq!(head.contains("x-request-id: from-the-client"), gives_request_ids, "{head}");
        let answer = proxy.exchange(&request("/other", "")).await;
        let has_id = answer.split_once("\r\n\r\n").unwrap().1.contains("\r\nx-request-id: ");
        assert_eq!(has_id, gives_request_ids, "{answer}");
        assert!(!answer.contains("traceparent"), "{answer}");
    }
}

#[tokio::test]
async fn a_refusal_has_the_request_id_too() {
    let options = ProxyOptions { gives_request_ids: true, ..options(echo().await) };
    let proxy = start_with(options, guard()).await;
    let answer = proxy.exchange(&request("/p/7", "x-request-id: 12\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("\r\nx-request-id: 12\r\n"));
    let new = proxy.exchange(&request("/p/7", "")).await;
    let id = new.split("\r\nx-request-id: ").nth(1).unwrap().split('\r').next().unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{new}");
    assert!(!proxy.exchange(&request("/p/7", "")).await.contains(id));
}

/// Waits for the line of a path in the request log.
async fn line_of(recorder: &Recorder, path: &str) -> String {
    let mut found = None;
    wait_until(&format!("a line has {path}"), async || {
        let is_of_path = |line: &&String| line.contains(&format!("path={path:?} "));
        found = recorder.lines.lock().unwrap().iter().find(is_of_path).cloned();
        found.is_some()
    })
    .await;
    found.expect("wait_until has seen it")
}

#[tokio::test]
async fn the_request_log_has_the_verdict_the_status_and_the_ids_of_each_request() {
    let recorder = Recorder::new(Level::INFO);
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let options = ProxyOptions { logs_requests: true, ..options(echo().await) };
    let proxy = start_with(options, guard()).await;
    proxy
        .exchange(&request("/p/123456?token=secret", &format!("{TRACE}x-request-id: a b\r\n")))
        .await;
    let line = line_of(&recorder, "/p/123456").await;
    for field in [
        "method=\"GET\" ",
        "status=404 ",
        "route=\"product\" ",
        "verdict=\"refuse\" ",
        "reason=\"absent\" ",
        "request_id=\"a b\" ",
        "trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\" ",
        "remote=127.0.0.1:",
    ] {
        assert!(line.contains(field), "{field}: {line}");
    }
    assert!(!line.contains("secret"), "{line}");
    proxy.exchange(&request("/logged/other", "")).await;
    let line = line_of(&recorder, "/logged/other").await;
    assert!(line.contains("status=200 ") && !line.contains("verdict="), "{line}");
    // Ambiguous requests are in the log too.
    proxy.exchange("GET /logged/bad HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(line_of(&recorder, "/logged/bad").await.contains("status=400 "));
}

#[tokio::test]
async fn a_request_whose_client_has_gone_is_logged_without_a_status() {
    let recorder = Recorder::new(Level::INFO);
    // On this thread: the runtime of the test has no other.
    let _guard = tracing::subscriber::set_default(recorder.clone());
    let silent = upstream(|mut stream| async move {
        read_message(&mut stream).await;
        std::future::pending::<()>().await;
    });
    let options = ProxyOptions { logs_requests: true, ..options(silent.await) };
    let proxy = start_with(options, guard()).await;
    let client = proxy.send(b"GET /gone HTTP/1.1\r\nhost: a\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(client);
    assert!(!line_of(&recorder, "/gone").await.contains("status="));
}
