//! A leader that sends anything.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use tamis_guard::source::LeaderOptions;
use tamis_guard::{Generation, SnapshotHead, SyncState};

use super::instances::{Follower, leader_options};
use crate::checker::{integers, options, wait};

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
    generation.insert(b"5", Some(5)).unwrap();
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
