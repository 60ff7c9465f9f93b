//! The example `shop`, in front of a real database.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::checker::{wait_synced, wait_until};
use crate::server::{Server, Session};
use crate::shop_example::start;

/// Sends a request, and returns the status and the body.
fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = tamis_testing::connect(address);
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn the_shop_of_the_article_asks_the_database_only_for_products_that_exist() {
    let server = Server::start();
    let mut session = Session::open(&server.url(""));
    session.run("CREATE DATABASE pms");
    session.run("USE pms");
    session
        .run("CREATE TABLE pms.product (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100))");
    session.run("INSERT INTO pms.product SELECT seq, CONCAT('product ', seq) FROM seq_1_to_500");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let shop = runtime.block_on(start(&server.url("pms"), listen)).unwrap();
    let get = |id: &str| ask(shop.address, "GET", &format!("/pms/productInfo/{id}"), "");
    wait_synced(&shop.source);

    let (status, body) = get("7");
    assert_eq!((status, &*body), (200, r#"{"code":200,"data":{"id":7,"name":"product 7"}}"#));
    // An attack: of 300 absent ids, about one in a thousand reaches the database.
    let before = shop.queries.load(Ordering::Relaxed);
    for id in 1_000_000..1_000_300 {
        let (status, body) = get(&id.to_string());
        assert_eq!((status, &*body), (404, r#"{"code":404,"message":"产品不存在!"}"#));
    }
    assert_eq!(get("1%20or%201=1").0, 404);
    let asked = shop.queries.load(Ordering::Relaxed) - before;
    assert!(asked <= 5, "{asked}");

    // Read after write: the answer itself teaches the id.
    for _ in 0..20 {
        let (status, body) = ask(shop.address, "POST", "/pms/product", r#"{"name":"tea"}"#);
        assert_eq!(status, 201, "{body}");
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        let (status, body) = get(&answer["data"]["id"].to_string());
        assert_eq!(status, 200, "{body}");
    }
    // Another program writes: the binary log shows it.
    session.run("INSERT INTO pms.product VALUES (100000, 'coffee')");
    wait_until(&shop.source, "the row of another program", || get("100000").0 == 200);
    session.run("DELETE FROM pms.product WHERE id = 100000");
    wait_until(&shop.source, "the deletion", || {
        get("100000").0 == 404 && !shop.ids.generations().contains(b"100000")
    });
    let asked = shop.queries.load(Ordering::Relaxed);
    assert_eq!(get("100000").0, 404);
    assert_eq!(shop.queries.load(Ordering::Relaxed), asked);
}
