//! RDB files, append-only files, copies and crashes.

use std::process::Command;

use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, wait_until};

use crate::client::Client;
use crate::server::{Host, TestServer};
use crate::status::{bulk, info_number, run};

/// Creates filters of every kind, with items.
pub fn fill(client: &mut Client) {
    let mut say = |line: &str| {
        let reply = client.say(&line.split(' ').collect::<Vec<_>>());
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    };
    say("BF.ADD default a");
    say("BF.RESERVE reserved 0.01 1000");
    say("BF.RESERVE empty 0.01 1000 NONSCALING");
    say("BF.RESERVE large 0.001 1000000");
    say("CF.RESERVE rcuckoo 1000 BUCKETSIZE 4");
    say("CF.RESERVE emptycuckoo 1000");
    for kind in ["split-block", "classic", "growing", "cuckoo", "counting"] {
        say(&format!("TM.RESERVE {kind} KIND {kind} ITEMS 1000 RATE 0.01"));
        say(&format!("TM.MADD {kind} a b c"));
    }
    say("TM.RESERVE window KIND window WINDOW 3600000 ITEMS 1000");
    say("TM.MADD window a b c");
    say("TM.RESERVE lastitems KIND window WINDOW 1000 ITEMS");
    say("CONFIG SET tamis.bf-layout redisbloom");
    say("BF.RESERVE redisbloom 0.01 50 EXPANSION 2");
    say("CONFIG SET tamis.bf-layout tamis");
    for i in 0..200 {
        for key in ["default", "reserved", "large", "lastitems", "redisbloom"] {
            say(&format!("TM.MADD {key} item:{i} other:{i}"));
        }
        say(&format!("CF.ADD rcuckoo item:{i}"));
    }
    // A load that has not ended.
    let Reply::Array(header) = client.say(&["BF.SCANDUMP", "reserved", "0"]) else { panic!() };
    let Reply::Bulk(header) = &header[1] else { panic!() };
    client.say(&[&b"BF.LOADCHUNK"[..], b"partial", b"1", header]);
    client.say(&["SET", "text", "of the server"]);
}

/// Returns the digest of all keys.
pub fn digest(client: &mut Client) -> Reply {
    let digest = client.say(&["DEBUG", "DIGEST"]);
    assert!(matches!(digest, Reply::Simple(_)), "{digest:?}");
    digest
}

#[test]
fn values_come_back_from_an_rdb_file() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        fill(&mut client);
        let before = digest(&mut client);
        assert_eq!(client.say(&["DEBUG", "RELOAD"]), Reply::ok(), "{host:?}: {}", server.log());
        assert_eq!(digest(&mut client), before, "{host:?}");
        assert_eq!(client.say(&["CF.EXISTS", "rcuckoo", "item:7"]), Reply::Integer(1));
        assert_eq!(client.say(&["BF.EXISTS", "partial", "any"]), Reply::Integer(1));
    }
}

#[test]
fn values_come_back_from_an_append_only_file() {
    for host in Host::ALL {
        for preamble in ["yes", "no"] {
            let arguments = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
            let mut server = TestServer::start(host, &arguments);
            let mut client = server.connect();
            fill(&mut client);
            let before = digest(&mut client);
            for rewrites in [false, true] {
                if rewrites {
                    client.say(&["BGREWRITEAOF"]);
                    wait_for(&mut client, "aof_rewrite_in_progress:0");
                    assert!(info(&mut client).contains("aof_last_bgrewrite_status:ok"));
                }
                client.send(&["SHUTDOWN"]);
                server.restart();
                client = server.connect();
                let place = format!("{host:?}, preamble {preamble}, rewritten: {rewrites}");
                assert_eq!(digest(&mut client), before, "{place}: {}", server.log());
            }
        }
    }
}

#[test]
fn acknowledged_items_survive_a_crash() {
    for host in Host::ALL {
        let mut server =
            TestServer::start(host, &["--appendonly", "yes", "--appendfsync", "always"]);
        let mut client = server.connect();
        for i in 0..500 {
            let item = format!("item:{i}");
            for key in ["a", "b"] {
                assert_eq!(client.say(&["BF.ADD", key, &item]), Reply::Integer(1));
            }
            assert_eq!(client.say(&["CF.ADD", "c", &item]), Reply::Integer(1));
        }
        server.kill();
        server.restart();
        let mut client = server.connect();
        for i in 0..500 {
            let item = format!("item:{i}");
            for (name, key) in [("BF.EXISTS", "a"), ("BF.EXISTS", "b"), ("CF.EXISTS", "c")] {
                assert_eq!(client.say(&[name, key, &item]), Reply::Integer(1), "{host:?}, {item}");
            }
        }
    }
}

#[test]
fn a_copy_and_a_dump_have_the_bytes_of_their_source() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        fill(&mut client);
        let Reply::Array(keys) = client.say(&["KEYS", "*"]) else { panic!() };
        for key in keys {
            let Reply::Bulk(key) = key else { panic!() };
            let digest = |client: &mut Client, key: &[u8]| {
                client.say(&[&b"DEBUG"[..], b"DIGEST-VALUE", key])
            };
            let expected = digest(&mut client, &key);
            let place = format!("{host:?}, {}", key.escape_ascii());
            let copied = client.say(&[&b"COPY"[..], &key, b"copy", b"REPLACE"]);
            assert_eq!(copied, Reply::Integer(1), "{place}");
            assert_eq!(digest(&mut client, b"copy"), expected, "{place}");
            let Reply::Bulk(payload) = client.say(&[&b"DUMP"[..], &key]) else { panic!() };
            client.say(&["DEL", "copy"]);
            let restored = client.say(&[&b"RESTORE"[..], b"copy", b"0", &payload]);
            assert_eq!(restored, Reply::ok(), "{place}");
            assert_eq!(digest(&mut client, b"copy"), expected, "{place}");
        }
    }
}

#[test]
fn the_memory_of_a_value_is_what_the_server_counts() {
    for host in Host::ALL {
        let server = TestServer::start(host, &[]);
        let mut client = server.connect();
        fill(&mut client);
        client.say(&["BF.RESERVE", "ten million", "0.01", "10000000"]);
        let items: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
        let words = ["BF.MADD", "default"].into_iter().chain(items.iter().map(String::as_str));
        client.say(&words.collect::<Vec<_>>());
        // The buffers of the connection would be counted too.
        let mut client = server.connect();
        for key in ["ten million", "default", "large", "redisbloom"] {
            let Reply::Integer(usage) = client.say(&["MEMORY", "USAGE", key]) else { panic!() };
            let before = used_memory(&mut client);
            client.say(&["DEL", key]);
            // Valkey frees large values on another thread.
            wait_for(&mut client, "lazyfree_pending_objects:0");
            let freed = before - used_memory(&mut client);
            let difference = (usage - freed).abs();
            let bound = usage / 50 + 512;
            assert!(difference < bound, "{host:?}, {key}: usage {usage}, freed {freed}");
        }
    }
}

fn used_memory(client: &mut Client) -> i64 {
    let info = info(client);
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse().unwrap()
}

/// Returns the reply of `INFO`.
pub fn info(client: &mut Client) -> String {
    match client.say(&["INFO", "everything"]) {
        Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        Reply::Verbatim { text, .. } => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Waits until the reply of `INFO` has this line.
pub fn wait_for(client: &mut Client, line: &str) {
    wait_until(format_args!("INFO has the line {line}"), || {
        info(client).lines().any(|it| it.trim() == line)
    });
}

#[test]
fn a_value_without_memory_is_not_called_damaged() {
    let commands = [
        "BF.RESERVE k 0.01 200000000 NONSCALING",
        "TM.RESERVE k KIND classic MEMORY 268435456 RATE 0.01",
        "BF.RESERVE k 0.01 100000000 NONSCALING",
        "CF.RESERVE k 134217728",
    ];
    for host in Host::ALL {
        let source = TestServer::start(host, &[]);
        let mut client = source.connect();
        for (i, command) in commands.into_iter().enumerate() {
            let layout = if i == 2 { "redisbloom" } else { "tamis" };
            run(&mut client, &format!("CONFIG SET tamis.bf-layout {layout}"));
            run(&mut client, command);
            let payload = bulk(run(&mut client, "DUMP k"));
            run(&mut client, "DEL k");
            // The compressed payload is short. The server has memory for its longest string.
            assert!(payload.len() < 8 << 20, "{command}: {}", payload.len());
            let target = TestServer::start(host, &[]);
            limit_memory(&target, 200 << 20);
            let refused = target.connect().say(&[&b"RESTORE"[..], b"k", b"0", &payload]);
            assert!(matches!(refused, Reply::Error(_)), "{host:?}, {command}: {refused:?}");
            let log = target.log();
            assert!(log.contains("not enough memory for it"), "{host:?}, {command}: {log}");
        }
    }
}

/// Limits the memory that a server may still allocate.
fn limit_memory(server: &TestServer, more_bytes: u64) {
    let id = info_number(&mut server.connect(), "process_id");
    let pages = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = format!("--as={}", pages * 4096 + more_bytes);
    let limited = Command::new("prlimit").args(["--pid", &id.to_string(), &limit]).run();
    assert!(limited.status.success(), "prlimit {limit}");
}
