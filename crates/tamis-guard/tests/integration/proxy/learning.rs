//! The proxy learns from answers, and sends one request at a time for an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tamis_guard::{GuardLayer, IdSetOptions, LearnRule, NotLearnt, SingleFlight};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::support::*;
use crate::checker::integers;
use crate::service::{known, route};

/// Returns a guard that knows the ids 1 to 9, and learns from the answers to POST requests.
fn guard() -> GuardLayer {
    // No id is recent, so that the negative cache takes each of them.
    let recent_for = Duration::ZERO;
    let options = IdSetOptions { rate: 1e-7, recent_for, ..IdSetOptions::new(integers()) };
    let ids = known(options, 1..10);
    let mut route = route("/products/{id}", &["path:id"], &ids);
    route.single_flight = Some(SingleFlight::default());
    let place = "answer json:/id".parse().unwrap();
    let mut rule = LearnRule::new("/products".parse().unwrap(), vec![place], ids);
    rule.methods.push(http::Method::HEAD);
    GuardLayer::new(vec![route]).with_learn(vec![rule])
}

/// Returns the id in a request of the test.
fn new_id(request: &str) -> &str {
    request.split("x-new: ").nth(1).unwrap().split('\r').next().unwrap()
}

/// Creates the products that clients name. Every other answer is chunked, in three parts.
async fn shop(mut stream: TcpStream) {
    let mut is_chunked = false;
    while let Some(request) = read_message(&mut stream).await {
        let answer = if request.starts_with("GET ") {
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na product".to_owned()
        } else if is_chunked {
            let json = format!("{{\"id\":{:06}}}", new_id(&request));
            let (head, tail) = json.split_at(8);
            format!(
                "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n\
                 8\r\n{head}\r\n{:x}\r\n{tail}\r\n0\r\n\r\n",
                tail.len()
            )
        } else {
            let json = format!("{{\"id\":\"{}\"}}", new_id(&request));
            format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{json}", json.len())
        };
        is_chunked = !is_chunked;
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_client_that_has_read_a_new_id_may_ask_for_it_on_each_connection() {
    let proxy = start_with(options(upstream(shop).await), guard()).await;
    let mut other = proxy.connect().await;
    for id in 1000..1200 {
        let get = format!("GET /products/{id} HTTP/1.1\r\nhost: a\r\n\r\n");
        let answer = ask(&mut other, &get).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{id}: {answer}");
        let post = format!("POST /products HTTP/1.1\r\nhost: a\r\nx-new: {id}\r\n\r\n");
        let mut client = proxy.send(post).await;
        // The end of the JSON, which may not be the end of the answer.
        let answer = read_until(&mut client, "}").await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 201 "), "{id}: {answer}");
        let answer = ask(&mut other, &get).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{id}: {answer}");
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_or_empty_teaches_nothing() {
    let cut = [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":1000",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n{\"id\":1000",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n{\"id\":1000\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n{\"id\":1000",
    ];
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n";
    let encoded =
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 11\r\n\r\n{\"id\":1000}";
    let cut = cut.map(|answer| ("POST", answer, NotLearnt::Incomplete));
    for (method, answer, reason) in cut.into_iter().chain([
        ("POST", empty, NotLearnt::NoId),
        ("HEAD", head, NotLearnt::NoId),
        ("POST", encoded, NotLearnt::Encoded),
    ]) {
        let layer = guard();
        let proxy = start_with(options(answering(answer).await), layer.clone()).await;
        let request =
            format!("{method} /products HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        let got = proxy.exchange(&request).await;
        assert!(got.starts_with(&answer[..12]), "{answer:?}: {got}");
        let rule = &layer.learn_rules()[0];
        let what = format!("{answer:?}: {rule:?}");
        wait_until(&what, async || rule.counters.not_learnt(reason) > 0).await;
        assert_eq!(rule.counters.learnt(), 0, "{answer:?}");
    }
}

#[tokio::test]
async fn many_clients_with_a_false_positive_cost_one_request_also_if_the_first_client_goes() {
    let (requests, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (counted, opened) = (Arc::clone(&requests), Arc::clone(&gate));
    let serve = move |mut stream: TcpStream| {
        let (requests, gate) = (Arc::clone(&counted), Arc::clone(&opened));
        async move {
            while read_message(&mut stream).await.is_some() {
                requests.fetch_add(1, Ordering::SeqCst);
                drop(gate.acquire().await.unwrap());
                let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    };
    let layer = guard();
    let proxy = start_with(options(upstream(serve).await), layer.clone()).await;
    let mut clients = Vec::new();
    for number in 0..50 {
        let client = proxy.send(b"GET /products/7 HTTP/1.1\r\nhost: a\r\n\r\n").await;
        clients.push(client);
        if number == 0 {
            wait_until("one request", async || requests.load(Ordering::SeqCst) == 1).await;
        }
    }
    let single = layer.routes()[0].single_flight.as_ref().unwrap();
    wait_until("the others wait", async || single.waited() == 49).await;
    drop(clients.remove(0));
    wait_until("a second request", async || requests.load(Ordering::SeqCst) == 2).await;
    gate.add_permits(10);
    for client in &mut clients {
        let answer = read_message(client).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    assert_eq!(layer.routes()[0].counters.not_found(), 1);
    assert_eq!(single.ids_in_flight(), 0);
}
