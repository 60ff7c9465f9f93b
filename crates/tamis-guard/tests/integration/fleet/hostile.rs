//! A leader that sends anything.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tamis_guard::source::{LeaderOptions, SourceOptions};
use tamis_guard::{Delta, FeedPosition, Generation, Knowledge, SnapshotHead, SyncState};

use super::http;
use super::instances::{Follower, leader_options};
use crate::checker::{integers, options, wait, wait_until};

/// Starts a server that answers each request with what `answer` returns for its first line.
fn server(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut bytes = vec![0; 64 << 10];
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                let head = String::from_utf8_lossy(&bytes[..read]);
                if stream.write_all(&answer(head.lines().next().unwrap_or_default())).is_err() {
                    break;
                }
            }
        }
    });
    address
}

fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn snapshot(position: &[u8], ids: &str) -> Vec<u8> {
    let generation = Generation::new(10, 1e-7).unwrap();
    generation.insert_key(b"5", Some(5)).unwrap();
    let head = SnapshotHead {
        ids: ids.to_owned(),
        source: "products".to_owned(),
        position: position.to_vec(),
        created: std::time::SystemTime::UNIX_EPOCH,
        built: std::time::SystemTime::UNIX_EPOCH,
    };
    let mut bytes = Vec::new();
    generation.write_snapshot(&head, Vec::new, &mut bytes).unwrap();
    bytes
}

/// Returns the error of a follower of such a leader.
fn error(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> String {
    let leader = LeaderOptions { max_bytes: 1 << 20, ..leader_options(server(answer)) };
    let follower = Follower::with(leader, options());
    let status = wait(&follower.source, "a failure", |status| status.failures > 0);
    assert_eq!(follower.ids.state(), SyncState::Warming);
    let error = status.last_error.unwrap();
    assert!(error.starts_with("the leader: ") && !error.contains('\n'), "{error}");
    assert!(error.len() < 300, "{error}");
    error
}

#[test]
fn each_wrong_answer_is_one_line_and_takes_no_memory() {
    let head = "HTTP/1.1 200 OK\r\n";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (ok(b""), "incomplete"),
        (ok(&[b'x'; 1000]), "not a snapshot"),
        (ok(&snapshot(b"0000000000000001-1", "uuid")), "its ids are \"uuid\""),
        (ok(&snapshot(b"", &integers().to_string())), "another position"),
        (ok(&snapshot(&[0xff; 20], &integers().to_string())), "another position"),
        (format!("{head}content-length: 99999999999\r\n\r\n").into_bytes(), "larger than"),
        (format!("{head}x: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes(), "exchange failed"),
        (format!("{head}{}\r\n\r\n", "x: y\r\n".repeat(1000)).into_bytes(), "exchange failed"),
        (b"220 smtp\r\n".to_vec(), "exchange failed"),
        (b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n".to_vec(), "302 Found"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(), "404 Not Found"),
        (b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n".to_vec(), "410 Gone"),
    ];
    for (answer, expected) in cases {
        let error = error(move |_| answer.clone());
        assert!(error.contains(expected), "{expected:?} is not in {error:?}");
    }
}

#[test]
fn a_body_without_an_end_is_cut_at_the_limit() {
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let body = chunk.repeat(40);
    let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
    let good = snapshot(b"0000000000000001-1", &integers().to_string());
    // As a snapshot, it is none at its first byte. As changes, it is longer than any.
    let more = answer.into_bytes();
    let error = error(move |line| match line.contains("since=") {
        false => ok(&good),
        true => {
            let mut bytes = more.clone();
            bytes.extend(chunk.repeat(40).into_bytes());
            bytes
        }
    });
    assert!(error.contains("larger than 4 MiB"), "{error}");
}

#[test]
fn changes_that_are_none_leave_the_ids_as_they_were() {
    let good = snapshot(b"0000000000000001-1", &integers().to_string());
    let cases: [(&[u8], &str); 3] = [
        (b"", "no changes"),
        (b"\x89TDELTA\n", "wrong length"),
        (b"\x89TDELTA\n\x07\0\0\0", "version 7"),
    ];
    for (delta, expected) in cases {
        let good = good.clone();
        let error = error(move |line| ok(if line.contains("since=") { delta } else { &good }));
        assert!(error.contains(expected), "{expected:?} is not in {error:?}");
    }
    // It always says that the changes are gone.
    let error = error(move |line| match line.contains("since=") {
        false => ok(&good),
        true => b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n".to_vec(),
    });
    assert!(error.contains("replaced during the download"), "{error}");
}

/// Returns the answers of a leader before and after a change.
fn deltas() -> [Delta; 2] {
    let (_dir, leader) = http::start();
    let get =
        |query: &str| http::ask(leader.address(), "GET", &format!("/filters/products{query}"), "");
    let tag = get("").header("etag").unwrap().trim_matches('"').to_owned();
    let changes = || Delta::decode(&get(&format!("?since={tag}")).body).unwrap();
    let none = changes();
    leader.ids.insert(b"500").unwrap();
    [none, changes()]
}

/// Returns the position in the first line of a request; `None` in one for a snapshot.
fn since(line: &str) -> Option<FeedPosition> {
    let (_, query) = line.split_once("since=")?;
    query.split('&').next()?.parse().ok()
}

/// Tests that a follower sends the n-th request of a kind at least n - 1 periods after the first.
fn keeps_its_pace(
    interval: Duration,
    period: Duration,
    mut answer: impl FnMut(&str, &AtomicU32) -> Vec<u8> + Send + 'static,
) {
    const REQUESTS: u32 = 20;
    let requests = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&requests);
    let answer = std::sync::Mutex::new(move |line: &str| answer(line, &counted));
    let leader = leader_options(server(move |line| answer.lock().unwrap()(line)));
    let begin = Instant::now();
    let follower = Follower::with(leader, SourceOptions { interval, ..options() });
    let is_done = || requests.load(Ordering::Relaxed) >= REQUESTS;
    wait_until(&follower.source, "the requests", is_done);
    assert!(begin.elapsed() >= (REQUESTS - 1) * period, "{:?}", begin.elapsed());
    assert_eq!(follower.source.status().failures, 0);
}

#[test]
fn a_leader_that_answers_at_once_without_an_end_keeps_no_core_busy() {
    let good = snapshot(b"0000000000000001-1", &integers().to_string());
    let [mut none, change] = deltas();
    let period = Duration::from_millis(10);
    let hour = Duration::from_secs(3600);
    // Empty answers, although the follower lets the leader wait.
    let whole = good.clone();
    keeps_its_pace(hour, period, move |line, requests| {
        let Some(since) = since(line) else { return ok(&whole) };
        requests.fetch_add(1, Ordering::Relaxed);
        none.since = since;
        ok(&none.encode())
    });
    // More changes without an end, from the snapshot on, or later.
    for first in [1, 5] {
        let (whole, mut more) = (good.clone(), change.clone());
        keeps_its_pace(hour, period, move |line, requests| {
            let Some(since) = since(line) else { return ok(&whole) };
            let number = requests.fetch_add(1, Ordering::Relaxed) + 1;
            more.since = since;
            more.knowledge = if number < first { Knowledge::Unknown } else { Knowledge::More };
            ok(&more.encode())
        });
    }
}

#[test]
fn a_leader_that_forgets_its_changes_after_each_snapshot_sends_one_each_interval() {
    let good = snapshot(b"0000000000000001-1", &integers().to_string());
    let [_, mut change] = deltas();
    let interval = Duration::from_millis(50);
    keeps_its_pace(interval, interval, move |line, snapshots| {
        let Some(since) = since(line) else {
            snapshots.fetch_add(1, Ordering::Relaxed);
            return ok(&good);
        };
        if !line.contains("wait=0") {
            return b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n".to_vec();
        }
        (change.since, change.knowledge) = (since, Knowledge::Unknown);
        ok(&change.encode())
    });
}
