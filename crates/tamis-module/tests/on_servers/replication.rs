//! A replica ends with the same bytes as its primary, whatever its settings, hash key and clock are.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tamis_resp::Reply;
use tamis_testing::wait_until;

use crate::client::{Client, with_items};
use crate::server::{Host, TestServer, module};
use crate::status::{
    array, assert_equal, assert_refused, bulk, info, run, wait_for, wait_for_replica,
};

/// Full resynchronizations begin at once.
const PRIMARY: [&str; 4] = ["--repl-diskless-sync-delay", "0", "--repl-backlog-size", "64mb"];

/// Starts a replica whose settings and hash key differ from those of its primary.
fn replica_of(primary: &TestServer, host: Host) -> TestServer {
    let module = module().display().to_string();
    let arguments = "hash-key 66656463626139383736353433323130 bf-layout redisbloom \
        bf-error-rate 0.2 bf-initial-size 7 bf-expansion-factor 3 cf-bucket-size 1 \
        cf-initial-size 16 cf-max-iterations 1 cf-expansion-factor 2 cf-max-expansions 1";
    let mut load = vec!["--loadmodule", &module];
    load.extend(arguments.split_whitespace());
    let port = primary.port.to_string();
    let replica = TestServer::start_with(
        host,
        &load,
        &["--replicaof", "127.0.0.1", &port, "--repl-backlog-size", "64mb", PRIMARY[0], "0"],
    );
    wait_for_replica(primary, &replica);
    replica
}

fn assert_replica_equal(context: &str, primary: &TestServer, replica: &TestServer) {
    wait_for_replica(primary, replica);
    assert_equal(context, primary, replica);
}

/// Runs a command with items. The reply must not be an error; those of items may be.
fn run_items(client: &mut Client, start: &str, first: u32, count: u32) -> Vec<Reply> {
    client.list(&with_items(start, first..first + count))
}

/// Starts a primary with a replica on each host in turn, and connects a client to the primary.
fn pairs() -> impl Iterator<Item = (Host, TestServer, TestServer, Client)> {
    TestServer::each(&PRIMARY).map(|(host, primary, client)| {
        let replica = replica_of(&primary, host);
        (host, primary, replica, client)
    })
}

/// Creates a filter of each kind under keys with this prefix.
fn create_each(client: &mut Client, prefix: &str) {
    run(client, &format!("BF.ADD {prefix}:default a"));
    for layout in ["redisbloom", "tamis"] {
        run(client, &format!("CONFIG SET tamis.bf-layout {layout}"));
        let key = format!("{prefix}:{layout}");
        run(client, &format!("BF.ADD {key}:default a"));
        run_items(client, &format!("BF.MADD {key}:madd"), 0, 50);
        run(client, &format!("BF.RESERVE {key}:reserve 0.001 20 EXPANSION 4"));
        run(client, &format!("BF.RESERVE {key}:fixed 0.01 20 NONSCALING"));
        run_items(client, &format!("BF.INSERT {key}:insert ERROR 0.05 CAPACITY 30 ITEMS"), 0, 9);
        run_items(client, &format!("BF.INSERT {key}:plain ITEMS"), 0, 300);
    }
    run(client, &format!("CF.ADD {prefix}:cuckoo:default a"));
    run(client, &format!("CF.ADDNX {prefix}:cuckoo:addnx a"));
    let options = "64 BUCKETSIZE 2 MAXITERATIONS 5 EXPANSION 2";
    run(client, &format!("CF.RESERVE {prefix}:cuckoo:reserve {options}"));
    run(client, &format!("CF.RESERVE {prefix}:cuckoo:full 64 EXPANSION 0"));
    run_items(client, &format!("CF.INSERT {prefix}:cuckoo:insert CAPACITY 40 ITEMS"), 0, 9);
    run_items(client, &format!("CF.INSERTNX {prefix}:cuckoo:insertnx ITEMS"), 0, 9);
    for (name, options) in TM_KINDS {
        run(client, &format!("TM.RESERVE {prefix}:{name} KIND {options}"));
    }
}

const TM_KINDS: [(&str, &str); 9] = [
    ("split-block", "split-block ITEMS 200"),
    ("classic", "classic ITEMS 200 RATE 0.001"),
    ("growing", "growing ITEMS 20"),
    ("tm-cuckoo", "cuckoo ITEMS 200 BUCKET 4"),
    ("counting", "counting ITEMS 200 COUNTER 4"),
    ("window-items", "window WINDOW 100 ITEMS"),
    ("window-items-refresh", "window WINDOW 100 ITEMS REFRESH"),
    ("window-time", "window WINDOW 200 ITEMS 500 SLICES 4"),
    ("window-time-refresh", "window WINDOW 200 ITEMS 500 SLICES 4 REFRESH"),
];

/// Copies a filter with `SCANDUMP` and `LOADCHUNK`.
fn load_chunks(client: &mut Client, family: &str, from: &str, to: &str) {
    let scan = format!("{family}.SCANDUMP");
    let load = format!("{family}.LOADCHUNK");
    let mut position = b"0".to_vec();
    loop {
        let chunk = array(client.say(&[scan.as_bytes(), from.as_bytes(), &position]));
        let [Reply::Integer(next), data] = &chunk[..] else { panic!("{chunk:?}") };
        if *next == 0 {
            return;
        }
        let data = &bulk(data.clone());
        position = next.to_string().into_bytes();
        let loaded = client.say(&[load.as_bytes(), to.as_bytes(), &position, data]);
        assert_eq!(loaded, Reply::ok(), "{load} {to}");
    }
}

/// Runs every command that writes, on the filters of [`create_each`].
fn change_each(client: &mut Client, prefix: &str, first: u32) {
    for layout in ["redisbloom", "tamis"] {
        for name in ["default", "madd", "reserve", "fixed", "insert", "plain"] {
            let key = format!("{prefix}:{layout}:{name}");
            // The fixed filters reject some of the items.
            client.say(&["BF.ADD", &key, &format!("item:{first}")]);
            run_items(client, &format!("BF.MADD {key}"), first, 150);
            run_items(client, &format!("BF.INSERT {key} NOCREATE ITEMS"), first + 100, 60);
            // All are in the filter, so nothing changes.
            run_items(client, &format!("BF.MADD {key}"), first, 100);
            let loaded = format!("{key}:loaded:{first}");
            load_chunks(client, "BF", &key, &loaded);
        }
    }
    for name in ["default", "addnx", "reserve", "full", "insert", "insertnx"] {
        let key = format!("{prefix}:cuckoo:{name}");
        for item in first..first + 50 {
            // A full filter rejects the item.
            client.say(&["CF.ADD", &key, &format!("item:{item}")]);
            client.say(&["CF.ADDNX", &key, &format!("item:{}", item + 25)]);
        }
        run_items(client, &format!("CF.INSERT {key} NOCREATE ITEMS"), first, 150);
        run_items(client, &format!("CF.INSERTNX {key} ITEMS"), first + 100, 100);
        for item in first..first + 30 {
            run(client, &format!("CF.DEL {key} item:{item}"));
        }
        run(client, &format!("CF.COMPACT {key}"));
        let loaded = format!("{key}:loaded:{first}");
        load_chunks(client, "CF", &key, &loaded);
    }
    for (name, _) in TM_KINDS {
        let key = format!("{prefix}:{name}");
        client.say(&["TM.ADD", &key, &format!("item:{first}")]);
        // The cuckoo filter rejects some of the items in the end.
        run_items(client, &format!("TM.MADD {key}"), first, 150);
        run_items(client, &format!("TM.MADD {key}"), first, 30);
        run_items(client, &format!("BF.MADD {key}"), first + 140, 30);
        if matches!(name, "tm-cuckoo" | "counting") {
            run_items(client, &format!("TM.DEL {key}"), first + 10, 60);
            // The item is counted 15 times, the most that a counter holds.
            for _ in 0..17 {
                client.say(&["TM.ADD", &key, "often"]);
            }
            run(client, &format!("TM.DEL {key} often absent"));
            run(client, &format!("CF.DEL {key} item:{}", first + 2));
        }
        let like = format!("{key}:like:{first}");
        run(client, &format!("TM.RESERVE {like} LIKE {key}"));
        run_items(client, &format!("TM.MADD {like}"), first + 100, 20);
        run(client, &format!("TM.MERGE {key}:merged:{first} {like} {key}"));
        client.say(&["TM.MERGE", &like, &key]);
        let file = client.say(&["TM.DUMP", &key]);
        if let Reply::Bulk(file) = file {
            let loaded = format!("{key}:file:{first}");
            assert_eq!(client.say(&[b"TM.LOAD", loaded.as_bytes(), &file]), Reply::ok());
            let replace = [b"TM.LOAD", loaded.as_bytes(), &file, b"REPLACE"];
            assert_eq!(client.say(&replace), Reply::ok());
        }
        let copy = format!("{key}:copy:{first}");
        run(client, &format!("COPY {key} {copy}"));
        run_items(client, &format!("TM.MADD {copy}"), first + 500, 5);
        let dump = bulk(client.say(&["DUMP", &key]));
        let restored = format!("{key}:restored:{first}");
        let restore = [b"RESTORE", restored.as_bytes(), b"0", &dump];
        assert_eq!(client.say(&restore), Reply::ok());
        run(client, &format!("RENAME {restored} {restored}:renamed"));
        run(client, &format!("TM.CLEAR {copy}"));
        run(client, &format!("TM.ADD {copy} after"));
    }
}

#[test]
fn a_replica_with_other_settings_has_the_same_bytes() {
    for (host, primary, mut client) in TestServer::each(&PRIMARY) {
        create_each(&mut client, "before");
        change_each(&mut client, "before", 0);
        let replica = replica_of(&primary, host);
        assert_replica_equal(&format!("{host:?}, full resync"), &primary, &replica);

        change_each(&mut client, "before", 1000);
        assert_replica_equal(&format!("{host:?}, old keys"), &primary, &replica);
        create_each(&mut client, "after");
        assert_replica_equal(&format!("{host:?}, new keys"), &primary, &replica);
        change_each(&mut client, "after", 2000);
        assert_replica_equal(&format!("{host:?}, changed keys"), &primary, &replica);

        run(&mut client, "UNLINK before:split-block before:classic after:redisbloom:plain");
        run(&mut client, "DEL before:growing after:cuckoo:default");
        // The replica creates the filters again with the parameters of the primary.
        create_each(&mut client, "before:again");
        run(&mut client, "BF.ADD after:redisbloom:plain a");
        run(&mut client, "CF.ADD after:cuckoo:default a");
        assert_replica_equal(&format!("{host:?}, deleted keys"), &primary, &replica);
        assert_eq!(info(&mut client, "sync_full"), "1", "{host:?}");
    }
}

#[test]
fn windows_by_time_expire_equally_on_a_replica() {
    for (host, primary, replica, mut client) in pairs() {
        for (name, options) in [("w", ""), ("r", " REFRESH")] {
            let plan = format!("KIND window WINDOW 400 ITEMS 1000 SLICES 4{options}");
            run(&mut client, &format!("TM.RESERVE {name} {plan}"));
            run(&mut client, &format!("TM.RESERVE {name}:other {plan}"));
        }
        for round in 0..8 {
            // The rounds are in different slices: none, one, two or more slices pass.
            std::thread::sleep(Duration::from_millis([0, 40, 110, 250][round % 4]));
            for name in ["w", "r"] {
                run_items(&mut client, &format!("TM.MADD {name}"), round as u32 * 10, 20);
                run(&mut client, &format!("TM.ADD {name} same"));
                assert_replica_equal(&format!("{host:?}, round {round}"), &primary, &replica);
                run(&mut client, &format!("TM.ADD {name}:other {round}"));
                run(&mut client, &format!("TM.MERGE {name} {name}:other"));
                run(&mut client, &format!("TM.MERGE {name}:{round} {name}:other"));
                run(&mut client, &format!("TM.RESERVE {name}:like:{round} LIKE {name}"));
                assert_replica_equal(&format!("{host:?}, merge {round}"), &primary, &replica);
            }
            if round % 3 == 2 {
                std::thread::sleep(Duration::from_millis(150));
                run(&mut client, "TM.CLEAR w:other");
                run(&mut client, "TM.CLEAR r:other");
                assert_replica_equal(&format!("{host:?}, clear {round}"), &primary, &replica);
            }
        }
        // Whatever expires, expires on both: the replica reads with its clock, which is the same.
        std::thread::sleep(Duration::from_millis(600));
        for server in [&primary, &replica] {
            let reply = run(&mut server.connect(), "TM.MEXISTS w item:70 item:89 same");
            assert_eq!(reply, Reply::Array(vec![Reply::Integer(0); 3]), "{host:?}");
        }
        assert_replica_equal(&format!("{host:?}, expired"), &primary, &replica);
        // An item that the window has already: only the clock may change.
        run(&mut client, "TM.RESERVE d KIND window WINDOW 4000 ITEMS 100 SLICES 40");
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(120));
            run(&mut client, "TM.ADD d same");
            assert_replica_equal(&format!("{host:?}, repeated"), &primary, &replica);
        }
    }
}

#[test]
fn a_partial_resynchronization_brings_the_missed_commands() {
    for (host, primary, mut client) in TestServer::each(&PRIMARY) {
        create_each(&mut client, "k");
        let replica = replica_of(&primary, host);
        for round in 1..=3 {
            let killed = run(&mut client, "CLIENT KILL TYPE replica");
            assert_eq!(killed, Reply::Integer(1), "{host:?}");
            change_each(&mut client, "k", round * 1000);
            create_each(&mut client, &format!("new:{round}"));
            assert_replica_equal(&format!("{host:?}, round {round}"), &primary, &replica);
            assert_eq!(client.info_number("sync_partial_ok"), u64::from(round), "{host:?}");
        }
        // The link is cut in the middle of a long command.
        client.send(&with_items("BF.MADD long", 0..200_000));
        let mut other = primary.connect();
        wait_for_cardinality(&mut other, "long", 1000);
        run(&mut other, "CLIENT KILL TYPE replica");
        client.receive();
        assert_replica_equal(&format!("{host:?}, long command"), &primary, &replica);
        assert_eq!(info(&mut client, "sync_partial_ok"), "4", "{host:?}");
        assert_eq!(info(&mut client, "sync_full"), "1", "{host:?}");
    }
}

/// Waits until a filter has some items, and returns how many.
fn wait_for_cardinality(client: &mut Client, key: &str, items: i64) -> i64 {
    let mut cardinality = 0;
    wait_until("the filter has items", || {
        if let Reply::Integer(number) = client.say(&["BF.CARD", key]) {
            cardinality = number;
        }
        cardinality >= items
    });
    cardinality
}

#[test]
fn a_long_command_replicates_in_parts() {
    for (host, primary, replica, mut client) in pairs() {
        let replies = run_items(&mut client, "BF.MADD long", 0, 200_000);
        assert_eq!(replies.len(), 200_000);
        run(&mut client, "CONFIG SET tamis.bf-layout redisbloom");
        run_items(&mut client, "BF.MADD redisbloom", 0, 20_000);
        run_items(&mut client, "CF.INSERT cuckoo CAPACITY 1000 ITEMS", 0, 20_000);
        run_items(&mut client, "CF.INSERTNX cuckoo ITEMS", 10_000, 20_000);
        for (name, options) in TM_KINDS {
            run(&mut client, &format!("TM.RESERVE {name} KIND {options}"));
            // The cuckoo filter is full after the first 200.
            run_items(&mut client, &format!("TM.MADD {name}"), 0, 10_000);
            run_items(&mut client, &format!("TM.MADD {name}"), 5_000, 10_000);
        }
        run_items(&mut client, "TM.DEL counting", 0, 10_000);
        assert_replica_equal(&format!("{host:?}"), &primary, &replica);
        assert_eq!(info(&mut client, "sync_full"), "1", "{host:?}");
    }
}

#[test]
fn transactions_and_scripts_replicate_equal() {
    for (host, primary, replica, mut client) in pairs() {
        run(&mut client, "MULTI");
        for command in [
            "BF.ADD a x",
            "BF.ADD a x",
            "CF.ADD b x",
            "CF.ADD b x",
            "CF.DEL b x",
            "TM.RESERVE c KIND window WINDOW 400 ITEMS 100 SLICES 4",
            "TM.MADD c x y z",
            "TM.ADD missing x",
            "BF.RESERVE a 0.1 10",
        ] {
            assert_eq!(run(&mut client, command), Reply::simple("QUEUED"));
        }
        client.say(&with_items("BF.MADD long", 0..6000));
        let replies = array(run(&mut client, "EXEC"));
        let refused: Vec<bool> = replies.iter().map(|it| matches!(it, Reply::Error(_))).collect();
        let expected = [false, false, false, false, false, false, false, true, true, false];
        assert_eq!(refused, expected, "{host:?}");
        assert_replica_equal(&format!("{host:?}, MULTI"), &primary, &replica);

        for (script, keys) in [
            ("for i = 1, 300 do redis.call('BF.ADD', KEYS[1], i) end", "1 script"),
            ("return redis.call('BF.MADD', KEYS[1], 'a', 'b', 'a')", "1 script:2"),
            ("for i = 1, 300 do redis.call('CF.ADD', KEYS[1], i % 40) end", "1 script:3"),
            (
                "for i = 1, 90 do redis.pcall('BF.INSERT', KEYS[1], 'NONSCALING', 'CAPACITY', 50, \
              'ITEMS', i) end",
                "1 script:4",
            ),
            (
                "redis.call('TM.RESERVE', KEYS[1], 'LIKE', KEYS[2]); \
              redis.call('TM.ADD', KEYS[1], 'x'); redis.call('TM.MERGE', KEYS[1], KEYS[2])",
                "2 like c",
            ),
            (
                "local t = {}; for i = 1, 6000 do t[i] = i end; \
              return #redis.call('BF.MADD', KEYS[1], unpack(t))",
                "1 script:long",
            ),
        ] {
            let mut words = vec!["EVAL", script];
            words.extend(keys.split_whitespace());
            let reply = client.say(&words);
            assert!(!matches!(reply, Reply::Error(_)), "{host:?}, {script}: {reply:?}");
        }
        let cardinality = run(&mut client, "BF.CARD script:long");
        assert!(matches!(cardinality, Reply::Integer(5900..=6000)), "{cardinality:?}");
        assert_replica_equal(&format!("{host:?}, EVAL"), &primary, &replica);
    }
}

#[test]
fn expiry_replicates() {
    for (host, primary, replica, mut client) in pairs() {
        let kinds = ["BF.ADD", "CF.ADD", "TM.ADD"];
        run(&mut client, "TM.RESERVE TM.ADD KIND growing ITEMS 10");
        for command in kinds {
            run(&mut client, &format!("{command} {command} x"));
            run(&mut client, &format!("PEXPIRE {command} 3600000"));
            run(&mut client, &format!("{command} {command} y"));
        }
        assert_replica_equal(&format!("{host:?}, expiry"), &primary, &replica);
        for command in kinds {
            assert_ne!(run(&mut client, &format!("PTTL {command}")), Reply::Integer(-1));
            run(&mut client, &format!("PEXPIRE {command} 1"));
        }
        // The keys expire by time, or by the command that creates them again.
        std::thread::sleep(Duration::from_millis(2));
        run(&mut client, "BF.ADD BF.ADD z");
        run(&mut client, "CF.ADD CF.ADD z");
        assert!(matches!(client.say(&["TM.ADD", "TM.ADD", "z"]), Reply::Error(_)));
        for command in ["BF", "CF"] {
            let reply = run(&mut client, &format!("{command}.MEXISTS {command}.ADD x y z"));
            assert_eq!(reply, Reply::Array([0, 0, 1].map(Reply::Integer).to_vec()), "{host:?}");
        }
        assert_replica_equal(&format!("{host:?}, expired"), &primary, &replica);
    }
}

#[test]
fn a_failover_keeps_every_item_that_the_replica_has_acknowledged() {
    for host in Host::ALL {
        let mut primary = TestServer::start(host, &PRIMARY);
        let replica = replica_of(&primary, host);
        run(&mut primary.connect(), "TM.RESERVE growing KIND growing ITEMS 100");
        const ADDS: [&str; 4] =
            ["BF.MADD bloom", "CF.INSERT cuckoo ITEMS", "TM.MADD growing", "BF.MADD long"];
        let acknowledged = [const { AtomicU32::new(0) }; 4];
        let counts = &acknowledged;
        // A panic drops the primary, which ends the threads.
        std::thread::scope(move |scope| {
            for (add, acknowledged) in ADDS.iter().zip(counts) {
                // Each command of the last is long.
                let count = if add.ends_with("long") { 5000 } else { 10 };
                let mut client = primary.connect();
                scope.spawn(move || {
                    for first in (0..).step_by(count as usize) {
                        _ = client.try_send(&with_items(add, first..first + count));
                        _ = client.try_send(&["WAIT", "1", "10000"]);
                        let (added, replicas) = (client.try_receive(), client.try_receive());
                        let Some(Reply::Integer(1)) = replicas else { return };
                        assert!(matches!(added, Some(Reply::Array(_))), "{add}: {added:?}");
                        acknowledged.store(first + count, Ordering::Relaxed);
                    }
                });
            }
            wait_until("some adds are acknowledged", || {
                counts.iter().all(|items| items.load(Ordering::Relaxed) >= 100)
            });
            primary.kill();
        });
        let mut client = replica.connect();
        run(&mut client, "REPLICAOF NO ONE");
        let keys =
            ["BF.MEXISTS bloom", "CF.MEXISTS cuckoo", "TM.MEXISTS growing", "BF.MEXISTS long"];
        for (exists, acknowledged) in keys.iter().zip(&acknowledged) {
            let items = acknowledged.load(Ordering::Relaxed);
            let replies = run_items(&mut client, exists, 0, items);
            let lost = replies.iter().filter(|reply| **reply != Reply::Integer(1)).count();
            assert_eq!((replies.len(), lost), (items as usize, 0), "{host:?}, {exists}");
        }
        // The next replica of the new primary.
        let next = replica_of(&replica, host);
        // With its own setting, the new primary rejects items for a filter that has expanded.
        run(&mut client, "CONFIG SET tamis.cf-max-expansions 32");
        for add in ADDS {
            run_items(&mut client, add, 900_000, 500);
        }
        run(&mut client, "BF.ADD new x");
        assert_replica_equal(&format!("{host:?}, next replica"), &replica, &next);
    }
}

#[test]
fn a_long_command_waits_while_writes_are_paused() {
    const ITEMS: u32 = 300_000;
    for (host, primary, replica, mut client) in pairs() {
        let mut other = primary.connect();
        client.send(&with_items("BF.MADD long", 0..ITEMS));
        wait_for_cardinality(&mut other, "long", 1);
        run(&mut other, "CLIENT PAUSE 600000 WRITE");
        let paused = run(&mut other, "BF.CARD long");
        assert!(matches!(paused, Reply::Integer(items) if items < i64::from(ITEMS)), "{paused:?}");
        assert_replica_equal(&format!("{host:?}, paused"), &primary, &replica);
        assert_eq!(run(&mut other, "BF.CARD long"), paused, "{host:?}");
        run(&mut other, "CLIENT UNPAUSE");
        assert_eq!(array(client.receive()).len(), ITEMS as usize);
        assert_replica_equal(&format!("{host:?}, continued"), &primary, &replica);
    }
}

#[test]
fn a_failover_in_a_long_command_keeps_its_parts() {
    for (host, primary, replica, mut client) in pairs() {
        let mut other = primary.connect();
        let is_online = |client: &mut Client| info(client, "slave0").contains("state=online");
        wait_until("the replica is online", || is_online(&mut other));
        client.send(&with_items("BF.MADD long", 0..300_000));
        wait_for_cardinality(&mut other, "long", 1);
        run(&mut other, &format!("FAILOVER TO 127.0.0.1 {}", replica.port));
        // The server ends the command: with an error, or with the connection.
        match client.try_receive() {
            None | Some(Reply::Error(_)) => {}
            Some(Reply::Array(replies)) => {
                assert!(matches!(replies.last(), Some(Reply::Error(_))), "{host:?}: no error");
            }
            Some(reply) => panic!("{host:?}: {reply:?}"),
        }
        let mut promoted = replica.connect();
        wait_for(&mut promoted, "role", "master");
        wait_for(&mut other, "role", "slave");
        assert_replica_equal(&format!("{host:?}"), &replica, &primary);
        run(&mut promoted, "BF.ADD long x");
        run(&mut promoted, "BF.ADD new x");
        assert_replica_equal(&format!("{host:?}, new primary"), &replica, &primary);
        assert_eq!(info(&mut promoted, "sync_full"), "0", "{host:?}");
    }
}

#[test]
fn a_replica_that_synchronizes_after_a_reservation_knows_the_time_of_a_window() {
    for (host, primary, mut client) in TestServer::each(&PRIMARY) {
        for key in ["reserved", "cleared"] {
            let reserve =
                format!("TM.RESERVE {key} KIND window ITEMS 1000 WINDOW 3600000 SLICES 4");
            run(&mut client, &reserve);
        }
        run(&mut client, "TM.ADD cleared old");
        run(&mut client, "TM.CLEAR cleared");
        let replica = replica_of(&primary, host);
        for key in ["reserved", "cleared"] {
            run(&mut client, &format!("TM.ADD {key} new"));
            run(&mut client, &format!("TM.MERGE {key}:merged {key}"));
            run(&mut client, &format!("TM.ADD {key}:merged more"));
        }
        assert_replica_equal(&format!("{host:?}"), &primary, &replica);
    }
}

#[test]
fn a_read_only_user_cannot_compact_a_filter() {
    for (_, server, mut client) in TestServer::each(&[]) {
        run(&mut client, "CF.RESERVE c 100");
        run(&mut client, "CF.ADD c item");
        run(&mut client, "CLIENT PAUSE 1000 WRITE");
        // The server holds the command back. It would end itself if the command changed the key.
        run(&mut server.connect(), "CF.COMPACT c");
        run(&mut client, "ACL SETUSER reader on nopass %R~* +@all");
        run(&mut client, "AUTH reader x");
        assert_refused(&mut client, "CF.COMPACT c", "NOPERM");
    }
}
