//! Data moves from RedisBloom to this module and back.

use tamis_resp::Reply;

use crate::client::{Client, with_items};
use crate::server::{HASH_KEY, Host, TestServer, module, redisbloom};
use crate::status::{bulk, info, run, wait_for, wait_for_replica};

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

fn start(is_redisbloom: bool, arguments: &[&str]) -> TestServer {
    if is_redisbloom { with_redisbloom(arguments) } else { with_tamis(arguments) }
}

/// Arguments for an append-only file of commands.
const APPENDS: [&str; 4] = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];

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
        let from = start(from_redisbloom, &[]);
        let mut client = from.connect();
        fill(&mut client);
        assert_eq!(client.say(&["SAVE"]), Reply::ok());
        let mut to = start(!from_redisbloom, &[]);
        to.kill();
        std::fs::copy(from.dir.join("dump.rdb"), to.dir.join("dump.rdb")).unwrap();
        to.restart();
        assert_equal(&mut client, &mut to.connect());
    }
}

#[test]
fn an_append_only_file_of_either_module_loads_in_the_other() {
    for from_redisbloom in [true, false] {
        let from = start(from_redisbloom, &APPENDS);
        let mut client = from.connect();
        fill(&mut client);
        for is_rewritten in [false, true] {
            if is_rewritten {
                client.say(&["BGREWRITEAOF"]);
                wait_for(&mut client, "aof_rewrite_in_progress", "0");
            }
            let mut to = start(!from_redisbloom, &APPENDS);
            to.kill();
            copy_append_only_file(&from, &to);
            to.restart();
            assert_equal(&mut client, &mut to.connect());
        }
    }
}

/// Replaces the append-only file of a server that has ended.
fn copy_append_only_file(from: &TestServer, to: &TestServer) {
    // With `everysec`, a server may write to the file up to two seconds after its reply.
    let mut client = from.connect();
    run(&mut client, "CONFIG SET appendfsync always");
    run(&mut client, "SET last write");
    let [from, to] = [from, to].map(|server| server.dir.join("appendonlydir"));
    std::fs::remove_dir_all(&to).unwrap();
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
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
        let payload = bulk(from.say(&["DUMP", key]));
        let restored = to.say(&[&b"RESTORE"[..], key.as_bytes(), b"0", &payload]);
        assert_eq!(restored, Reply::ok(), "{key}");
    }
}

/// Filters beyond the limits of RedisBloom 8. RedisBloom 2 creates them.
const BEYOND_LIMITS: [(&str, &str); 8] = [
    ("high", "BF.RESERVE high 0.9 100"),
    ("highfixed", "BF.RESERVE highfixed 0.9 1500 NONSCALING"),
    ("large", "BF.RESERVE large 0.24 1500000000 NONSCALING"),
    ("wide", "BF.RESERVE wide 0.01 2 EXPANSION 40000"),
    ("wrapped", "BF.RESERVE wrapped 0.01 10 EXPANSION 4294967298"),
    ("inserted", "BF.INSERT inserted CAPACITY 10 ERROR 0.6 EXPANSION 50000 ITEMS a"),
    ("fixed", "BF.INSERT fixed CAPACITY 1500 ERROR 0.5 NONSCALING ITEMS a"),
    ("defaults", "BF.ADD defaults a"),
];

/// Creates the filters, and adds items until the fixed ones are full.
fn fill_beyond_limits(client: &mut Client) {
    for (key, create) in BEYOND_LIMITS {
        run(client, create);
        client.list(&with_items(&format!("BF.MADD {key}"), 0..2500));
    }
}

/// Asserts that both modules have the same layers, and give the same answers about items.
fn assert_equal_beyond_limits(context: &str, client: &mut Client, other: &mut Client) {
    for (key, create) in BEYOND_LIMITS {
        let exists = with_items(&format!("BF.MEXISTS {key}"), 0..5000);
        for words in [["BF.INFO", key].map(str::to_owned).to_vec(), exists] {
            assert_eq!(client.say(&words), other.say(&words), "{context} {create}");
        }
        let debug = ["BF.DEBUG", key];
        assert_eq!(client.say(&debug), other.say(&debug), "{context} {create}");
    }
}

/// Arguments of `loadmodule` that RedisBloom 2 accepts.
const OLD_ARGUMENTS: [&str; 4] = ["ERROR_RATE", "0.9", "INITIAL_SIZE", "1500000000"];

/// Starts Redis with a module that has [`OLD_ARGUMENTS`] and these others.
fn with_old_arguments(path: &std::path::Path, more: &[&str], arguments: &[&str]) -> TestServer {
    let path = path.display().to_string();
    let module = ["--loadmodule", &path].into_iter().chain(OLD_ARGUMENTS);
    let module: Vec<&str> = module.chain(more.iter().copied()).collect();
    TestServer::start_with(Host::Redis, &module, arguments)
}

#[test]
fn a_replica_obeys_a_redisbloom_whose_filters_are_beyond_its_own_limits() {
    let primary = with_old_arguments(&redisbloom(), &[], &["--repl-diskless-sync-delay", "0"]);
    let replicas = ["tamis", "redisbloom"].map(|layout| {
        let replica = with_old_arguments(module(), &["bf-layout", layout], &[]);
        replicate(&mut replica.connect(), &primary);
        (layout, replica)
    });
    let mut client = primary.connect();
    fill_beyond_limits(&mut client);
    for (layout, replica) in replicas {
        wait_for_replica(&primary, &replica);
        assert_equal_beyond_limits(layout, &mut client, &mut replica.connect());
    }
}

#[test]
fn an_append_only_file_of_a_redisbloom_beyond_the_limits_loads() {
    let from = with_old_arguments(&redisbloom(), &[], &APPENDS);
    let mut client = from.connect();
    fill_beyond_limits(&mut client);
    let mut to = with_old_arguments(module(), &[], &APPENDS);
    to.kill();
    copy_append_only_file(&from, &to);
    to.restart();
    assert_equal_beyond_limits("loaded", &mut client, &mut to.connect());
}

/// Asserts which keys have a type, as docs/scale-out.md lists them.
fn assert_listed(client: &mut Client, name: &str, keys: &[&str]) {
    let keys = Reply::Array(keys.iter().copied().map(Reply::bulk).collect());
    let scanned = client.say(&["SCAN", "0", "TYPE", name, "COUNT", "1000"]);
    assert_eq!(scanned, Reply::Array(vec![Reply::bulk("0"), keys]), "{name}");
}

/// Moves keys to another server, as docs/scale-out.md does.
fn move_keys(client: &mut Client, to: &TestServer, keys: &[&str]) {
    let port = to.port.to_string();
    let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    let words: Vec<&str> = words.into_iter().chain(keys.iter().copied()).collect();
    assert_eq!(client.say(&words), Reply::ok());
}

/// Makes a server a replica, and waits until it has synchronized.
fn replicate(client: &mut Client, primary: &TestServer) {
    run(client, &format!("REPLICAOF 127.0.0.1 {}", primary.port));
    wait_for(client, "master_link_status", "up");
}

fn follow(replica: &TestServer, primary: &TestServer) {
    let mut client = replica.connect();
    replicate(&mut client, primary);
    assert_eq!(run(&mut client, "BF.EXISTS bloom a"), Reply::Integer(1));
}

#[test]
fn keys_of_types_that_one_module_lacks_are_listed_and_moved_before_a_migration() {
    let (old, stays, new) = (with_redisbloom(&[]), with_redisbloom(&[]), with_tamis(&[]));
    let mut client = old.connect();
    run(&mut client, "BF.ADD bloom a");
    let unknown = [
        ("TopK-TYPE", "top", "TOPK.RESERVE top 10"),
        ("CMSk-TYPE", "sketch", "CMS.INITBYDIM sketch 100 5"),
        ("TDIS-TYPE", "digest", "TDIGEST.CREATE digest"),
    ];
    for (name, key, create) in unknown {
        run(&mut client, create);
        assert_listed(&mut client, name, &[key]);
    }
    move_keys(&mut client, &stays, &unknown.map(|(_, key, _)| key));
    for (name, key, _) in unknown {
        assert_listed(&mut client, name, &[]);
        assert_eq!(run(&mut stays.connect(), &format!("TYPE {key}")), Reply::simple(name));
    }
    follow(&new, &old);
    // The other way.
    let mut client = new.connect();
    run(&mut client, "REPLICAOF NO ONE");
    run(&mut client, "TM.RESERVE own KIND counting ITEMS 100");
    run(&mut client, "TM.ADD own a");
    assert_listed(&mut client, "tamis-flt", &["own"]);
    let other = with_tamis(&[]);
    move_keys(&mut client, &other, &["own"]);
    assert_eq!(run(&mut other.connect(), "TM.EXISTS own a"), Reply::Integer(1));
    assert_listed(&mut client, "tamis-flt", &[]);
    follow(&with_redisbloom(&[]), &new);
}

#[test]
fn a_replica_of_the_other_module_follows_its_primary() {
    for primary_is_redisbloom in [true, false] {
        let [primary, replica] =
            [primary_is_redisbloom, !primary_is_redisbloom].map(|it| start(it, &[]));
        let (mut client, mut other) = (primary.connect(), replica.connect());
        // Some items are there before the replica, some after.
        client.say(&["BF.ADD", "grown", "item:0"]);
        replicate(&mut other, &primary);
        fill(&mut client);
        assert_eq!(client.say(&["WAIT", "1", "60000"]), Reply::Integer(1));
        assert_equal(&mut client, &mut other);
        assert_eq!(info(&mut other, "role"), "slave");
        let log = replica.log();
        assert!(!log.contains("CRITICAL"), "a command of the primary failed: {log}");
    }
}
