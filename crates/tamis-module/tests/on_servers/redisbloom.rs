//! Data moves from RedisBloom to this module and back.

use tamis_resp::Reply;

use crate::client::Client;
use crate::persistence::{info, wait_for};
use crate::server::{HASH_KEY, Host, TestServer, module, redisbloom};

const ITEMS: usize = 300;

/// Starts Redis with RedisBloom.
pub fn with_redisbloom(arguments: &[&str]) -> TestServer {
    let path = redisbloom().display().to_string();
    TestServer::start_with(Host::Redis, &["--loadmodule", &path], arguments)
}

/// Starts Redis with this module, which creates filters with RedisBloom's layout.
pub fn with_tamis(arguments: &[&str]) -> TestServer {
    let path = module().display().to_string();
    let module = ["--loadmodule", &path, "hash-key", HASH_KEY, "bf-layout", "redisbloom"];
    TestServer::start_with(Host::Redis, &module, arguments)
}

/// Sends the same commands, which both modules run.
fn fill(client: &mut Client) {
    client.say(&["BF.RESERVE", "reserved", "0.001", "100"]);
    client.say(&["BF.RESERVE", "fixed", "0.01", "1000", "NONSCALING"]);
    client.say(&["CF.RESERVE", "cuckoo", "64", "BUCKETSIZE", "4", "EXPANSION", "2"]);
    client.say(&["CF.RESERVE", "empty", "64"]);
    for i in 0..ITEMS {
        let item = format!("item:{i}");
        for key in ["grown", "reserved", "fixed"] {
            client.say(&["BF.ADD", key, &item]);
        }
        client.say(&["CF.ADD", "cuckoo", &item]);
        client.say(&["CF.ADD", "defaults", &item]);
    }
    client.say(&["CF.DEL", "cuckoo", "item:0"]);
}

const BLOOMS: [&str; 3] = ["grown", "reserved", "fixed"];
const CUCKOOS: [&str; 2] = ["cuckoo", "defaults"];

/// Returns what both modules show of all filters.
fn shown(client: &mut Client) -> Vec<Reply> {
    let mut shown = Vec::new();
    for key in BLOOMS {
        shown.push(client.say(&["BF.INFO", key]));
        shown.push(client.say(&["BF.DEBUG", key]));
        for i in 0..2 * ITEMS {
            shown.push(client.say(&["BF.EXISTS", key, &format!("item:{i}")]));
        }
    }
    for key in CUCKOOS.into_iter().chain(["empty"]) {
        shown.push(client.say(&["CF.INFO", key]));
        for i in 0..2 * ITEMS {
            shown.push(client.say(&["CF.COUNT", key, &format!("item:{i}")]));
        }
    }
    shown
}

fn assert_equal(client: &mut Client, other: &mut Client) {
    for (one, two) in shown(client).into_iter().zip(shown(other)) {
        assert_eq!(one, two);
    }
}

#[test]
fn an_rdb_file_of_either_module_loads_in_the_other() {
    for from_redisbloom in [true, false] {
        let start = |is_redisbloom| {
            if is_redisbloom { with_redisbloom(&[]) } else { with_tamis(&[]) }
        };
        let from = start(from_redisbloom);
        let mut client = from.connect();
        fill(&mut client);
        assert_eq!(client.say(&["SAVE"]), Reply::ok());
        let mut to = start(!from_redisbloom);
        to.kill();
        std::fs::copy(from.dir.join("dump.rdb"), to.dir.join("dump.rdb")).unwrap();
        to.restart();
        assert_equal(&mut client, &mut to.connect());
    }
}

#[test]
fn an_append_only_file_of_either_module_loads_in_the_other() {
    for from_redisbloom in [true, false] {
        let arguments = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        let start = |is_redisbloom| {
            if is_redisbloom { with_redisbloom(&arguments) } else { with_tamis(&arguments) }
        };
        let from = start(from_redisbloom);
        let mut client = from.connect();
        fill(&mut client);
        for is_rewritten in [false, true] {
            if is_rewritten {
                client.say(&["BGREWRITEAOF"]);
                wait_for(&mut client, "aof_rewrite_in_progress:0");
            }
            let mut to = start(!from_redisbloom);
            to.kill();
            std::fs::remove_dir_all(to.dir.join("appendonlydir")).unwrap();
            std::fs::create_dir(to.dir.join("appendonlydir")).unwrap();
            for entry in std::fs::read_dir(from.dir.join("appendonlydir")).unwrap() {
                let entry = entry.unwrap();
                let copy = to.dir.join("appendonlydir").join(entry.file_name());
                std::fs::copy(entry.path(), copy).unwrap();
            }
            to.restart();
            assert_equal(&mut client, &mut to.connect());
        }
    }
}

#[test]
fn a_dump_of_either_module_restores_in_the_other() {
    let (redisbloom, tamis) = (with_redisbloom(&[]), with_tamis(&[]));
    let (mut redisbloom, mut tamis) = (redisbloom.connect(), tamis.connect());
    fill(&mut redisbloom);
    copy_keys(&mut redisbloom, &mut tamis);
    assert_equal(&mut redisbloom, &mut tamis);
    redisbloom.say(&["FLUSHALL"]);
    copy_keys(&mut tamis, &mut redisbloom);
    assert_equal(&mut redisbloom, &mut tamis);
}

fn copy_keys(from: &mut Client, to: &mut Client) {
    for key in BLOOMS.into_iter().chain(CUCKOOS).chain(["empty"]) {
        let Reply::Bulk(payload) = from.say(&["DUMP", key]) else { panic!("{key}") };
        let restored = to.say(&[&b"RESTORE"[..], key.as_bytes(), b"0", &payload]);
        assert_eq!(restored, Reply::ok(), "{key}");
    }
}

#[test]
fn a_replica_of_the_other_module_follows_its_primary() {
    for primary_is_redisbloom in [true, false] {
        let start = |is_redisbloom| {
            if is_redisbloom { with_redisbloom(&[]) } else { with_tamis(&[]) }
        };
        let (primary, replica) = (start(primary_is_redisbloom), start(!primary_is_redisbloom));
        let (mut client, mut other) = (primary.connect(), replica.connect());
        // Some items are there before the replica, some after.
        client.say(&["BF.ADD", "grown", "item:0"]);
        let port = primary.port.to_string();
        other.say(&["REPLICAOF", "127.0.0.1", &port]);
        wait_for(&mut other, "master_link_status:up");
        fill(&mut client);
        assert_eq!(client.say(&["WAIT", "1", "60000"]), Reply::Integer(1));
        assert_equal(&mut client, &mut other);
        assert!(info(&mut other).contains("role:slave"));
        let log = replica.log();
        assert!(!log.contains("CRITICAL"), "a command of the primary failed: {log}");
    }
}
