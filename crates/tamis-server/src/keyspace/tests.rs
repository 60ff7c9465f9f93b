use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tamis_commands::{ErrorReply, Outcome, Value};
use triomphe::Arc;

use crate::keyspace::entry::Entry;
use crate::keyspace::shards::SHARDS;
use crate::keyspace::*;

fn set(keys: &SharedAccess<'_>, key: &[u8], text: &str) {
    keys.write(key, 0, |value| *value = Some(Value::Bytes(text.as_bytes().to_vec().into())));
}

fn get(keys: &SharedAccess<'_>, key: &[u8], now: u64) -> Option<String> {
    keys.read(key, now, |value| match value {
        Some(Value::Bytes(text)) => Some(String::from_utf8(text.to_vec(0..text.len())).unwrap()),
        _ => None,
    })
}

#[test]
fn values_are_leased_kept_and_taken_out() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    assert_eq!((get(&keys, b"a", 0), keys.len()), (None, 0));
    set(&keys, b"a", "one");
    assert_eq!((get(&keys, b"a", 0).as_deref(), keys.len()), (Some("one"), 1));
    assert!(keys.remove(b"a", 0) && !keys.remove(b"a", 0));
    assert_eq!((get(&keys, b"a", 0), keys.len(), keyspace.memory_bytes()), (None, 0, 0));
}

#[test]
fn keys_expire_and_are_swept() {
    let keyspace = Keyspace::new();
    {
        let keys = keyspace.shared();
        set(&keys, b"a", "one");
        assert_eq!(keys.expiry(b"a", 0, |at| *at = Some(10)), Some(()));
        assert_eq!(keys.expires_millis(b"a", 9), Some(Some(10)));
        assert_eq!((get(&keys, b"a", 9).is_some(), get(&keys, b"a", 10)), (true, None));
        assert_eq!(keys.expiry(b"none", 0, |_| ()), None);
    }
    assert_eq!((0..SHARDS).map(|part| keyspace.sweep(part, 10)).sum::<usize>(), 1);
    assert!(keyspace.shared().is_empty());
    // A value that is set again has no expiry time.
    let keys = keyspace.shared();
    set(&keys, b"a", "two");
    assert_eq!(keys.expires_millis(b"a", 99), Some(None));
}

#[test]
fn keys_with_a_time_are_counted() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    for key in [&b"a"[..], b"b", b"c", b"d"] {
        set(&keys, key, "one");
        keys.expiry(key, 0, |at| *at = Some(10));
        keys.expiry(key, 0, |at| *at = Some(20));
    }
    assert_eq!(keyspace.expiring(), 4);
    keys.expiry(b"a", 0, Option::take);
    keys.expiry(b"none", 0, |at| *at = Some(1));
    keys.remove(b"b", 0);
    set(&keys, b"c", "two");
    assert_eq!(keyspace.expiring(), 2, "a time stays unless the value is another");
    drop(keys);
    assert!(keyspace.exclusive().rename(b"c", b"d", 0));
    assert_eq!(keyspace.expiring(), 1);
    (0..SHARDS).for_each(|part| _ = keyspace.sweep(part, 99));
    assert_eq!(keyspace.expiring(), 0);
    set(&keyspace.shared(), b"e", "one");
    keyspace.shared().expiry(b"e", 0, |at| *at = Some(10));
    drop(keyspace.exclusive().clear());
    assert_eq!(keyspace.expiring(), 0);
}

#[test]
fn every_key_that_expires_is_reported_once() {
    let keyspace = Keyspace::new();
    let expired = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let keep = expired.clone();
    keyspace.on_expired(move |key| keep.lock().push(key.to_vec()));
    for key in [b"swept", b"again", b"taken", b"later"] {
        set(&keyspace.shared(), key, "one");
        let at = if key == b"later" { 99 } else { 10 };
        keyspace.shared().expiry(key, 0, |slot| *slot = Some(at));
    }
    assert!(keyspace.shared().remove(b"taken", 5), "not by its time");
    set(&keyspace.shared(), b"other", "two");
    keyspace.shared().write(b"again", 10, |value| assert!(value.is_none()));
    (0..SHARDS).for_each(|part| _ = keyspace.sweep(part, 10));
    assert_eq!(*expired.lock(), [b"again", b"swept"]);
}

#[test]
fn a_changed_key_has_another_version() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    let mut versions = vec![keys.version(b"a", 0)];
    set(&keys, b"a", "one");
    versions.push(keys.version(b"a", 0));
    set(&keys, b"a", "one");
    versions.push(keys.version(b"a", 0));
    versions.dedup();
    assert_eq!(versions.len(), 3);
}

#[test]
fn a_value_moves_with_its_time() {
    let keyspace = Keyspace::new();
    set(&keyspace.shared(), b"a", "one");
    keyspace.shared().expiry(b"a", 0, |at| *at = Some(10));
    let keys = keyspace.exclusive();
    assert!(keys.rename(b"a", b"b", 0) && !keys.rename(b"a", b"b", 0));
    assert_eq!(keys.expires_millis(b"b", 0), Some(Some(10)));
    assert!(keys.rename(b"b", b"b", 0), "a key may be renamed to itself");
    drop(keys.clear());
    assert!(keys.is_empty());
}

#[test]
fn a_large_value_that_is_read_for_long_does_not_hold_up_other_keys() {
    let keyspace = Keyspace::new();
    set(&keyspace.shared(), b"large", &"x".repeat(1 << 20));
    keyspace.shared().expiry(b"large", 0, |at| *at = Some(10));
    set(&keyspace.shared(), b"small", "x");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let keyspace = &keyspace;
        threads.spawn(move || {
            let mut entries = (0..SHARDS).flat_map(|part| keyspace.entries(part));
            let large = entries.find(|entry| *entry.key == *b"large").unwrap();
            let len = large.read(
                || true,
                |_| (),
                |value, _, ()| {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    value.memory_bytes()
                },
            );
            assert!(len.unwrap() >= 1 << 20);
        });
        has_begun.recv().unwrap();
        // Other commands read this value and change other values.
        assert!(get(&keyspace.shared(), b"large", 0).is_some());
        set(&keyspace.shared(), b"small", "y");
        drop(runtime.block_on(keyspace.shared_to_change(b"small")));
        drop(runtime.block_on(keyspace.exclusive_to_change(|key| key == b"small")));
        assert!(keyspace.shared().is_leased(b"large") && !keyspace.shared().is_leased(b"small"));
        keyspace.shared().expiry(b"small", 0, |at| *at = Some(10));
        let sweep = || (0..SHARDS).map(|part| keyspace.sweep(part, 10)).sum::<usize>();
        assert_eq!((sweep(), sweep()), (1, 0), "the other stays for now");
        // A command that changes the key waits without holding the keys.
        runtime.block_on(async {
            let soon = Duration::from_millis(20);
            let change = keyspace.shared_to_change(b"large");
            assert!(tokio::time::timeout(soon, change).await.is_err());
            let change = keyspace.exclusive_to_change(|key| key == b"large");
            assert!(tokio::time::timeout(soon, change).await.is_err());
        });
        go_on.send(()).unwrap();
        let keys = runtime.block_on(keyspace.shared_to_change(b"large"));
        set(&keys, b"large", "z");
    });
    assert!(!keyspace.shared().is_leased(b"large"));
}

#[test]
fn a_waiting_writer_has_its_turn_between_readers_that_overlap() {
    let keyspace = Keyspace::new();
    set(&keyspace.shared(), b"large", "one");
    let (sampler, is_done) = (AtomicU64::new(0), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    // Waits until the other reader has begun too: without a writer the key would
                    // always have a lease.
                    keyspace.lease(b"large", 0, |_| {
                        let round = sampler.fetch_add(1, Ordering::Relaxed);
                        let mut patience = 200;
                        while sampler.load(Ordering::Relaxed) == round + 1 && patience > 0 {
                            std::thread::sleep(Duration::from_millis(1));
                            patience -= 1;
                        }
                    });
                }
            });
        }
        while sampler.load(Ordering::Relaxed) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let changed = runtime.block_on(async {
            let in_time = Duration::from_secs(5);
            for text in ["two", "three"] {
                let change = keyspace.shared_to_change(b"large");
                set(&tokio::time::timeout(in_time, change).await.ok()?, b"large", text);
                let change = keyspace.exclusive_to_change(|_| true);
                drop(tokio::time::timeout(in_time, change).await.ok()?);
            }
            // A writer that gives up no longer counts as waiting.
            let given_up = keyspace.shared_to_change(b"large");
            _ = tokio::time::timeout(Duration::ZERO, given_up).await;
            Some(())
        });
        let before = sampler.load(Ordering::Relaxed);
        while sampler.load(Ordering::Relaxed) < before + 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(changed, Some(()), "a writer waited for ever");
    });
    assert!(!keyspace.leases.is_awaited(b"large") && !keyspace.shared().is_leased(b"large"));
    assert_eq!(get(&keyspace.shared(), b"large", 0).as_deref(), Some("three"));
}

#[test]
fn several_may_have_a_value_for_long_and_see_if_it_changes() {
    let keyspace = Keyspace::new();
    set(&keyspace.shared(), b"large", "one");
    let version = keyspace.shared().version(b"large", 0);
    assert!(keyspace.lease(b"none", 0, |_| ()).is_none());
    let result = keyspace.lease(b"large", 0, |_| {
        // Another reader begins a lease in the middle of this one, as a snapshot would.
        let (has_two, other) = keyspace
            .lease(b"large", 0, |_| keyspace.shared().is_leased(b"large"))
            .expect("there is a value");
        assert!(has_two && other == version);
        // The end of one lease does not end the other.
        keyspace.shared().is_leased(b"large")
    });
    assert_eq!(result, Some((true, version)));
    assert!(!keyspace.shared().is_leased(b"large"));
    set(&keyspace.shared(), b"large", "two");
    assert_ne!(keyspace.shared().version(b"large", 0), version);
}

#[test]
fn no_write_is_lost_while_keys_come_and_go() {
    let keyspace = Keyspace::new();
    let added = AtomicU64::new(0);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..20_000 {
                    keyspace.shared().write(b"k", 0, |value| match value {
                        Some(Value::Bytes(text)) => text.write(text.len(), b"x"),
                        _ => *value = Some(Value::Bytes(b"x".to_vec().into())),
                    });
                }
            });
        }
        threads.spawn(|| {
            for _ in 0..20_000 {
                keyspace.shared().write(b"k", 0, |value| {
                    if let Some(Value::Bytes(text)) = value.take() {
                        added.fetch_add(text.len() as u64, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    let left = keyspace.shared().read(b"k", 0, |value| match value {
        Some(Value::Bytes(text)) => text.len() as u64,
        _ => 0,
    });
    assert_eq!(added.into_inner() + left, 40_000);
}

#[test]
fn what_reads_keys_for_long_finds_a_key_that_is_renamed_to_itself() {
    let keyspace = Keyspace::new();
    keyspace.shared().replace(b"me", Value::Bytes(b"1".to_vec().into()), None);
    let listed: Vec<_> = (0..keyspace.parts()).flat_map(|part| keyspace.entries(part)).collect();
    assert!(keyspace.exclusive().rename(b"me", b"me", 0));
    let found = listed[0].read(|| true, |_| (), |_, _, ()| ());
    assert!(found.is_some());
}

#[test]
fn what_reads_keys_for_long_finds_none_that_was_cleared() {
    let keyspace = Keyspace::new();
    let large = "x".repeat(1 << 20);
    set(&keyspace.shared(), b"small", "one");
    set(&keyspace.shared(), b"large", &large);
    let entries: Vec<Entry<'_>> =
        (0..SHARDS).flat_map(|part| keyspace.entries(part).collect::<Vec<_>>()).collect();
    assert_eq!(entries.len(), 2);
    let cleared = keyspace.exclusive().clear();
    assert!(!cleared.is_empty());
    for entry in entries {
        assert!(entry.read(|| true, |_| (), |_, _, ()| ()).is_none());
    }
    set(&keyspace.shared(), b"small", "two");
    drop(cleared);
    assert_eq!(get(&keyspace.shared(), b"small", 0).as_deref(), Some("two"));
    assert!(!keyspace.exclusive().clear().is_empty() && keyspace.exclusive().clear().is_empty());
}

#[test]
fn a_panic_in_a_write_leaves_no_key_without_a_value() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    set(&keys, b"here", "a string that is too long for the cell");
    let bytes = keyspace.memory_bytes();
    let panicking = |key: &[u8], taken: bool| {
        let change = || {
            keys.write(key, 0, |value| {
                if taken {
                    *value = None;
                }
                panic!("a bug");
            })
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(change)).is_err());
    };
    let version = keys.version(b"here", 0);
    panicking(b"new", false);
    panicking(b"here", false);
    assert_eq!((keys.len(), keyspace.memory_bytes()), (1, bytes));
    assert!(keys.version(b"here", 0) != version, "it may be another");
    panicking(b"here", true);
    assert_eq!((keys.len(), keyspace.memory_bytes()), (0, 0));
    set(&keys, b"here", "again");
    assert_eq!(get(&keys, b"here", 0).as_deref(), Some("again"));
}

#[test]
fn the_memory_of_keys_adds_up_and_goes_with_them() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    let name = |i: u32| format!("a key with a name of its own {i}").into_bytes();
    for i in 0..20_000 {
        set(&keys, &name(i), "x");
        keys.expiry(&name(i), 0, |at| *at = Some(10));
    }
    let sum: u64 = (0..20_000).filter_map(|i| keyspace.memory_of(&name(i), 0)).sum();
    let all = keyspace.memory_bytes();
    // Each key has its share of the tables, rounded down.
    assert!(all - sum < 20_000, "{all} {sum}");
    (0..19_000).for_each(|i| assert!(keys.remove(&name(i), 0)));
    assert!(keyspace.memory_bytes() < all / 12, "tables shrink");
    keyspace.measure(0, 0);
    drop(keys);
    drop(keyspace.exclusive().clear());
    assert_eq!((keyspace.memory_bytes(), keyspace.expiring()), (0, 0));
    keyspace.shared().write(b"f", 0, |value| {
        let mut filter = tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap();
        filter.insert_hash(7).unwrap();
        *value = Some(Value::Bloom(Box::new(filter)));
    });
    (0..SHARDS).for_each(|part| keyspace.measure(part, 1));
    assert!(keyspace.shared().remove(b"f", 0));
    assert_eq!(keyspace.memory_bytes(), 0, "and what was measured of it");
}

#[test]
fn a_filter_without_items_is_measured_without_memory() {
    let keyspace = Keyspace::new();
    let measured = |now_millis| {
        let mut found = Vec::new();
        for part in 0..SHARDS {
            keyspace.each_gauge(part, now_millis, |key, used| found.push((key.to_vec(), used)));
        }
        found
    };
    set(&keyspace.shared(), b"text", "x");
    keyspace.shared().write(b"f", 0, |value| {
        let filter = tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap();
        *value = Some(Value::Bloom(Box::new(filter)));
    });
    let bytes = keyspace.memory_bytes();
    assert_eq!(measured(1000), [(b"f".to_vec(), 0.0)]);
    assert_eq!(keyspace.memory_bytes(), bytes);
    let version = keyspace.shared().version(b"f", 0);
    keyspace.shared().change(b"f", 0, |value| {
        let Some(Value::Bloom(filter)) = value else { panic!() };
        filter.insert_hash(7).unwrap();
        let mut outcome = Outcome::from(ErrorReply::from(""));
        outcome.change = tamis_commands::Change::Words;
        outcome
    });
    assert_ne!(keyspace.shared().version(b"f", 0), version);
    assert_eq!(measured(2000), [(b"f".to_vec(), 0.01)]);
    assert!(keyspace.memory_bytes() > bytes);
}

#[test]
fn a_filter_that_is_measured_while_all_keys_are_taken_out_is_not_counted() {
    let keyspace = Keyspace::new();
    let filter = tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap();
    let put = || {
        let mut filter = filter.emptied().unwrap();
        filter.insert_hash(1).unwrap();
        keyspace.shared().put(b"filter", 0, Value::Bloom(Box::new(filter)), None);
    };
    put();
    let (clears, cell) = (keyspace.clears(), keyspace.cell(b"filter").unwrap());
    drop(keyspace.exclusive().clear());
    keyspace.measure_cell(&cell, clears, 0);
    assert_eq!(keyspace.memory_bytes(), 0);
    put();
    (0..SHARDS).for_each(|part| keyspace.measure(part, 0));
    assert!(keyspace.shared().remove(b"filter", 0));
    assert_eq!(keyspace.memory_bytes(), 0);
}

#[test]
fn reserved_places_take_new_keys_without_growth_and_are_given_back_unused() {
    let keyspace = Keyspace::new();
    let keys: Vec<String> = (0..50_000).map(|i| format!("key:{i}")).collect();
    set(&keyspace.shared(), keys[0].as_bytes(), "x");
    let before = keyspace.memory_bytes();
    let cell = before - tables(&keyspace, keys[0].as_bytes());
    let hashes = || keys.iter().filter_map(|key| keyspace.hash_of_new(key.as_bytes()));
    assert_eq!(hashes().count(), keys.len() - 1);
    keyspace.reserve(hashes().collect(), 50_000);
    assert_eq!(keyspace.memory_bytes(), before, "there is no memory for it");
    keyspace.reserve(hashes().chain(hashes()).collect(), 1 << 30);
    let reserved = keyspace.memory_bytes();
    assert!((450_000..2_000_000).contains(&(reserved - before)), "{before} {reserved}");
    for key in &keys {
        set(&keyspace.shared(), key.as_bytes(), "x");
    }
    assert_eq!(keyspace.memory_bytes() - reserved, cell * (keys.len() as u64 - 1));
    keyspace.shrink();
    assert_eq!(keyspace.memory_bytes() - reserved, cell * (keys.len() as u64 - 1));
    for key in &keys {
        keyspace.shared().remove(key.as_bytes(), 0);
    }
    assert_eq!(keyspace.memory_bytes(), 0);
    keyspace.reserve(hashes().collect(), 1 << 30);
    keyspace.shrink();
    assert_eq!(keyspace.memory_bytes(), 0);
}

/// Returns the memory of the table that contains a key, in bytes.
fn tables(keyspace: &Keyspace, key: &[u8]) -> u64 {
    keyspace.place(key).0.read().heap_bytes()
}

#[test]
fn empty_filters_of_equal_parameters_are_built_once_for_a_command() {
    let keyspace = Keyspace::new();
    let alone = keyspace.exclusive();
    for key in [b"a", b"b"] {
        let plan = tamis::Plan::for_kind(tamis::Kind::Counting, 100, 0.01).unwrap();
        let filter = tamis::AnyFilter::new(&plan, tamis::Hasher::default()).unwrap();
        let filter = Value::Filter(Box::new(tamis_formats::TamisFile::new(filter)));
        alone.put(key, 0, filter, None);
        let cell = keyspace.cell(key).unwrap();
        assert!(matches!(cell.state.read().value(0), Some(Value::Empty(_))));
    }
    let sources: [&[u8]; 5] = [b"a", b"a", b"none", b"b", b"a"];
    let done = alone.write_by(b"d", &sources, 0, 2000, |_, found| {
        assert!(found[2].is_none() && matches!(found[0], Some(Value::Filter(_))));
        for at in [1, 3, 4] {
            assert!(std::ptr::eq(found[0].unwrap(), found[at].unwrap()), "{at} was built again");
        }
    });
    assert_eq!(done, Some(()));
    assert_eq!(alone.write_by(b"d", &sources, 0, 10, |_, _| ()), None, "no memory for it");
}
