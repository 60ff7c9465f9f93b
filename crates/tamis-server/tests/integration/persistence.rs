//! A server keeps its data across restarts, however it ended.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::{Client, with_items};
use crate::data_folder::{
    LOG_HEADER_BYTES, assert_refused, check, config, copy_of, logs, only_log, repair, restart,
    secret_of, start, start_new,
};
use crate::support::{self, chunks, connect, load_chunk, restore, start_with};
use tamis_formats::RedisValue;
use tamis_resp::Reply;
use tamis_server::{Config, FsyncPolicy, HashKey, Server};
use tamis_testing::{SetOnDrop, join, try_connect, wait_for, wait_until};

/// The commands that query every key, before and after a restart.
const QUESTIONS: [&str; 19] = [
    "BF.CARD made",
    "BF.CARD grown",
    "BF.MEXISTS grown a b c d e f",
    "BF.DEBUG reserved",
    "BF.MEXISTS reserved a b c d",
    "BF.DEBUG redisbloom",
    "BF.SCANDUMP redisbloom 1",
    "CF.DEBUG cuckoo",
    "CF.SCANDUMP cuckoo 1",
    "GET text",
    "PEXPIRETIME text",
    "GET number",
    "GET moved",
    "EXISTS away text old",
    "BF.CARD transacted",
    "MGET one two absent appended",
    "PEXPIRETIME timed",
    "PEXPIRETIME kept",
    "DBSIZE",
];

const CHANGES: [&str; 39] = [
    "BF.MADD made a b c",
    "BF.RESERVE grown 0.01 2",
    "BF.MADD grown a b c d",
    "BF.ADD grown e",
    "BF.RESERVE reserved 0.001 1000 NONSCALING",
    "BF.MADD reserved a b",
    "BF.ADD reserved c",
    "CONFIG SET bf-layout redisbloom",
    "CONFIG SET bf-initial-size 3",
    "BF.MADD redisbloom a b c d e f g h",
    "CONFIG SET bf-layout tamis",
    "CF.RESERVE cuckoo 8",
    "CF.INSERT cuckoo ITEMS a b c d e f g h i j k l m n o p",
    "CF.DEL cuckoo a",
    "CF.DEL cuckoo b",
    "SET away gone",
    "DEL away none",
    "SET text hello",
    "PEXPIREAT text 4102444800000",
    "INCR number",
    "INCR number",
    "SET old name",
    "RENAME old moved",
    "MULTI",
    "BF.ADD transacted a",
    "BF.ADD transacted b",
    "EXEC",
    "BF.ADD made a",
    "BF.ADD none",
    "MSET one 1 two 2 kept 3",
    "MSET one 3 one 4",
    "SETNX absent a",
    "SETNX absent b",
    "APPEND appended x",
    "APPEND appended y",
    "SETEX timed 100000 x",
    "GETEX timed PX 123456789",
    "PSETEX kept 1000000 x",
    "GETEX kept PERSIST",
];

fn ask(client: &mut Client, questions: &[&str]) -> Vec<Reply> {
    questions.iter().map(|question| client.ask(question)).collect()
}

fn change(client: &mut Client) {
    for change in CHANGES {
        client.ask(change);
    }
}

/// Checks that the answers to `questions` are the same after a start.
fn assert_same_after_a_start(
    dir: &Path,
    (server, mut client): (Server, Client),
    questions: &[&str],
) {
    let before = ask(&mut client, questions);
    drop(server);
    let (_server, mut client) = start(dir);
    assert_eq!(ask(&mut client, questions), before);
}

#[test]
fn every_key_is_restored_after_a_restart() {
    for (save_first, save_last) in [(false, false), (true, false), (false, true), (true, true)] {
        let (dir, server, mut client) = start_new();
        if save_first {
            client.say(&["BF.ADD", "early", "a"]);
            client.say(&["SAVE"]);
            client.say(&["DEL", "early"]);
        }
        change(&mut client);
        if save_last {
            assert_eq!(client.say(&["SAVE"]), Reply::ok());
        }
        let before = ask(&mut client, &QUESTIONS);
        drop(server);
        for _ in 0..3 {
            let (_server, mut client) = start(dir.path());
            assert_eq!(ask(&mut client, &QUESTIONS), before);
        }
    }
}

#[test]
fn alternating_inserts_are_replayed_into_their_own_keys() {
    let (dir, server, mut client) = start_new();
    // The small filter grows at the tenth item, between similar changes. The hash keys are random: at
    // this rate, none of the absent items is a false positive.
    client.ask("BF.RESERVE small 0.000000001 10");
    client.ask("BF.RESERVE large 0.000000001 1000");
    client.ask("BF.RESERVE gone 0.000000001 1000");
    let item = |i: u32| format!("item:{i}");
    for i in 0..300 {
        let keys = if i < 100 { &["small", "large", "gone"][..] } else { &["large"] };
        for key in keys {
            client.say(&["BF.ADD", key, &item(i)]);
        }
        if i == 50 {
            client.ask("DEL gone");
            client.ask("BF.RESERVE gone 0.000000001 1000");
        }
    }
    for i in 0..100 {
        client.say(&["BF.ADD", "small", &item(i + 100)]);
    }
    let questions =
        ["small", "large", "gone"].map(|key| with_items(&format!("BF.MEXISTS {key}"), 0..400));
    let ask = |client: &mut Client| questions.each_ref().map(|question| client.say(question));
    let before = ask(&mut client);
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(ask(&mut client), before);
    let count = |reply: &Reply| {
        let Reply::Array(replies) = reply else { panic!() };
        replies.iter().filter(|it| **it == Reply::Integer(1)).count()
    };
    assert_eq!(before.each_ref().map(count), [200, 300, 49]);
}

#[test]
fn a_large_copy_is_equal_after_a_restart_despite_concurrent_changes() {
    let (dir, server, mut client) = start_new();
    // Clients insert into the shared filter while it is leased, and wait for the other one.
    client.ask("BF.RESERVE shared 0.0001 2000000");
    client.ask("TM.RESERVE alone KIND cuckoo ITEMS 2000000");
    let questions = ["DUMP shared-copy", "DUMP alone-copy", "DUMP shared", "DUMP alone"];
    let address = server.addresses()[0];
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let _end = SetOnDrop(&is_done);
        threads.spawn(|| {
            let mut other = Client::connect(address);
            let mut item = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                for key in ["shared", "alone"] {
                    other.say(&["TM.ADD", key, &item.to_string()]);
                }
                item += 1;
            }
        });
        for round in 0..20 {
            for key in ["shared", "alone"] {
                let mine = format!("round:{round}");
                assert_eq!(client.say(&["TM.ADD", key, &mine]), Reply::Integer(1));
                let copy = format!("{key}-copy");
                assert_eq!(client.say(&["COPY", key, &copy, "REPLACE"]), Reply::Integer(1));
                assert_eq!(client.say(&["TM.EXISTS", &copy, &mine]), Reply::Integer(1));
            }
        }
    });
    let before = ask(&mut client, &questions);
    let (_server, mut client) = restart(server, &dir);
    assert!(ask(&mut client, &questions) == before, "the log says what was answered");
}

#[test]
fn a_flush_is_replayed() {
    let (dir, server, mut client) = start_new();
    change(&mut client);
    client.say(&["FLUSHALL"]);
    client.say(&["SET", "after", "1"]);
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(client.say(&["DBSIZE"]), Reply::Integer(1));
}

#[test]
fn expired_keys_are_not_restored() {
    let (dir, server, mut client) = start_new();
    for key in ["one", "two"] {
        client.say(&["SET", key, "1"]);
        client.say(&["PEXPIRE", key, "30"]);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    client.say(&["INCR", "two"]);
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(client.say(&["EXISTS", "one"]), Reply::Integer(0));
    assert_eq!(client.say(&["GET", "two"]), Reply::bulk("1"));
    assert_eq!(client.say(&["TTL", "two"]), Reply::Integer(-1));
}

#[test]
fn a_snapshot_during_writes_loses_nothing() {
    let (dir, server, mut client) = start_new();
    client.say(&["BF.RESERVE", "reserved", "0.001", "200000"]);
    let address = server.addresses()[0];
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let _end = SetOnDrop(&is_done);
        let writers: Vec<_> = (0..2)
            .map(|thread| {
                threads.spawn(move || {
                    let mut client = Client::connect(address);
                    for first in (0..10_000).step_by(50) {
                        for key in ["reserved", "grown"] {
                            let mut words = vec!["BF.MADD".to_owned(), key.to_owned()];
                            words.extend((first..first + 50).map(|i| format!("{thread}:{i}")));
                            client.say(&words);
                        }
                        client.say(&["CF.ADD", "cuckoo", &format!("{thread}:{first}")]);
                        client.say(&["INCR", "number"]);
                        // A key that exists at every moment, under changing names.
                        let (from, to) =
                            (format!("{thread}:k{first}"), format!("{thread}:k{}", first + 50));
                        if first == 0 {
                            client.say(&["SET", &from, "moving"]);
                        }
                        client.say(&["RENAME", &from, &to]);
                    }
                })
            })
            .collect();
        threads.spawn(|| {
            let mut client = Client::connect(address);
            while !is_done.load(Ordering::Relaxed) {
                assert_eq!(client.say(&["SAVE"]), Reply::ok());
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let questions = [
        "BF.CARD grown",
        "BF.CARD reserved",
        "CF.DEBUG cuckoo",
        "CF.SCANDUMP cuckoo 1",
        "GET number",
        "GET 0:k10000",
        "DBSIZE",
    ];
    let before = ask(&mut client, &questions);
    assert_eq!(before[4], Reply::bulk("400"));
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(ask(&mut client, &questions), before);
    for thread in 0..2 {
        for key in ["reserved", "grown"] {
            let mut words = vec!["BF.MEXISTS".to_owned(), key.to_owned()];
            words.extend((0..10_000).map(|i| format!("{thread}:{i}")));
            let found = client.list(&words);
            assert!(found.iter().all(|one| *one == Reply::Integer(1)), "{key}");
        }
    }
}

/// Returns a folder after a crash of a server that never synced its log.
fn unsynced(change: impl FnOnce(&mut Client)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let sync = FsyncPolicy::Never;
    let (_server, mut client) = start_with(Config { sync, ..config(dir.path()) });
    change(&mut client);
    copy_of(dir.path())
}

#[test]
fn a_torn_tail_is_truncated_at_any_position() {
    let dir = unsynced(|client| {
        for i in 0..20 {
            client.say(&["INCR", "number"]);
            client.say(&["BF.ADD", "seen", &i.to_string()]);
        }
    });
    let log = only_log(dir.path());
    let whole = std::fs::read(&log).unwrap();
    let mut last = 20;
    for len in (LOG_HEADER_BYTES..whole.len()).rev().step_by(7) {
        std::fs::write(&log, &whole[..len]).unwrap();
        let (server, mut client) = start(dir.path());
        let number = match client.say(&["GET", "number"]) {
            Reply::Bulk(text) => String::from_utf8(text).unwrap().parse().unwrap(),
            _ => 0,
        };
        assert!(number <= last, "{number} after {last}");
        last = number;
        // A change that is added to a truncated log exists after the next start.
        client.say(&["SET", "after", "cut"]);
        let (_server, mut client) = restart(server, &dir);
        assert_eq!(client.say(&["GET", "after"]), Reply::bulk("cut"));
    }
    assert_eq!(last, 0);
}

#[test]
fn damage_in_the_middle_is_refused_and_nothing_is_changed() {
    let (dir, server, mut client) = start_new();
    for i in 0..20 {
        client.say(&["BF.ADD", "seen", &i.to_string()]);
    }
    client.say(&["SET", "other", "key"]);
    client.say(&["SAVE"]);
    for i in 20..40 {
        client.say(&["BF.ADD", "seen", &i.to_string()]);
    }
    drop(server);
    let log = only_log(dir.path());
    let snapshot = dir.path().join("snapshot-1.tamis");
    for (path, places) in [(&log, LOG_HEADER_BYTES..300), (&snapshot, 20..400)] {
        let whole = std::fs::read(path).unwrap();
        for at in places.step_by(5) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            std::fs::write(path, &flipped).unwrap();
            assert_refused(dir.path(), &["damaged at byte", "backup", "tamis check-data --repair"]);
            assert_eq!(std::fs::read(path).unwrap(), flipped, "left as it is");
        }
        std::fs::write(path, &whole).unwrap();
    }
    for path in [&log, &snapshot] {
        let whole = std::fs::read(path).unwrap();
        let mut other = whole.clone();
        other[8] = 200;
        let check = xxhash_rust::xxh3::xxh3_64(&other[..20]) as u32;
        other[20..24].copy_from_slice(&check.to_le_bytes());
        std::fs::write(path, &other).unwrap();
        assert_refused(dir.path(), &["not a file of this version"]);
        let refused = repair(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("not a file of this version"), "{refused}");
        std::fs::write(path, &whole).unwrap();
    }
    std::fs::remove_file(&log).unwrap();
    assert_refused(dir.path(), &["missing"]);
}

#[test]
fn a_folder_has_one_server() {
    let (dir, _server, _) = start_new();
    assert_refused(dir.path(), &["another server", "--dir"]);
}

#[test]
fn a_folder_whose_lock_file_is_deleted_has_one_server() {
    let (dir, server, _) = start_new();
    std::fs::remove_file(dir.path().join("lock")).unwrap();
    assert_refused(dir.path(), &["another server"]);
    let refused = check(dir.path()).unwrap_err().to_string();
    assert!(refused.contains("another server"), "{refused}");
    drop(server);
    drop(start(dir.path()));
}

#[test]
fn a_damaged_hash_key_is_found_by_a_check_and_set_aside_by_a_repair() {
    let (dir, server, mut client) = start_new();
    client.say(&["BF.ADD", "seen", "a"]);
    drop(server);
    let path = dir.path().join("hash-key");
    std::fs::write(&path, "0011").unwrap();
    let started = Server::start(config(dir.path())).unwrap_err().to_string();
    let checked = check(dir.path()).unwrap_err();
    assert!(matches!(checked, tamis_server::DurabilityError::Damaged { .. }), "{checked}");
    for refused in [started, checked.to_string()] {
        assert!(refused.contains("hash-key") && refused.contains("32 hexadecimal"), "{refused}");
    }
    // With another option, a start does not read the file, and a check and a repair agree with it.
    for hash_key in [HashKey::None, HashKey::Fixed([7; 16])] {
        drop(Server::start(Config { hash_key, ..config(dir.path()) }).unwrap());
        assert_eq!(tamis_server::check_data(dir.path(), hash_key).unwrap().keys, 1);
        assert_eq!(tamis_server::repair_data(dir.path(), hash_key).unwrap().aside, None);
    }
    let report = repair(dir.path()).unwrap();
    assert_eq!((report.keys, report.lost.len()), (1, 1), "{report:?}");
    assert_eq!(std::fs::read_to_string(report.aside.unwrap().join("hash-key")).unwrap(), "0011");
    assert_eq!(check(dir.path()).unwrap().keys, 1);
    let (_server, mut client) = start(dir.path());
    assert_eq!(client.say(&["BF.EXISTS", "seen", "a"]), Reply::Integer(1));
}

/// The filters of every kind, each made by these commands.
const FILTERS: [&str; 9] = [
    "BF.RESERVE {k} 0.01 1000",
    "BF.RESERVE {k} 0.01 20 EXPANSION 2",
    "TM.RESERVE {k} KIND split-block ITEMS 100",
    "TM.RESERVE {k} KIND classic ITEMS 100",
    "TM.RESERVE {k} KIND growing ITEMS 100",
    "TM.RESERVE {k} KIND cuckoo ITEMS 100",
    "TM.RESERVE {k} KIND counting ITEMS 100",
    "TM.RESERVE {k} KIND window WINDOW 100 ITEMS",
    "TM.RESERVE {k} KIND window WINDOW 10000 ITEMS 100",
];

fn start_with_debug(dir: &Path) -> (Server, Client) {
    start_with(Config { debug_command: tamis_server::DebugCommand::Yes, ..config(dir) })
}

#[test]
fn a_payload_that_restore_accepts_never_keeps_the_server_from_starting() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = start_with_debug(dir.path());
    let mut payloads = Vec::new();
    for (i, reserve) in FILTERS.iter().enumerate() {
        let made = client.ask(&reserve.replace("{k}", &format!("made{i}")));
        assert_eq!(made, Reply::ok(), "{reserve}");
        for _ in 0..2 {
            let payload = client.bytes(&["DUMP", &format!("made{i}")]);
            let Ok(RedisValue::Tamis(image)) = RedisValue::from_payload(&payload, u64::MAX) else {
                panic!("{reserve}")
            };
            payloads.push(image);
            client.say(&["TM.ADD", &format!("made{i}"), "item"]);
        }
    }
    let mut accepted = Vec::new();
    for (i, image) in payloads.iter().enumerate() {
        // Another tag, and another number at every place of the head.
        let tags = (0..12_u8).map(|tag| (0, tag));
        let numbers = (8..image.len().min(160)).flat_map(|at| [(at, 1), (at, 0x80)]);
        for (at, change) in tags.chain(numbers) {
            let mut changed = image.clone();
            changed[at] = if at == 0 { change } else { changed[at] ^ change };
            for cut in [changed.len(), changed.len().min(120)] {
                let payload = RedisValue::Tamis(changed[..cut].to_vec()).to_payload();
                let key = format!("r{i}:{at}:{change}:{cut}");
                if client.say(&restore(&key, &payload)) == Reply::ok() {
                    accepted.push(key);
                }
            }
        }
    }
    assert!(accepted.len() > 100, "{}", accepted.len());
    for key in &accepted {
        assert_eq!(client.say(&["COPY", key, &format!("c{key}")]), Reply::Integer(1), "{key}");
    }
    let values = |client: &mut Client| -> Vec<_> {
        let keys = accepted.iter().flat_map(|key| [key.clone(), format!("c{key}")]);
        keys.map(|key| client.bytes(&["DUMP", &key])).collect()
    };
    let before = values(&mut client);
    drop(server);
    for _ in 0..2 {
        let (_server, mut client) = start_with_debug(dir.path());
        assert!(values(&mut client) == before, "a value has changed");
        assert_eq!(client.say(&["DEBUG", "RELOAD"]), Reply::ok());
        assert!(values(&mut client) == before, "a value has changed");
    }
}

#[test]
fn the_clock_of_a_window_survives_every_way_to_keep_or_copy_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut client) = start_with_debug(dir.path());
    client.say(&["TM.RESERVE", "w", "KIND", "window", "WINDOW", "10000", "ITEMS", "100"]);
    assert_eq!(client.say(&["TM.ADD", "w", "early"]), Reply::Integer(1));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ahead = (now.as_millis() + 55_000).to_string();
    assert_eq!(client.say(&["TM.ADVANCE", "w", &ahead]), Reply::ok());
    let dump = client.bytes(&["DUMP", "w"]);
    let file = client.bytes(&["TM.DUMP", "w"]);
    assert_eq!(client.say(&["COPY", "w", "copied"]), Reply::Integer(1));
    assert_eq!(client.say(&restore("restored", &dump)), Reply::ok());
    assert_eq!(client.say(&[&b"TM.LOAD"[..], b"loaded", &file]), Reply::ok());
    for (iterator, data) in chunks(&mut client, "w") {
        assert_eq!(client.say(&load_chunk("chunks", iterator, &data)), Reply::ok());
    }
    let keys = ["w", "copied", "restored", "loaded", "chunks"];
    let assert_advanced = |client: &mut Client, when: &str| {
        for key in keys {
            let reply = client.say(&["TM.EXISTS", key, "early"]);
            assert_eq!(reply, Reply::Integer(0), "{key} {when}: its clock went back");
        }
    };
    assert_advanced(&mut client, "at once");
    assert_eq!(client.say(&["DEBUG", "RELOAD", "NOSAVE"]), Reply::ok());
    assert_advanced(&mut client, "after a reload");
    let (server, mut client) = restart(server, &dir);
    assert_advanced(&mut client, "after a replay");
    assert_eq!(client.say(&["SAVE"]), Reply::ok());
    let (_server, mut client) = restart(server, &dir);
    assert_advanced(&mut client, "after a snapshot");
}

#[test]
fn an_unusable_folder_is_named_in_the_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_refused(&file.join("below"), &["below"]);
}

#[test]
fn a_log_that_grew_is_replaced_by_a_snapshot() {
    const REWRITE_BYTES: u64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let config = Config { rewrite_bytes: REWRITE_BYTES, ..config(dir.path()) };
    let (server, mut client) = start_with(config);
    for _ in 0..2000 {
        client.say(&["SET", "key", &"x".repeat(100)]);
    }
    // The commands have more than twice this size. A snapshot may be written before the last ones,
    // which then stay in the new log.
    wait_until("a snapshot replaces the log", || {
        client.info_number("aof_current_size") < REWRITE_BYTES
    });
    // The server deletes the old log after it has written the snapshot. It starts no other snapshot,
    // because no other command is sent.
    wait_until("the server deletes the old log", || logs(dir.path()).len() == 1);
    drop(server);
    assert!(std::fs::metadata(only_log(dir.path())).unwrap().len() < REWRITE_BYTES);
    let (_server, mut client) = start(dir.path());
    assert_eq!(client.say(&["GET", "key"]), Reply::bulk("x".repeat(100)));
}

#[test]
fn appendfsync_always_replies_after_the_sync() {
    let dir = tempfile::tempdir().unwrap();
    let sync = FsyncPolicy::Always;
    let (_server, mut client) = start_with(Config { sync, ..config(dir.path()) });
    for i in 0..50 {
        assert_eq!(client.say(&["BF.ADD", "seen", &i.to_string()]), Reply::Integer(1));
        // The current data on the disk is enough for the same answers.
        let copy = copy_of(dir.path());
        let (_server, mut other) = start(copy.path());
        assert_eq!(other.say(&["BF.EXISTS", "seen", &i.to_string()]), Reply::Integer(1));
    }
}

#[test]
fn a_transaction_is_kept_whole_or_not_at_all() {
    let dir = unsynced(|client| {
        client.say(&["SET", "before", "1"]);
        client.say(&["MULTI"]);
        for _ in 0..10 {
            client.say(&["INCR", "one"]);
            client.say(&["INCR", "other"]);
        }
        client.say(&["EXEC"]);
    });
    let log = only_log(dir.path());
    let whole = std::fs::read(&log).unwrap();
    let mut seen = Vec::new();
    for len in (LOG_HEADER_BYTES..=whole.len()).rev() {
        std::fs::write(&log, &whole[..len]).unwrap();
        let (_server, mut client) = start(dir.path());
        let found = [client.say(&["GET", "one"]), client.say(&["GET", "other"])];
        assert!(
            found == [Reply::bulk("10"), Reply::bulk("10")] || found == [Reply::Null, Reply::Null]
        );
        seen.extend((seen.last() != Some(&found)).then_some(found));
    }
    assert_eq!(seen.len(), 2, "both were seen");
}

#[test]
fn damage_before_large_changes_is_no_torn_tail() {
    let (dir, server, mut client) = start_new();
    for i in 0..20 {
        client.say(&["SET", &format!("key{i}"), &"x".repeat(100_000)]);
    }
    drop(server);
    let log = only_log(dir.path());
    let whole = std::fs::read(&log).unwrap();
    for at in [60, 50_000, 100_500, 150_000, 1_000_000] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&log, &flipped).unwrap();
        assert_refused(dir.path(), &["damaged at byte"]);
        assert_eq!(std::fs::read(&log).unwrap().len(), whole.len());
    }
}

#[test]
fn a_missing_file_is_reported() {
    let (dir, server, mut client) = start_new();
    client.say(&["SET", "a", "1"]);
    client.say(&["SAVE"]);
    client.say(&["SET", "b", "1"]);
    drop(server);
    let log = only_log(dir.path());
    let snapshot = dir.path().join("snapshot-1.tamis");
    let bytes = std::fs::read(&snapshot).unwrap();
    std::fs::remove_file(&snapshot).unwrap();
    assert_refused(dir.path(), &["does not begin where the snapshot ends"]);
    std::fs::write(&snapshot, bytes).unwrap();
    let far = dir.path().join("log-9.tamis");
    std::fs::copy(&log, &far).unwrap();
    // The manifest does not name this log, so the log contains no synced change.
    let (_server, mut client) = start(dir.path());
    assert_eq!(client.say(&["EXISTS", "a", "b"]), Reply::Integer(2));
    assert!(!far.exists() && dir.path().join("log-9.torn-1").exists());
}

#[test]
fn a_log_with_a_torn_header_is_set_aside() {
    let dir = unsynced(|client| {
        for _ in 0..9 {
            client.say(&["INCR", "number"]);
        }
    });
    let log = only_log(dir.path());
    // A power loss at the begin of a snapshot: the previous log is torn, and the next one has no
    // header.
    let whole = std::fs::read(&log).unwrap();
    for header in [&whole[..10], &[0; LOG_HEADER_BYTES], b""] {
        std::fs::write(&log, &whole[..whole.len() - 3]).unwrap();
        std::fs::write(dir.path().join("log-1.tamis"), header).unwrap();
        let (server, mut client) = start(dir.path());
        assert_eq!(client.say(&["GET", "number"]), Reply::bulk("8"));
        drop(server);
        assert!(!dir.path().join("log-1.tamis").exists());
    }
    let names = std::fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name());
    let kept = names.filter(|name| name.to_string_lossy().contains(".torn-"));
    assert_eq!(kept.count(), 6, "nothing that was put aside is overwritten");
}

#[test]
fn a_log_truncated_before_its_last_sync_is_rejected() {
    let (dir, server, mut client) = start_new();
    for _ in 0..9 {
        client.say(&["INCR", "number"]);
    }
    drop(server);
    let log = only_log(dir.path());
    let whole = std::fs::read(&log).unwrap();
    // Truncates the log between two changes too.
    for len in LOG_HEADER_BYTES..whole.len() {
        std::fs::write(&log, &whole[..len]).unwrap();
        assert_refused(dir.path(), &["log-0.tamis: damaged at byte", "synced"]);
        assert_eq!(std::fs::read(&log).unwrap(), &whole[..len], "left as it is");
    }
    std::fs::write(&log, &whole[..20]).unwrap();
    assert_refused(dir.path(), &["its header is invalid"]);
    std::fs::remove_file(&log).unwrap();
    assert_refused(dir.path(), &["log-0.tamis: the newest log is missing"]);
    std::fs::write(&log, &whole).unwrap();
    let (_server, mut client) = start(dir.path());
    assert_eq!(client.say(&["GET", "number"]), Reply::bulk("9"));
}

#[test]
fn a_full_cuckoo_filter_is_restored_after_a_restart() {
    let (dir, server, mut client) = start_new();
    client.say(&["CONFIG", "SET", "cf-max-expansions", "1"]);
    assert!(matches!(client.say(&["CF.ADD", "full", "x"]), Reply::Error(_)));
    assert!(matches!(client.say(&["CF.INSERT", "other", "ITEMS", "x"]), Reply::Error(_)));
    assert_eq!(client.say(&["EXISTS", "full", "other"]), Reply::Integer(2));
    client.say(&["CONFIG", "SET", "cf-max-expansions", "2"]);
    assert_eq!(client.say(&["CF.ADD", "full", "x"]), Reply::Integer(1));
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(client.say(&["EXISTS", "full", "other"]), Reply::Integer(2));
    assert_eq!(client.say(&["CF.EXISTS", "full", "x"]), Reply::Integer(1));
}

#[test]
fn items_rejected_by_a_limit_are_not_replayed() {
    let (dir, server, mut client) = start_new();
    client.ask("CF.RESERVE cut 8");
    client.ask("CF.RESERVE whole 8");
    client.ask("CONFIG SET cf-max-expansions 2");
    let replies = client.list(&with_items("TM.MADD cut", 0..60));
    assert!(matches!(replies.last(), Some(Reply::Error(_))) && replies.len() < 60);
    client.list(&with_items("CF.INSERT whole ITEMS", 0..60));
    client.ask("CONFIG SET cf-max-expansions 32");
    // An item that was refused before counts as new.
    assert_eq!(client.ask("CF.ADDNX cut item:59"), Reply::Integer(1));
    let questions = ["CF.DEBUG cut", "CF.DEBUG whole", "CF.SCANDUMP cut 1", "CF.SCANDUMP whole 1"];
    assert_same_after_a_start(dir.path(), (server, client), &questions);
}

#[test]
fn a_command_without_its_key_is_refused_and_not_logged() {
    let (dir, server, mut client) = start_new();
    assert_eq!(client.say(&["CF.ADD", "", "x"]), Reply::Integer(1));
    let Reply::Error(error) = client.say(&["CF.COMPACT"]) else { panic!("it has no key") };
    assert!(error.contains("wrong number of arguments for 'cf.compact'"), "{error}");
    assert_eq!(client.say(&["CF.COMPACT", ""]), Reply::ok());
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(client.say(&["CF.EXISTS", "", "x"]), Reply::Integer(1));
}

#[test]
fn an_error_of_replay_names_the_position_and_the_remedy() {
    let (dir, server, mut client) = start_new();
    client.say(&["SET", "number", "1"]);
    client.say(&["INCR", "number"]);
    drop(server);
    let log = only_log(dir.path());
    // Changes the value to text, which cannot be incremented.
    let mut bytes = std::fs::read(&log).unwrap();
    let records = 20;
    let value = bytes.windows(8).position(|it| it == b"\x06number\x01").unwrap() + 8;
    bytes[value] = b'x';
    // The first frame begins at position 0.
    let secret = secret_of(&bytes);
    let frame = &mut bytes[LOG_HEADER_BYTES..];
    let len = u64::from_le_bytes(frame[..8].try_into().unwrap()) as usize;
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&frame[records..records + len], secret);
    frame[12..20].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&log, &bytes).unwrap();
    let place = format!("log-0.tamis: damaged at byte {}: INCR", LOG_HEADER_BYTES + records + len);
    assert_refused(dir.path(), &[&place, "tamis check-data --repair"]);
}

#[test]
fn settings_may_be_set_again_in_any_order() {
    let (dir, server, mut client) = start_new();
    for change in [
        "CONFIG SET cf-initial-size 4",
        "CF.ADD one x",
        "CONFIG SET cf-initial-size 1024",
        "CONFIG SET cf-bucket-size 255",
        "CF.ADD two x",
        "CONFIG SET cf-bucket-size 2",
        "CONFIG SET cf-initial-size 4",
        "CF.ADD three x",
    ] {
        client.ask(change);
    }
    let questions = ["CF.DEBUG one", "CF.DEBUG two", "CF.DEBUG three"];
    assert_same_after_a_start(dir.path(), (server, client), &questions);
}

#[test]
fn a_key_that_is_renamed_to_itself_stays() {
    let (dir, server, mut client) = start_new();
    // The filter is large, so that the snapshot takes some time.
    client.say(&["BF.RESERVE", "large", "0.01", "100000000"]);
    client.say(&["SET", "me", "1"]);
    client.say(&["BGSAVE"]);
    assert_eq!(client.say(&["RENAME", "me", "me"]), Reply::ok());
    let (_server, mut client) = restart(server, &dir);
    assert_eq!(client.say(&["GET", "me"]), Reply::bulk("1"));
}

#[test]
fn a_long_cuckoo_insert_may_exceed_the_limit_of_expansions_and_is_kept() {
    let (dir, server, mut client) = start_new();
    client.say(&["CONFIG", "SET", "cf-max-expansions", "2"]);
    client.say(&["CF.RESERVE", "k", "4"]);
    let command = |start: &str| with_items(start, 0..500);
    let inserted = client.list(&command("CF.INSERT k ITEMS"));
    assert_eq!(inserted, vec![Reply::Integer(1); 500]);
    let refused = Reply::error("Maximum expansions reached");
    assert_eq!(client.say(&["CF.ADD", "k", "x"]), refused);
    assert_eq!(client.say(&command("CF.INSERTNX k ITEMS")), refused);
    let (_server, mut client) = restart(server, &dir);
    let found = client.list(&command("CF.MEXISTS k"));
    assert_eq!(found, vec![Reply::Integer(1); 500]);
}

#[test]
fn a_client_gets_loading_errors_while_data_is_loaded_and_stays_connected() {
    let (dir, server, mut client) = start_new();
    for _ in 0..20 {
        (0..1000).for_each(|_| client.send(&["INCR", "n"]));
        (0..1000).for_each(|_| _ = client.receive());
    }
    drop(server);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let early = std::thread::spawn(move || {
        let stream = wait_for("a connection", || try_connect(address).ok());
        let mut client = Client::of(stream);
        wait_for("the end of loading", || match client.say(&["GET", "n"]) {
            Reply::Error(text) => {
                assert!(text.starts_with("LOADING "), "{text}");
                None
            }
            reply => Some(reply),
        })
    });
    let _server = Server::start(Config { port: address.port(), ..config(dir.path()) }).unwrap();
    assert_eq!(join("the early client", early), Reply::bulk("20000"));
}

/// A small mounted file system that is unmounted on drop.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system. Returns `None` if this user has no permission to mount.
    fn mount(size: &str) -> Option<Self> {
        Self::mount_with(&["-t", "tmpfs", "-o", &format!("size={size}"), "tamis-test"])
    }

    /// Mounts an ext4 file system. A reservation of space that fails there keeps its blocks.
    fn mount_ext4(bytes: u64) -> Option<Self> {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(bytes).unwrap();
        let path = image.path().to_str().unwrap();
        let mut format = std::process::Command::new("mkfs.ext4");
        Self::run(format.args(["-q", "-m", "0", path]))?;
        // The mount keeps the image although its name is removed.
        Self::mount_with(&["-o", "loop", path])
    }

    fn mount_with(args: &[&str]) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = std::process::Command::new("mount");
        Self::run(mount.args(args).arg(dir.path()))?;
        Some(Self(dir))
    }

    /// Runs a command. Returns `None` if this user may not run it.
    fn run(command: &mut std::process::Command) -> Option<()> {
        let is_done = command.output().is_ok_and(|output| output.status.success());
        if !is_done {
            println!("skipped: there is no small disk, because {command:?} failed");
        }
        is_done.then_some(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mut unmount = std::process::Command::new("umount");
        _ = unmount.arg("--lazy").arg(self.0.path()).status();
    }
}

/// How often each command of a test was accepted.
#[derive(Debug, Default)]
struct Accepted([u64; 5]);

impl Accepted {
    /// Runs one of the commands, and returns whether it was accepted.
    fn run(&mut self, client: &mut Client, i: usize) -> bool {
        let text = "x".repeat(1000);
        let commands: [&[&str]; 5] = [
            &["APPEND", "text", &text],
            &["INCR", "number"],
            &["CF.ADD", "cuckoo", "item"],
            &["TM.ADD", "counting", "item"],
            &["EXEC"],
        ];
        // One cuckoo filter takes only some copies of an item.
        if i == 2 && self.0[2] >= 4 {
            client.say(&["CF.DEL", "cuckoo", "item"]);
            self.0[2] = match client.say(&["CF.COUNT", "cuckoo", "item"]) {
                Reply::Integer(count) => count as u64,
                other => panic!("{other:?}"),
            };
        }
        if i == 4 {
            client.say(&["MULTI"]);
            for words in [["INCR", "one"], ["INCR", "two"]] {
                if client.say(&words) != Reply::simple("QUEUED") {
                    client.say(&["DISCARD"]);
                    return false;
                }
            }
        }
        let reply = client.say(commands[i]);
        if let Reply::Error(why) = &reply {
            assert!(why.contains("MISCONF") && why.contains("No space left"), "{why}");
            return false;
        }
        self.0[i] += 1;
        true
    }

    /// Asserts that the keys are as the accepted commands have left them.
    fn assert_kept(&self, client: &mut Client) {
        let [appended, increments, added, counted, executed] = self.0.map(|it| it as i64);
        assert_eq!(client.say(&["STRLEN", "text"]), Reply::Integer(1000 * appended));
        let numbers = [increments, executed, executed].map(|it| Reply::bulk(it.to_string()));
        assert_eq!(client.list(&["MGET", "number", "one", "two"]), numbers);
        assert_eq!(client.say(&["CF.COUNT", "cuckoo", "item"]), Reply::Integer(added));
        assert_eq!(client.list(&["TM.COUNT", "counting", "item"]), [Reply::Integer(counted)]);
    }
}

#[test]
fn a_write_that_is_refused_because_the_disk_is_full_has_no_effect() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let dir = disk.0.path().join("data");
    let ballast = disk.0.path().join("ballast");
    let (server, mut client) = start(&dir);
    client.say(&["CF.RESERVE", "cuckoo", "1000"]);
    client.say(&["TM.RESERVE", "counting", "KIND", "counting", "ITEMS", "100", "COUNTER", "16"]);
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();
    let mut accepted = Accepted::default();
    let mut refused = [0_u32; 5];
    while refused.iter().any(|count| *count < 20) {
        for (i, refused) in refused.iter_mut().enumerate() {
            *refused += u32::from(!accepted.run(&mut client, i));
        }
        assert!(accepted.0[0] < 4000, "the disk is never full: {accepted:?} {refused:?}");
    }
    assert!(accepted.0[0] > 100, "{accepted:?}");
    accepted.assert_kept(&mut client);
    std::fs::remove_file(&ballast).unwrap();
    for i in 0..5 {
        assert!(accepted.run(&mut client, i), "there is space again");
    }
    accepted.assert_kept(&mut client);
    drop(server);
    let (_server, mut client) = start(&dir);
    accepted.assert_kept(&mut client);
}

#[test]
fn a_pipeline_on_a_full_disk_is_refused_before_it_is_applied() {
    let Some(disk) = SmallDisk::mount("3m") else { return };
    let (server, mut client) = start(&disk.0.path().join("data"));
    client.say(&["TM.RESERVE", "counting", "KIND", "counting", "ITEMS", "1000"]);
    // One batch of 6 MB.
    let items: Vec<String> = (0..600).map(|i| format!("{i}:{}", "x".repeat(10_000))).collect();
    let pipeline: Vec<u8> = items
        .iter()
        .flat_map(|item| {
            let head = "*3\r\n$6\r\nTM.ADD\r\n$8\r\ncounting\r\n";
            format!("{head}${}\r\n{item}\r\n", item.len()).into_bytes()
        })
        .collect();
    std::thread::scope(|threads| {
        let mut stream = client.stream.try_clone().unwrap();
        threads.spawn(move || std::io::Write::write_all(&mut stream, &pipeline).unwrap());
        let mut refused = 0;
        let mut accepted = Vec::new();
        for item in &items {
            match client.receive() {
                Reply::Integer(_) => accepted.push(item),
                Reply::Error(why) => {
                    assert!(why.starts_with("MISCONF") && why.contains("No space"), "{why}");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(accepted.len() > 50 && refused > 200, "{} {refused}", accepted.len());
        let mut count = |item: &String| client.say(&["TM.COUNT", "counting", item]);
        for item in &items {
            let expected = i64::from(accepted.contains(&item));
            assert_eq!(count(item), Reply::Array(vec![Reply::Integer(expected)]), "{}", &item[..4]);
        }
    });
    drop(server);
}

#[test]
fn a_large_change_that_is_refused_takes_no_disk_space() {
    let Some(disk) = SmallDisk::mount_ext4(32 << 20) else { return };
    let dir = disk.0.path().join("data");
    let (_server, mut client) = start(&dir);
    let large = "x".repeat(64 << 20);
    for i in 0..3 {
        let Reply::Error(why) = client.say(&["SET", "large", &large]) else { panic!("accepted") };
        assert!(why.starts_with("MISCONF") && why.contains("No space"), "{why}");
        // Other programs and snapshots have the space again.
        let other = disk.0.path().join(format!("other {i}"));
        let contents = vec![0; 8 << 20];
        wait_until("space for another file", || std::fs::write(&other, &contents).is_ok());
        std::fs::remove_file(&other).unwrap();
        assert_eq!(client.say(&["INCR", "number"]), Reply::Integer(i + 1));
    }
    assert_eq!(client.say(&["EXISTS", "large"]), Reply::Integer(0));
    assert_eq!(client.say(&["SAVE"]), Reply::ok());
}

#[test]
fn unwatch_inside_a_transaction_is_queued() {
    let (server, mut client) = support::start(2);
    let mut other = connect(&server);
    assert_eq!(client.say(&["WATCH", "k"]), Reply::ok());
    assert_eq!(client.say(&["MULTI"]), Reply::ok());
    assert_eq!(client.say(&["UNWATCH"]), Reply::simple("QUEUED"));
    assert_eq!(client.say(&["SET", "k", "mine"]), Reply::simple("QUEUED"));
    assert_eq!(other.say(&["SET", "k", "theirs"]), Reply::ok());
    assert_eq!(client.say(&["EXEC"]), Reply::NullArray);
    assert_eq!(client.say(&["GET", "k"]), Reply::bulk("theirs"));
}
