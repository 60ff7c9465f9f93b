//! Tests transactions that wait for keys, and transactions that decode data before the keys are
//! locked.

use std::sync::mpsc;
use std::thread::JoinHandle;

use tamis_commands::Value;
use tamis_formats::RedisValue;
use tamis_resp::Protocol;
use tamis_testing::{DEADLINE, join, receive, wait_until};

use super::*;
use crate::config::Config;
use crate::server::Server;
use crate::test_server;

#[test]
fn commands_without_keys_run_during_a_transaction() {
    let server = test_server::start();
    let alone = server.shared().keyspace.exclusive();
    for command in [&[&b"PING"[..]][..], &[b"CLIENT", b"ID"], &[b"TIME"], &[b"SELECT", b"0"]] {
        let running = run_beside(&server, vec![argv(command)]);
        let reply = join("a command that does not wait", running);
        assert!(!reply.starts_with('-'), "{reply}");
    }
    drop(alone);
}

#[test]
fn a_transaction_decodes_data_before_it_locks_the_keys() {
    const LEN: usize = 300_000;
    let server = test_server::start();
    let payload = RedisValue::String(vec![b'x'; LEN]).to_payload();
    let held = server.shared().keyspace.shared();
    let commands: [&[&[u8]]; 7] = [
        &[b"MULTI"],
        &[b"RESTORE", b"a", b"0", &payload],
        &[b"RESTORE", b"a", b"0", &payload],
        &[b"TM.LOAD", b"b", b"no file"],
        &[b"RESTORE", b"a", b"0", b"no payload", b"REPLACE"],
        &[b"STRLEN", b"a"],
        &[b"EXEC"],
    ];
    let running = run_beside(&server, commands.map(argv).to_vec());
    // Wait for the memory of the payloads and of the decoded values.
    wait_until("the data is decoded", || server.shared().held.bytes() >= 4 * LEN as u64);
    drop(held);
    let replies = join("the transaction", running);
    let replies = replies.split_once("*5\r\n").unwrap().1;
    let lines: Vec<&str> = replies.lines().collect();
    assert_eq!((lines[0], lines[4]), ("+OK", format!(":{LEN}").as_str()), "{lines:?}");
    assert!(lines[1].starts_with("-BUSYKEY") && lines[2].starts_with("-ERR"), "{lines:?}");
    assert!(lines[3].starts_with("-ERR DUMP payload"), "{lines:?}");
    assert_eq!(server.shared().held.bytes(), 0);
}

/// Runs commands of a new client on another thread. The thread returns the replies.
fn run_beside(server: &Server, commands: Vec<Vec<Vec<u8>>>) -> JoinHandle<String> {
    let shared = server.shared().clone();
    std::thread::spawn(move || {
        let mut session = test_server::session(&shared);
        let argv: Vec<Vec<&[u8]>> =
            commands.iter().map(|argv| argv.iter().map(Vec::as_slice).collect()).collect();
        let commands: Vec<&[&[u8]]> = argv.iter().map(Vec::as_slice).collect();
        let out = test_server::run(&mut session, &commands);
        String::from_utf8_lossy(&out).into_owned()
    })
}

fn argv(argv: &[&[u8]]) -> Vec<Vec<u8>> {
    argv.iter().map(|word| word.to_vec()).collect()
}

/// Takes a lease on a key while `EXEC` of these commands waits for the key. Runs `meanwhile` during
/// the wait. Returns the replies.
fn run_at_leased_key(
    server: &Server,
    key: &[u8],
    commands: Vec<Vec<Vec<u8>>>,
    meanwhile: impl FnOnce(),
) -> String {
    let shared = server.shared();
    let (begun, has_begun) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    std::thread::scope(|threads| {
        threads.spawn(move || {
            shared.keyspace.lease(key, 0, |_| {
                begun.send(()).unwrap();
                _ = may_end.recv_timeout(DEADLINE);
            });
        });
        receive("the lease", &has_begun);
        let running = run_beside(server, commands);
        wait_until("EXEC waits for the key", || shared.keyspace.is_awaited(key));
        meanwhile();
        drop(end);
        join("the transaction", running)
    })
}

fn set_number(server: &Server, key: &[u8]) {
    server.shared().keyspace.shared().write(key, 0, |value| {
        *value = Some(Value::Bytes(b"1".to_vec().into()));
    });
}

fn number(server: &Server, key: &[u8]) -> String {
    join("GET", run_beside(server, vec![argv(&[b"GET", key])]))
}

#[test]
fn a_transaction_is_refused_if_memory_ends_while_it_waits() {
    let config = Config { max_memory_bytes: 1 << 30, ..test_server::config() };
    let server = Server::start(config).unwrap();
    set_number(&server, b"a");
    let commands = vec![argv(&[b"MULTI"]), argv(&[b"APPEND", b"a", b"2"]), argv(&[b"EXEC"])];
    let mut hold = None;
    let replies = run_at_leased_key(&server, b"a", commands, || {
        hold = Some(server.shared().held.hold(2 << 30));
    });
    drop(hold);
    assert!(replies.contains("-EXECABORT") && replies.contains("OOM"), "{replies}");
    assert_eq!(number(&server, b"a"), "$1\r\n1\r\n");
}

#[test]
fn a_transaction_is_refused_if_the_log_fails_while_it_waits() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { port: 0, threads: 1, dir: dir.path().to_owned(), ..Config::default() };
    let server = Server::start(config).unwrap();
    set_number(&server, b"a");
    let commands = vec![argv(&[b"MULTI"]), argv(&[b"INCR", b"a"]), argv(&[b"EXEC"])];
    let replies = run_at_leased_key(&server, b"a", commands, || {
        for file in std::fs::read_dir(dir.path()).unwrap() {
            _ = std::fs::remove_file(file.unwrap().path());
        }
        wait_until("the log fails", || server.shared().log_failure().is_some());
    });
    assert!(replies.contains("-EXECABORT") && replies.contains("MISCONF"), "{replies}");
    assert_eq!(number(&server, b"a"), "$1\r\n1\r\n");
}

#[test]
fn a_transaction_does_not_decode_data_of_commands_that_will_fail() {
    const LEN: usize = 1 << 20;
    let server = test_server::start();
    for key in [b"a", b"b", b"c"] {
        set_number(&server, key);
    }
    let payload = RedisValue::String(vec![b'x'; LEN]).to_payload();
    let mut commands = vec![argv(&[b"MULTI"])];
    for _ in 0..50 {
        commands.push(argv(&[b"RESTORE", b"a", b"0", &payload]));
    }
    commands.push(argv(&[b"TM.LOAD", b"c", b"no file"]));
    // The key does not exist when `RESTORE` runs.
    commands.push(argv(&[b"DEL", b"b"]));
    commands.push(argv(&[b"RESTORE", b"b", b"0", &payload]));
    commands.push(argv(&[b"EXEC"]));
    let queue_bytes = 51 * tamis_commands::allocation_bytes(payload.len());
    let mut held = 0;
    let replies =
        run_at_leased_key(&server, b"a", commands, || held = server.shared().held.bytes());
    assert!(held > queue_bytes + LEN as u64 - 1, "the last one is not decoded: {held}");
    assert!(held < queue_bytes + 3 * LEN as u64, "{held}");
    let replies = replies.split_once("*53\r\n").unwrap().1;
    let lines: Vec<&str> = replies.lines().collect();
    assert!(lines[..50].iter().all(|line| line.starts_with("-BUSYKEY")), "{lines:?}");
    assert!(lines[50].starts_with("-ERR"), "{lines:?}");
    assert_eq!(lines[51..], [":1", "+OK"]);
}

#[test]
fn a_transaction_decodes_nothing_if_a_watched_key_has_changed() {
    let server = test_server::start();
    let payload = RedisValue::String(vec![b'x'; 1 << 20]).to_payload();
    // Take all permits, so that decoding of long data waits.
    let copies = &server.shared().copies;
    let all = copies.try_acquire_many(copies.available_permits() as u32).unwrap();
    let commands: [&[&[u8]]; 5] = [
        &[b"WATCH", b"w"],
        &[b"SET", b"w", b"1"],
        &[b"MULTI"],
        &[b"RESTORE", b"a", b"0", &payload],
        &[b"EXEC"],
    ];
    let running = run_beside(&server, commands.map(argv).to_vec());
    let replies = join("a transaction that decodes nothing", running);
    drop(all);
    assert!(replies.ends_with("+QUEUED\r\n*-1\r\n"), "{replies}");
}

#[test]
fn data_beyond_the_limit_is_decoded_by_its_command() {
    const LEN: u64 = 100_000;
    let server = test_server::start();
    let payload = RedisValue::String(vec![b'x'; LEN as usize]).to_payload();
    let queued: Vec<_> =
        (0..4).map(|_| argv(&[b"RESTORE", b"a", b"0", &payload, b"REPLACE"])).collect();
    let config = server.shared().config();
    let env = Env::new(&config.filters, Protocol::Resp2, 0);
    let decoded = test_server::block_on(async {
        let prepared = Prepared::of(&queued).await;
        decode_each(server.shared(), &prepared, &env, LEN * 3 / 2).await
    });
    let places: Vec<usize> = decoded.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [0, 1]);
}
