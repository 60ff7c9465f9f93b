//! Threads share one client. Their calls run at the same time, and nothing acknowledged is lost.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use crate::support::{
    Hooked, Server, all_found, ask, clients_of, count, keys_of, patience, plan_for, small_shards,
};
use redis::Value;
use tamis_redis::{
    BitmapsFilter, NodeReply, Patience, RedisFilter, RedisRebuildError, RedisWindow, SingleNode,
};
use tamis_testing::{SetOnDrop, wait_until};

/// Stops all writes of the server, until the test sends `CLIENT UNPAUSE`.
fn pause_writes(redis: &mut redis::Connection) {
    let _: String = ask(redis, &["CLIENT", "PAUSE", "120000", "WRITE"]);
}

#[test]
fn calls_of_several_threads_are_in_flight_at_once_and_a_killed_connection_heals() {
    let server = Server::start();
    // A dead connection costs an attempt, so one retry is enough only if the client then opens a
    // new connection.
    let patience = Patience { retries: 1, response: tamis_testing::DEADLINE, ..patience() };
    let node = SingleNode::new(&server.url(), patience).unwrap();
    let filter = RedisFilter::create(node, "f", &plan_for(1000)).unwrap();
    let mut redis = server.connection();
    pause_writes(&mut redis);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8_u64).map(|i| (&filter, i)).collect();
        let calls: Vec<_> =
            calls.into_iter().map(|(f, i)| scope.spawn(move || f.insert(&i))).collect();
        wait_until("eight inserts are in flight", || clients_of(&mut redis, "bitfield") == 8);
        let _: String = ask(&mut redis, &["CLIENT", "UNPAUSE"]);
        for call in calls {
            assert_eq!(call.join().unwrap(), Ok(true));
        }
    });
    let clients: String = ask(&mut redis, &["CLIENT", "LIST"]);
    assert_eq!(clients.lines().count(), 1 + 8, "the connections stay open: {clients}");
    let killed: i64 = ask(&mut redis, &["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(killed, 8);
    assert_eq!(count(&filter.contains_each(&(0..8).collect::<Vec<u64>>())), 8);
    let clients: String = ask(&mut redis, &["CLIENT", "LIST"]);
    assert_eq!(clients.lines().count(), 1 + 1, "no dead connection stays: {clients}");
}

#[test]
fn threads_that_share_a_growing_filter_lose_nothing() {
    let server = Server::start();
    let plan = small_shards(4_000).growing().unwrap();
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    let new = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (filter, new) = (filter.clone(), &new);
            scope.spawn(move || {
                let items: Vec<u64> = (0..5_000).map(|i| 8 * i + thread).collect();
                for items in items.chunks(100) {
                    // Every item is inserted twice.
                    let again: Vec<u64> = items.iter().flat_map(|&item| [item, item]).collect();
                    let inserted = filter.insert_each(&again);
                    new.fetch_add(count(&inserted), Ordering::Relaxed);
                    assert!(all_found(&filter.contains_each(items)));
                }
            });
        }
    });
    let items: Vec<u64> = (0..40_000).collect();
    assert!(all_found(&filter.contains_each(&items)));
    filter.flush().unwrap();
    // Another client reads the same counters, so no thread has kept a correction.
    let info = RedisFilter::open(server.node(), "f").unwrap().info().unwrap();
    let new = new.into_inner() as u64;
    assert!(info.layers > 1 && info.missing.is_empty(), "{info:?}");
    assert!(info.items >= new && info.items <= 40_100 && new > 39_000, "{new} {info:?}");
}

#[test]
fn a_shared_filter_is_rebuilt_while_threads_insert() {
    let server = Server::start();
    let filter = RedisFilter::create(server.node(), "f", &small_shards(20_000)).unwrap();
    let (is_over, inserted) = (AtomicBool::new(false), AtomicUsize::new(0));
    // The source of the rebuilds: a thread stores an item before it inserts the item.
    let source = Mutex::new(Vec::<u64>::new());
    let known: Vec<u64> = std::thread::scope(|scope| {
        let (filter, is_over, inserted, source) = (&filter, &is_over, &inserted, &source);
        let writer = |thread: u64| {
            move || {
                let mut known = Vec::new();
                for start in 0.. {
                    let items: Vec<u64> = (0..50).map(|i| (start * 50 + i) * 4 + thread).collect();
                    source.lock().unwrap().extend(&items);
                    let results = filter.insert_each(&items);
                    assert!(results.iter().all(Result::is_ok), "{results:?}");
                    known.extend(&items);
                    inserted.fetch_add(items.len(), Ordering::Relaxed);
                    let step = (known.len() / 300).max(1);
                    let some: Vec<u64> = known.iter().copied().step_by(step).collect();
                    assert!(all_found(&filter.contains_each(&some)));
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                known
            }
        };
        let writers: Vec<_> = (0..4).map(|thread| scope.spawn(writer(thread))).collect();
        let end = SetOnDrop(is_over);
        let more = |what: &str| {
            let until = inserted.load(Ordering::Relaxed) + 1_000;
            wait_until(what, || inserted.load(Ordering::Relaxed) >= until);
        };
        for round in 0..3 {
            more("the threads insert before a rebuild");
            let plan = small_shards(100_000 + round);
            let rebuild = filter.rebuild(&plan).unwrap();
            let second = filter.rebuild(&plan).err().unwrap();
            assert!(matches!(second, RedisRebuildError::Running { .. }), "{second}");
            // Later items come only from the threads, which insert into both generations.
            let items = source.lock().unwrap().clone();
            std::thread::scope(|scope| {
                for items in items.chunks(items.len().div_ceil(2)) {
                    let rebuild = &rebuild;
                    scope.spawn(move || {
                        assert!(rebuild.insert_each(items).iter().all(Result::is_ok));
                    });
                }
            });
            more("the threads insert during a rebuild");
            match round {
                1 => rebuild.abort().unwrap(),
                _ => rebuild.swap().unwrap(),
            }
        }
        drop(end);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(all_found(&filter.contains_each(&known)), "{} items", known.len());
    let other = RedisFilter::open(server.node(), "f").unwrap();
    assert!(all_found(&other.contains_each(&known)));
    assert_eq!((filter.plan(), filter.plan().items()), (other.plan(), 100_002));
    let keys = keys_of(&mut server.connection(), "f:*");
    assert_eq!(keys.len(), filter.plan().shards() as usize, "the old shards are deleted");
}

#[test]
fn threads_that_share_a_window_create_a_slice_once() {
    const MINUTE: u64 = 60_000;
    let server = Server::start();
    let now = UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let ahead = AtomicU64::new(now.next_multiple_of(MINUTE) - now + MINUTE);
    let created = Mutex::new(HashSet::new());
    let node = Hooked::new(server.node(), |words: &[Vec<u8>], reply: &mut NodeReply| {
        if words[0] == b"TIME" {
            let millis = now + ahead.load(Ordering::Relaxed);
            let parts = [millis / 1000, millis % 1000 * 1000];
            let part = |part: u64| Value::BulkString(part.to_string().into_bytes());
            *reply = Ok(Value::Array(parts.map(part).into()));
        }
        if words[0] == b"EVAL" && words[3].starts_with(b"w:") {
            created.lock().unwrap().insert(words[3].clone());
        }
    });
    let plan = small_shards(2_000).window(RedisWindow { slices: 3, slice_millis: MINUTE }).unwrap();
    let filter = RedisFilter::create(node, "w", &plan).unwrap();
    filter.insert("a").unwrap();
    let shards = created.lock().unwrap().len();
    for slice in 2..4 {
        ahead.fetch_add(MINUTE, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..16_u64 {
                let filter = &filter;
                scope.spawn(move || {
                    let item = 100 * slice + thread;
                    assert!(filter.insert(&item).is_ok());
                    assert_eq!(filter.contains(&item), Ok(true));
                });
            }
        });
        assert_eq!(created.lock().unwrap().len(), slice as usize * shards);
    }
}

#[test]
fn threads_share_the_filter_of_a_java_program() {
    let server = Server::start();
    let filter = BitmapsFilter::open_or_create(server.node(), 200, 0.01).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let filter = &filter;
            scope.spawn(move || {
                let items: Vec<String> = (0..500).map(|i| format!("{thread} {i}")).collect();
                for items in items.chunks(50) {
                    assert!(filter.insert_each(items).iter().all(Result::is_ok));
                    assert!(all_found(&filter.contains_each(items)));
                }
            });
        }
    });
    assert!(filter.cursor() > 3, "{}", filter.cursor());
    let other = BitmapsFilter::open_or_create(server.node(), 200, 0.01).unwrap();
    let items: Vec<String> =
        (0..4).flat_map(|thread| (0..500).map(move |i| format!("{thread} {i}"))).collect();
    assert!(all_found(&other.contains_each(&items)));
}
