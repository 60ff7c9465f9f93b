//! The requests and answers of a leader, byte for byte.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tamis_guard::{Delta, FeedPosition, Generation, Knowledge, Snapshot};
use tamis_testing::{connect, read_to_end};

use super::instances::{Leader, TOKEN};
use crate::checker::{Dir, wait_synced};

pub struct Answer {
    status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find_map(|(field, value)| (field == name).then_some(value))
    }
}

fn send(address: SocketAddr, request: &str) -> Answer {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = read_to_end(&mut stream);
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap();
    Answer { status: head[9..12].parse().unwrap(), head, body }
}

pub fn ask(address: SocketAddr, method: &str, path: &str, more: &str) -> Answer {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
         authorization: Bearer {TOKEN}\r\n{more}\r\n"
    );
    send(address, &request)
}

pub fn start() -> (Dir, Leader) {
    let (dir, leader) = Leader::with_ids(100);
    wait_synced(&leader.source);
    (dir, leader)
}

#[test]
fn a_snapshot_has_a_strong_etag_and_is_sent_once() {
    let (_dir, leader) = start();
    let get = |more: &str| ask(leader.address(), "GET", "/filters/products", more);
    let whole = get("");
    assert_eq!(whole.status, 200, "{}", whole.head);
    let Snapshot { head, generation, .. } =
        Generation::read_snapshot(&whole.body[..], 1 << 30).unwrap();
    assert!((1..=100).all(|id: u64| generation.contains(id.to_string().as_bytes())));
    assert_eq!(head.source, "products");
    let tag = whole.header("etag").unwrap().to_owned();
    assert_eq!(tag, format!("\"{}\"", String::from_utf8(head.position).unwrap()));
    assert_eq!(whole.header("content-length"), Some(&*whole.body.len().to_string()));
    assert_eq!(whole.header("cache-control"), Some("private, no-cache"));
    let same = get(&format!("if-none-match: {tag}\r\n"));
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, Some(&*tag)));
    assert_eq!(get("if-none-match: \"x\"\r\n").status, 200);
    let head = ask(leader.address(), "HEAD", "/filters/products", "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), whole.header("content-length"));
    // All followers share the snapshot, also after some changes.
    leader.ids.insert(b"500").unwrap();
    assert_eq!(get("").body, whole.body);
}

#[test]
fn changes_follow_a_position() {
    let (_dir, leader) = start();
    let get = |query: &str| ask(leader.address(), "GET", &format!("/filters/products?{query}"), "");
    let tag = get("").header("etag").unwrap().trim_matches('"').to_owned();
    let position: FeedPosition = tag.parse().unwrap();
    let none = Delta::decode(&get(&format!("since={tag}")).body).unwrap();
    assert_eq!((none.since, none.position(), none.changes().count()), (position, position, 0));
    assert!(matches!(none.knowledge, Knowledge::Age(age) if age < Duration::from_secs(30)));
    leader.ids.insert(b"500").unwrap();
    leader.ids.delete(b"1").unwrap();
    let two = Delta::decode(&get(&format!("wait=30000&since={tag}")).body).unwrap();
    let ids: Vec<_> = two.changes().map(|it| it.id.to_vec()).collect();
    assert_eq!(ids, [b"500".to_vec(), b"1".to_vec()]);
    assert_eq!(two.position().number, position.number + 2);
    for (query, status) in [
        ("since=".to_owned(), 400),
        ("since=0-0".to_owned(), 400),
        (format!("since={tag}&wait=x"), 400),
        ("since=0000000000000001-1".to_owned(), 410),
        (format!("since={:016x}-{}", position.epoch, position.number + 9), 410),
        (format!("since={:016x}-{}", position.epoch, u64::MAX), 410),
        (format!("since={tag}&wait=0&unknown=1&&x"), 200),
    ] {
        let answer = get(&query);
        assert_eq!(answer.status, status, "{query}: {}", String::from_utf8_lossy(&answer.body));
    }
}

#[test]
fn strangers_and_strange_requests_are_refused() {
    let (_dir, leader) = start();
    let address = leader.address();
    for header in ["", "authorization: Bearer x\r\n", "authorization: a token of the fleet\r\n"] {
        for query in ["", "?since=0000000000000001-1", "?since=x"] {
            let head = format!("GET /filters/products{query} HTTP/1.1\r\nhost: a");
            let request = format!("{head}\r\nconnection: close\r\n{header}\r\n");
            assert_eq!(send(address, &request).status, 401, "{header}{query}");
        }
    }
    let post = ask(address, "POST", "/filters/products", "content-length: 0\r\n");
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
    // Heads are bounded.
    let huge = format!("x: {}\r\n", "y".repeat(1 << 20));
    let mut stream = connect(address);
    // The server may close the connection before it has read all.
    _ = stream
        .write_all(format!("GET /filters/products HTTP/1.1\r\nhost: a\r\n{huge}\r\n").as_bytes());
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    assert_eq!(ask(address, "HEAD", "/filters/products", "").status, 200);
}

#[test]
fn clients_that_read_nothing_do_not_hinder_others() {
    let (_dir, leader) = start();
    let request = format!(
        "GET /filters/products HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let _slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect(leader.address());
            stream.write_all(request.repeat(50).as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(ask(leader.address(), "GET", "/filters/products", "").status, 200);
}
