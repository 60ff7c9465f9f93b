//! A filter is rebuilt and swapped, and a window takes new slices, while clients use it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::support::{
    Hooked, Server, all_found, ask, count_keys, in_an_hour, keys_of, small_shards,
};
use redis::Value;
use tamis_redis::{
    NodeReply, RedisCreateError, RedisFilter, RedisItemError, RedisOpenError, RedisRebuildError,
    RedisWindow, SendError, SingleNode, Transport,
};
use tamis_testing::SetOnDrop;

#[test]
fn clients_that_use_a_filter_while_it_is_rebuilt_lose_nothing() {
    let server = Server::start();
    for growing in [false, true] {
        let name = format!("f{growing}");
        let small =
            if growing { small_shards(5_000).growing().unwrap() } else { small_shards(20_000) };
        RedisFilter::create(server.node(), &name, &small).unwrap();
        let is_over = AtomicBool::new(false);
        // The source of the rebuilds: a program stores an item before it inserts it.
        let source = Mutex::new(Vec::<u64>::new());
        let known: Vec<u64> = std::thread::scope(|scope| {
            let (server, name, is_over, source) = (&server, &name, &is_over, &source);
            let writers: Vec<_> = (0..3_u64)
                .map(|thread| {
                    scope.spawn(move || {
                        let filter = RedisFilter::open(server.node(), name).unwrap();
                        let mut known = Vec::new();
                        for start in 0.. {
                            let items: Vec<u64> =
                                (0..50).map(|i| (start * 50 + i) * 3 + thread).collect();
                            source.lock().unwrap().extend(&items);
                            let inserted = filter.insert_each(&items);
                            assert!(inserted.iter().all(Result::is_ok), "{inserted:?}");
                            known.extend(&items);
                            let step = (known.len() / 500).max(1);
                            let some: Vec<u64> = known.iter().copied().step_by(step).collect();
                            assert!(all_found(&filter.contains_each(&some)));
                            if is_over.load(Ordering::Relaxed) {
                                break;
                            }
                        }
                        known
                    })
                })
                .collect();
            let end = SetOnDrop(is_over);
            let filter = RedisFilter::open(server.node(), name).unwrap();
            for round in 0..3 {
                std::thread::sleep(Duration::from_millis(50));
                let rebuild = filter.rebuild(&small_shards(100_000 + round)).unwrap();
                // Later items come only from the clients, which insert into both generations.
                let items = source.lock().unwrap().clone();
                assert!(rebuild.insert_each(&items).iter().all(Result::is_ok));
                std::thread::sleep(Duration::from_millis(50));
                rebuild.swap().unwrap();
            }
            drop(end);
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let filter = RedisFilter::open(server.node(), &name).unwrap();
        assert!(known.len() > 1000 && all_found(&filter.contains_each(&known)), "{}", known.len());
        let info = filter.info().unwrap();
        assert_eq!((info.items_planned, info.missing.len()), (100_002, 0));
        let keys = keys_of(&mut server.connection(), &format!("{name}:*"));
        assert_eq!(keys.len(), info.shards as usize, "the old shards are deleted");
    }
}

#[test]
fn a_rebuild_heals_a_filter_with_a_lost_shard() {
    let server = Server::start();
    let filter = RedisFilter::create(server.node(), "f", &small_shards(50_000)).unwrap();
    let items: Vec<u64> = (0..5_000).collect();
    filter.insert_each(&items);
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    let in_an_hour = in_an_hour();
    filter.expire_at(Some(in_an_hour)).unwrap();
    assert!(filter.contains_each(&items).iter().any(Result::is_err));
    let rebuild = filter.rebuild(&small_shards(50_000)).unwrap();
    assert!(rebuild.insert_each(&items).iter().all(Result::is_ok));
    rebuild.swap().unwrap();
    assert!(all_found(&filter.contains_each(&items)));
    let keys = keys_of(&mut redis, "*");
    for key in keys {
        let at: i64 = ask(&mut redis, &["PEXPIRETIME", &key]);
        assert!(at.abs_diff(in_an_hour.cast_signed()) < 50, "{key}: the rebuild keeps the expiry");
    }
}

#[test]
fn a_rebuild_is_aborted_and_another_one_is_refused() {
    let server = Server::start();
    let filter = RedisFilter::create(server.node(), "f", &small_shards(20_000)).unwrap();
    let other = RedisFilter::open(server.node(), "f").unwrap();
    let before = count_keys(&mut server.connection());
    let rebuild = filter.rebuild(&small_shards(20_000)).unwrap();
    let second = other.rebuild(&small_shards(20_000)).err().unwrap();
    assert!(matches!(second, RedisRebuildError::Running { .. }), "{second}");
    assert_eq!(other.insert(&1_u64), Ok(true));
    other.abort_rebuild().unwrap();
    let lost = rebuild.insert_each(&[7_u64]);
    assert_eq!(lost, [Err(RedisItemError::NoRebuild { name: "f".into() })]);
    let ended = rebuild.swap().err().unwrap();
    assert!(matches!(ended, RedisRebuildError::NotRunning { .. }), "{ended}");
    assert_eq!(count_keys(&mut server.connection()), before);
    assert_eq!((other.contains(&1_u64), filter.contains(&1_u64)), (Ok(true), Ok(true)));
    let keyed = small_shards(10).hasher(tamis::Hasher::keyed([1, 2]));
    assert!(matches!(filter.rebuild(&keyed), Err(RedisRebuildError::Plan { .. })));
    filter.rebuild(&small_shards(20_000)).unwrap().abort().unwrap();
    assert_eq!(count_keys(&mut server.connection()), before);
}

#[test]
fn a_client_does_not_end_the_rebuild_of_another_client() {
    let server = Server::start();
    let filter = RedisFilter::create(server.node(), "f", &small_shards(20_000)).unwrap();
    let other = RedisFilter::open(server.node(), "f").unwrap();
    filter.insert(&1_u64).unwrap();
    let first = filter.rebuild(&small_shards(20_000)).unwrap();
    other.abort_rebuild().unwrap();
    let second = other.rebuild(&small_shards(20_000)).unwrap();
    let lost = first.insert_each(&[7_u64]);
    assert_eq!(lost, [Err(RedisItemError::NoRebuild { name: "f".into() })]);
    let ended = first.swap().err().unwrap();
    assert!(matches!(ended, RedisRebuildError::NotRunning { .. }), "{ended}");
    assert_eq!(second.insert_each(&[1_u64]), [Ok(true)]);
    second.swap().unwrap();
    assert_eq!(filter.contains(&1_u64), Ok(true));
}

#[test]
fn a_rebuild_that_starts_while_another_one_is_aborted_keeps_its_flags() {
    let server = Server::start();
    let old = RedisFilter::create(server.node(), "f", &small_shards(20_000)).unwrap();
    let other = RedisFilter::open(server.node(), "f").unwrap();
    other.rebuild(&small_shards(20_000)).unwrap();
    let (mut redis, mut rebuilds) = (server.connection(), 0);
    let hook = |words: &[Vec<u8>], _: &mut _| {
        // The script that replaces the metadata.
        if words[0] == b"EVAL" && words[3] == b"f" {
            let keys = keys_of(&mut redis, "f:*");
            let retired = keys
                .iter()
                .filter(|key| ask::<i64>(&mut redis, &["GETBIT", key.as_str(), "22"]) == 1);
            assert_eq!(retired.count(), keys.len() / 2, "the shards that were built");
            other.rebuild(&small_shards(20_000)).unwrap();
            rebuilds += 1;
        }
    };
    let node = Hooked::new(server.node(), hook);
    RedisFilter::open(node, "f").unwrap().abort_rebuild().unwrap();
    assert_eq!(rebuilds, 1);
    // A client that knows no rebuild inserts into both generations.
    let items: Vec<u64> = (0..1000).collect();
    assert!(old.insert_each(&items).iter().all(Result::is_ok));
    let keys = keys_of(&mut server.connection(), "f:*");
    let empty = keys.iter().filter(|key| {
        ask::<String>(&mut server.connection(), &["GETRANGE", key.as_str(), "8", "15"])
            == "\0".repeat(8)
    });
    assert_eq!(empty.count(), 0);
}

#[test]
fn a_client_with_an_old_view_deletes_and_expires_all_keys() {
    let server = Server::start();
    let old = RedisFilter::create(server.node(), "f", &small_shards(20_000)).unwrap();
    let other = RedisFilter::open(server.node(), "f").unwrap();
    other.rebuild(&small_shards(20_000)).unwrap().swap().unwrap();
    let in_an_hour = in_an_hour();
    old.expire_at(Some(in_an_hour)).unwrap();
    let mut redis = server.connection();
    for key in keys_of(&mut redis, "*") {
        assert!(ask::<i64>(&mut redis, &["PTTL", &key]) > 0, "{key}");
    }
    other.rebuild(&small_shards(20_000)).unwrap();
    old.delete().unwrap();
    assert_eq!(count_keys(&mut redis), 0);
    old.delete().unwrap();
}

/// Returns a node that loses the replies to commands that write the metadata. With `undo`, it also
/// undoes their effect.
fn lossy(server: &Server, undo: &'static AtomicBool) -> impl tamis_redis::Transport + use<> {
    let (mut redis, mut text) = (server.connection(), None::<String>);
    Hooked::new(server.node(), move |words: &[Vec<u8>], reply: &mut _| {
        let is_script = words[0] == b"EVAL" && words[3] == b"f";
        let is_write = is_script || (words[0] == b"SET" && words[1] == b"f");
        if !is_write {
            return;
        }
        *reply = Err(SendError { message: "lost".into() });
        if undo.load(Ordering::Relaxed) {
            match &text {
                Some(text) => ask::<()>(&mut redis, &["SET", "f", text]),
                None => ask(&mut redis, &["DEL", "f"]),
            }
        }
        text = ask(&mut redis, &["GET", "f"]);
    })
}

#[test]
fn a_step_whose_reply_is_lost_is_done_or_leaves_nothing_behind() {
    static UNDO: AtomicBool = AtomicBool::new(true);
    let server = Server::start();
    let mut redis = server.connection();
    let size = |redis: &mut _| count_keys(redis);
    let failed =
        RedisFilter::create(lossy(&server, &UNDO), "f", &small_shards(20_000)).err().unwrap();
    assert!(
        matches!(failed, RedisCreateError::Redis(RedisItemError::Connection { .. })),
        "{failed}"
    );
    assert_eq!(size(&mut redis), 0);
    UNDO.store(false, Ordering::Relaxed);
    let filter = RedisFilter::create(lossy(&server, &UNDO), "f", &small_shards(20_000)).unwrap();
    let keys = size(&mut redis);
    UNDO.store(true, Ordering::Relaxed);
    let failed = filter.rebuild(&small_shards(20_000)).err().unwrap();
    assert!(
        matches!(failed, RedisRebuildError::Redis(RedisItemError::Connection { .. })),
        "{failed}"
    );
    assert_eq!(size(&mut redis), keys);
    UNDO.store(false, Ordering::Relaxed);
    filter.rebuild(&small_shards(20_000)).unwrap().abort().unwrap();
    assert_eq!(size(&mut redis), keys);
    let rebuild = filter.rebuild(&small_shards(20_000)).unwrap();
    assert_eq!(rebuild.insert_each(&[7_u64]), [Ok(true)]);
    rebuild.swap().unwrap();
    assert_eq!((filter.contains(&7_u64), size(&mut redis)), (Ok(true), keys));
}

fn window(server: &Server, slices: u32, slice_millis: u64) -> RedisFilter<SingleNode> {
    let span = RedisWindow { slices, slice_millis };
    let plan = small_shards(2_000).window(span).unwrap();
    RedisFilter::open_or_create(server.node(), "w", &plan).unwrap()
}

#[test]
fn items_of_a_window_are_found_until_their_slice_is_over() {
    let server = Server::start();
    let filter = window(&server, 3, 400);
    let reader = RedisFilter::open(server.node(), "w").unwrap();
    let late = RedisFilter::open(server.node(), "w").unwrap();
    // Two slices of three are complete, so an item lives for at least 800 ms. A lookup that ends later
    // proves nothing: the machine was busy.
    let must_live = |inserted: Instant| inserted.elapsed() < Duration::from_millis(800);
    let mut inserted: Vec<(u64, Instant)> = Vec::new();
    let start = Instant::now();
    for item in 0_u64.. {
        inserted.push((item, Instant::now()));
        assert_eq!(filter.insert(&item), Ok(true));
        std::thread::sleep(Duration::from_millis(20));
        let found = reader.contains_each(&(0..=item).collect::<Vec<_>>());
        for (item, at) in &inserted {
            assert!(!must_live(*at) || found[*item as usize] == Ok(true), "{item}: {found:?}");
        }
        if start.elapsed() > Duration::from_millis(2500) {
            break;
        }
    }
    // A client that was idle for many slices finds the newest items.
    let (last, at) = inserted[inserted.len() - 1];
    assert!(late.contains(&last) == Ok(true) || !must_live(at));
    // An item lives for at most 1200 ms. The next item was inserted after it.
    let is_over = |next: Instant| next.elapsed() > Duration::from_millis(1200);
    let over = inserted.windows(2).filter(|pair| is_over(pair[1].1)).map(|pair| pair[0].0);
    let over: Vec<u64> = over.collect();
    let found = reader.contains_each(&over);
    let found = found.into_iter().filter(|found| *found == Ok(true)).count();
    assert!(!over.is_empty() && found <= 3, "{found} of {}", over.len());
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "w:*");
    assert!(keys.len() <= 5 && (!keys.is_empty() || !must_live(at)), "{keys:?}");
    for key in &keys {
        assert_ne!(ask::<i64>(&mut redis, &["PTTL", key]), -1, "{key} has no time to live");
    }
    std::thread::sleep(Duration::from_millis(2000));
    assert_eq!(keys_of(&mut redis, "w:*"), Vec::<String>::new());
    assert_eq!(reader.contains(&last), Ok(false), "all slices are over");
    let at = Instant::now();
    assert_eq!(filter.insert(&last), Ok(true));
    assert!(reader.contains(&last) == Ok(true) || !must_live(at));
}

const MINUTE: u64 = 60_000;

/// Returns a node whose clock is fast by some milliseconds.
fn fast<'a>(server: &Server, millis: &'a AtomicU64) -> impl Transport + use<'a> {
    Hooked::new(server.node(), |words: &[Vec<u8>], reply: &mut NodeReply| {
        if words[0] == b"TIME" {
            let time = reply.clone().unwrap();
            let (seconds, micros): (u64, u64) = redis::from_redis_value(time).unwrap();
            let millis = 1000 * seconds + micros / 1000 + millis.load(Ordering::Relaxed);
            let parts = [millis / 1000, millis % 1000 * 1000];
            let part = |part: u64| Value::BulkString(part.to_string().into_bytes());
            *reply = Ok(Value::Array(parts.map(part).into()));
        }
    })
}

/// Returns how many milliseconds lead to the start of a slice of a minute, some days ahead.
fn until_a_slice_starts() -> u64 {
    let now = UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    (now + 10_000 * MINUTE).next_multiple_of(MINUTE) - now
}

#[test]
fn a_window_takes_the_time_from_the_server() {
    let server = Server::start();
    let millis = AtomicU64::new(until_a_slice_starts());
    let plan = small_shards(2_000).window(RedisWindow { slices: 3, slice_millis: MINUTE }).unwrap();
    let now = UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let filter = RedisFilter::create(fast(&server, &millis), "w", &plan).unwrap();
    let other = RedisFilter::open(fast(&server, &millis), "w").unwrap();
    assert_eq!((filter.insert("a"), other.contains("a")), (Ok(true), Ok(true)));
    assert_eq!(other.info().unwrap().items, 1);
    let text: String = ask(&mut server.connection(), &["GET", "w"]);
    let slice = (now + millis.load(Ordering::Relaxed)) / MINUTE;
    assert!(text.contains(&format!(" {slice} items=")), "{slice}: {text}");
    assert_eq!(text.lines().count(), 4, "one slice: {text}");
}

#[test]
fn an_insert_goes_to_the_present_slice_although_the_clock_of_the_client_stood_still() {
    let server = Server::start();
    let millis = AtomicU64::new(until_a_slice_starts());
    let plan = small_shards(2_000).window(RedisWindow { slices: 3, slice_millis: MINUTE }).unwrap();
    let filter = RedisFilter::create(fast(&server, &millis), "w", &plan).unwrap();
    assert_eq!(filter.insert_each(&["a", "b", "b"]), [Ok(true), Ok(true), Ok(false)]);
    // The machine of the client sleeps, and its monotonic clock with it.
    millis.fetch_add(MINUTE, Ordering::Relaxed);
    assert_eq!(filter.insert_each(&["b", "c", "c"]), [Ok(false), Ok(true), Ok(false)]);
    // Two slices of three are complete.
    millis.fetch_add(2 * MINUTE, Ordering::Relaxed);
    assert_eq!(filter.contains_each(&["a", "b", "c"]), [Ok(false), Ok(true), Ok(true)]);
    millis.fetch_add(MINUTE, Ordering::Relaxed);
    assert_eq!(filter.contains_each(&["b", "c"]), [Ok(false), Ok(false)]);
}

#[test]
fn clients_that_insert_at_the_start_of_a_slice_create_it_once() {
    let server = Server::start();
    window(&server, 100, 400);
    std::thread::scope(|scope| {
        for thread in 0..6_u64 {
            let server = &server;
            scope.spawn(move || {
                let filter = RedisFilter::open(server.node(), "w").unwrap();
                let reader = RedisFilter::open(server.node(), "w").unwrap();
                for i in 0..200 {
                    let item = 6 * i + thread;
                    filter.insert(&item).unwrap();
                    assert_eq!(reader.contains(&item), Ok(true), "{item}");
                    std::thread::sleep(Duration::from_millis(4));
                }
            });
        }
    });
    let filter = RedisFilter::open(server.node(), "w").unwrap();
    let items: Vec<u64> = (0..1200).collect();
    // On a busy machine a large batch may take longer than a slice, and is not settled.
    for items in items.chunks(50) {
        let found = filter.contains_each(items);
        assert!(all_found(&found), "{found:?}");
    }
    let text: String = ask(&mut server.connection(), &["GET", "w"]);
    let slices: Vec<&str> = text.lines().filter(|line| line.starts_with("generation")).collect();
    let keys = keys_of(&mut server.connection(), "w:*");
    assert_eq!(slices.len(), keys.len(), "{text}\n{keys:?}");
    let different =
        RedisFilter::open_or_create(server.node(), "w", &small_shards(2_000)).err().unwrap();
    assert!(matches!(different, RedisOpenError::Differs { .. }), "{different}");
}

#[test]
fn the_keys_of_a_slice_expire_with_it_or_with_the_filter() {
    let server = Server::start();
    let filter = window(&server, 3, MINUTE);
    filter.insert("a").unwrap();
    let mut redis = server.connection();
    let key: String = keys_of(&mut redis, "w:*").remove(0);
    let mut expiry = |key: &str| ask::<i64>(&mut redis, &["PEXPIRETIME", key]);
    let (slice_end, now) = (expiry(&key), UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
    let (soon, late) = (now + MINUTE, now + 100 * MINUTE);
    assert!(slice_end.cast_unsigned() > soon && expiry("w") == -1);
    filter.expire_at(Some(late)).unwrap();
    assert_eq!((expiry(&key), expiry("w")), (slice_end, late.cast_signed()));
    filter.expire_at(Some(soon)).unwrap();
    assert_eq!((expiry(&key), expiry("w")), (soon.cast_signed(), soon.cast_signed()));
    filter.expire_at(None).unwrap();
    assert_eq!((expiry(&key), expiry("w")), (slice_end, -1));
}

#[test]
fn a_lost_slice_is_an_error_and_a_window_is_not_rebuilt() {
    let server = Server::start();
    let filter = window(&server, 2, 60_000);
    filter.insert("a").unwrap();
    assert!(matches!(filter.rebuild(&small_shards(10)), Err(RedisRebuildError::Plan { .. })));
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "w:*");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    assert!(matches!(filter.contains("a"), Err(RedisItemError::MissingShard { .. })));
}
