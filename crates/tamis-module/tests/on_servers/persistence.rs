//! RDB files, append-only files, copies and crashes.

use std::process::Command;

use tamis_resp::Reply;
use tamis_testing::CommandExt as _;

use crate::client::{Client, with_items};
use crate::server::{Host, TestServer};
use crate::status::{array, bulk, bulks, info, run, wait_for};

/// Creates filters of every kind, with items.
pub fn fill(client: &mut Client) {
    let mut say = |line: &str| _ = run(client, line);
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
    let header = bulk(array(run(client, "BF.SCANDUMP reserved 0")).remove(1));
    client.say(&[&b"BF.LOADCHUNK"[..], b"partial", b"1", &header]);
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
    for (host, server, mut client) in TestServer::each(&[]) {
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
                    wait_for(&mut client, "aof_rewrite_in_progress", "0");
                    assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
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
    for (host, mut server, mut client) in
        TestServer::each(&["--appendonly", "yes", "--appendfsync", "always"])
    {
        for i in 0..500 {
            let item = format!("item:{i}");
            for (name, key) in [("BF.ADD", "a"), ("BF.ADD", "b"), ("CF.ADD", "c")] {
                assert_eq!(client.say(&[name, key, &item]), Reply::Integer(1));
            }
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
    for (host, _server, mut client) in TestServer::each(&[]) {
        fill(&mut client);
        for key in bulks(client.say(&["KEYS", "*"])) {
            let digest = |client: &mut Client, key: &[u8]| {
                client.say(&[&b"DEBUG"[..], b"DIGEST-VALUE", key])
            };
            let expected = digest(&mut client, &key);
            let place = format!("{host:?}, {}", key.escape_ascii());
            let copied = client.say(&[&b"COPY"[..], &key, b"copy", b"REPLACE"]);
            assert_eq!(copied, Reply::Integer(1), "{place}");
            assert_eq!(digest(&mut client, b"copy"), expected, "{place}");
            let payload = bulk(client.say(&[&b"DUMP"[..], &key]));
            client.say(&["DEL", "copy"]);
            let restored = client.say(&[&b"RESTORE"[..], b"copy", b"0", &payload]);
            assert_eq!(restored, Reply::ok(), "{place}");
            assert_eq!(digest(&mut client, b"copy"), expected, "{place}");
        }
    }
}

#[test]
fn the_memory_of_a_value_is_what_the_server_counts() {
    for (host, server, mut client) in TestServer::each(&[]) {
        fill(&mut client);
        client.say(&["BF.RESERVE", "ten million", "0.01", "10000000"]);
        client.say(&with_items("BF.MADD default", 0..20_000));
        // The server counts the buffers of a connection too, and shrinks them when the connection is
        // idle. The new connection has small buffers.
        drop(client);
        let mut client = server.connect();
        wait_for(&mut client, "connected_clients", "1");
        for key in ["ten million", "default", "large", "redisbloom"] {
            let Reply::Integer(usage) = client.say(&["MEMORY", "USAGE", key]) else { panic!() };
            let before = client.info_number("used_memory");
            client.say(&["DEL", key]);
            // Valkey frees large values on another thread.
            wait_for(&mut client, "lazyfree_pending_objects", "0");
            let freed = before as i64 - client.info_number("used_memory") as i64;
            let difference = (usage - freed).abs();
            let bound = usage / 50 + 512;
            assert!(difference < bound, "{host:?}, {key}: usage {usage}, freed {freed}");
        }
    }
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
    let id = server.connect().info_number("process_id");
    let pages = std::fs::read_to_string(format!("/proc/{id}/statm")).unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    let limit = format!("--as={}", pages * 4096 + more_bytes);
    let limited = Command::new("prlimit").args(["--pid", &id.to_string(), &limit]).run();
    assert!(limited.status.success(), "prlimit {limit}");
}
