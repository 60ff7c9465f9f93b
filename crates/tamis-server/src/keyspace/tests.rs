use std::sync::atomic::{AtomicU64, Ordering};

use tamis_commands::Value;
use triomphe::Arc;

use crate::keyspace::shards::SHARDS;
use crate::keyspace::*;

pub(super) fn set(keys: &SharedAccess<'_>, key: &[u8], text: &str) {
    keys.write(key, 0, |value| *value = Some(Value::Bytes(text.as_bytes().to_vec().into())));
}

/// Sets the expiry time of a key.
pub(super) fn expire(keys: &SharedAccess<'_>, key: &[u8], at: u64) {
    assert_eq!(keys.expiry(key, 0, |expires| *expires = Some(at)), Some(()));
}

/// Removes all expired keys. Returns the number of removed keys.
pub(super) fn sweep(keyspace: &Keyspace, now_millis: u64) -> usize {
    (0..SHARDS).map(|part| keyspace.sweep(part, now_millis)).sum()
}

/// Returns a Bloom filter with one item if `hash` is given, or with no items.
pub(super) fn bloom(hash: Option<u64>) -> Value {
    let mut filter = tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap();
    hash.inspect(|hash| _ = filter.insert_hash(*hash).unwrap());
    Value::Bloom(Box::new(filter))
}

/// Returns a filter of the kind `counting` without items.
pub(crate) fn counting() -> Value {
    let plan = tamis::Plan::for_kind(tamis::Kind::Counting, 100, 0.01).unwrap();
    let filter = tamis::AnyFilter::from_plan(&plan, tamis::Hasher::default()).unwrap();
    Value::Filter(Box::new(tamis_formats::TamisFile::new(filter)))
}

pub(super) fn get(keys: &SharedAccess<'_>, key: &[u8], now: u64) -> Option<String> {
    keys.read(key, now, |value| match value {
        Some(Value::Bytes(text)) => Some(String::from_utf8(text.to_vec(0..text.len())).unwrap()),
        _ => None,
    })
}

#[test]
fn values_are_read_replaced_and_removed() {
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
        expire(&keys, b"a", 10);
        assert_eq!(keys.expires_millis(b"a", 9), Some(Some(10)));
        assert_eq!((get(&keys, b"a", 9).is_some(), get(&keys, b"a", 10)), (true, None));
        assert_eq!(keys.expiry(b"none", 0, |_| ()), None);
    }
    assert_eq!(sweep(&keyspace, 10), 1);
    assert!(keyspace.shared().is_empty());
    // A value that is set after the old value has expired has no expiry time.
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
        expire(&keys, key, 10);
        expire(&keys, key, 20);
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
    sweep(&keyspace, 99);
    assert_eq!(keyspace.expiring(), 0);
    set(&keyspace.shared(), b"e", "one");
    expire(&keyspace.shared(), b"e", 10);
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
        expire(&keyspace.shared(), key, if key == b"later" { 99 } else { 10 });
    }
    assert!(keyspace.shared().remove(b"taken", 5), "not by its time");
    set(&keyspace.shared(), b"other", "two");
    keyspace.shared().write(b"again", 10, |value| assert!(value.is_none()));
    sweep(&keyspace, 10);
    assert_eq!(*expired.lock(), [b"again", b"swept"]);
}

#[test]
fn a_changed_key_has_another_version() {
    let keyspace = Keyspace::new();
    let keys = keyspace.shared();
    let version = || keys.version(b"a", 0);
    let set_again = || {
        set(&keys, b"a", "one");
        version()
    };
    let [none, first, second] = [version(), set_again(), set_again()];
    assert!(none != first && first != second);
}

#[test]
fn a_value_moves_with_its_time() {
    let keyspace = Keyspace::new();
    set(&keyspace.shared(), b"a", "one");
    expire(&keyspace.shared(), b"a", 10);
    let keys = keyspace.exclusive();
    assert!(keys.rename(b"a", b"b", 0) && !keys.rename(b"a", b"b", 0));
    assert_eq!(keys.expires_millis(b"b", 0), Some(Some(10)));
    assert!(keys.rename(b"b", b"b", 0), "a key may be renamed to itself");
    drop(keys.clear());
    assert!(keys.is_empty());
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
fn empty_filters_of_equal_parameters_are_built_once_for_a_command() {
    let keyspace = Keyspace::new();
    let alone = keyspace.exclusive();
    for key in [b"a", b"b"] {
        alone.put(key, 0, counting(), None);
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
