//! Snapshots of a real server decode key by key.

use std::collections::BTreeSet;

use crate::support::{assert_fails, decode};
use tamis_formats::{DecodeErrorKind, Rdb, RedisValue};
use tamis_redisbloom::RedisBloom;

const FILES: [&str; 3] = ["lfu.rdb", "lru-uncompressed.rdb", VALKEY];

/// A snapshot of Valkey 9, with keys of types that only it has, and filters.
const VALKEY: &str = "valkey.rdb";

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(crate::golden_data::path("redis_rdb").join(name)).unwrap()
}

/// The database, key and type of each key.
fn keys(bytes: &[u8]) -> BTreeSet<(u64, String, &'static str)> {
    let entries = Rdb::new(bytes).unwrap().entries().map(Result::unwrap);
    entries
        .map(|it| (it.database(), String::from_utf8(it.key().to_vec()).unwrap(), it.type_name()))
        .collect()
}

#[test]
fn every_key_of_every_type_is_found() {
    let mut expected: BTreeSet<_> = [
        ("string", "text number small wide long bitmap seconds millis"),
        ("hash", "small-hash long-hash plain-hash"),
        ("list", "list big-list"),
        ("set", "intset set"),
        ("zset", "zset small-zset"),
        ("stream", "stream"),
    ]
    .into_iter()
    .flat_map(|(kind, keys)| keys.split(' ').map(move |key| (0, key.to_owned(), kind)))
    .collect();
    expected.extend(["text", "only"].map(|key| (3, key.to_owned(), "string")));
    for file in FILES {
        let mut expected = expected.clone();
        if file == VALKEY {
            expected.insert((0, "expiring-hash".to_owned(), "hash"));
            expected.insert((0, "bloom".to_owned(), "MBbloom--"));
        }
        assert_eq!(keys(&golden(file)), expected, "{file}");
    }
}

#[test]
fn a_filter_of_valkey_is_read_from_a_snapshot_and_from_a_dump() {
    for file in [VALKEY, "valkey-bloom.dump"] {
        let read = decode("redisbloom", &golden(file));
        let contents = read.unwrap_or_else(|error| panic!("{file}: {error}"));
        let filter: &RedisBloom = contents.downcast_ref().unwrap();
        assert_eq!(filter.len(), 2, "{file}");
        assert!(["tamis", "valkey"].iter().all(|item| filter.contains(*item)), "{file}");
    }
    let bitmap = RedisValue::string_of(&golden("valkey-bitmap.dump")).unwrap();
    assert_eq!((bitmap.len(), bitmap[0], bitmap[125]), (126, 1, 1 << 7));
}

#[test]
fn a_newer_version_is_named_if_a_type_is_unknown() {
    for (start, version) in [("REDIS0099", "99"), ("VALKEY099", "99")] {
        let known = [start.as_bytes(), b"\0\x03key\x01x\xff", &[0; 8]].concat();
        assert_eq!(keys(&known).len(), 1, "{start}");
        let unknown = [start.as_bytes(), b"\x63\x03key\x01x\xff", &[0; 8]].concat();
        let checked = Rdb::new(&unknown).unwrap().check();
        assert_fails(checked, &format!("version {version} of the file is newer"));
    }
}

#[test]
fn imports_of_slots_and_data_of_modules_before_a_key_are_skipped() {
    let end = [b"\0\x03key\x01x\xff".as_slice(), &[0; 8]].concat();
    // A name, and two ranges of slots.
    let import = b"\xf3\x04name\x02\x00\x05\x0a\x50\x00".as_slice();
    // One module: its class, a number, a string and the end of its values.
    let metadata = b"\xf3\x01clas\x02\x07\x05\x02ab\x00".as_slice();
    for (start, skipped) in [("VALKEY080", import), ("REDIS0013", metadata)] {
        let bytes = [start.as_bytes(), skipped, &end].concat();
        assert_eq!(keys(&bytes).len(), 1, "{start}");
        for cut in 1..skipped.len() {
            let bytes = [start.as_bytes(), &skipped[..cut], b"\xff", &[0; 8]].concat();
            assert!(Rdb::new(&bytes).unwrap().entries().any(|entry| entry.is_err()), "{cut}");
        }
    }
}

/// The snapshot without a checksum, as a server with `rdbchecksum no` writes it.
fn unchecked(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = bytes.len() - 8;
    bytes[checksum..].fill(0);
    bytes
}

#[test]
fn cut_and_changed_snapshots_are_refused() {
    for file in FILES {
        let bytes = golden(file);
        for at in 0..bytes.len() {
            // These bytes look like a snapshot without a checksum, but they end too early.
            let is_whole = |rdb: Rdb<'_>| rdb.entries().all(|entry| entry.is_ok());
            assert!(!Rdb::new(&bytes[..at]).is_ok_and(is_whole), "{file} cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            // Byte 8 is a digit of the version. With another digit, the bytes may be a valid
            // snapshot of an older version, which has no checksum.
            if at != 8 {
                assert!(Rdb::new(&changed).is_err(), "{file} changed at {at}");
            }
        }
        assert!(Rdb::new(&[&bytes[..], b"\n"].concat()).is_err(), "{file} and a line feed");
    }
}

#[test]
fn snapshots_without_a_checksum_are_read() {
    for file in FILES {
        let bytes = unchecked(golden(file));
        assert_eq!(keys(&bytes), keys(&golden(file)), "{file}");
        for at in 10..bytes.len() - 8 {
            for flip in [1, 64, 128, 255] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                // Returns keys or an error, in time proportional to the size of the input.
                Rdb::new(&changed).unwrap().entries().for_each(drop);
            }
            let cut = [&bytes[..at], &[0; 8]].concat();
            let last = Rdb::new(&cut).unwrap().entries().last();
            assert!(last.is_none_or(|entry| entry.is_err()), "{file} cut at {at}");
        }
    }
}

#[test]
fn an_unknown_type_is_reported_with_its_offset() {
    let redis = [6, 8, 22, 23, 26, 200].map(|kind| ("REDIS0012", kind));
    // Valkey has no types 24 and 25.
    let valkey = [24, 25].map(|kind| ("VALKEY080", kind));
    for (start, kind) in redis.into_iter().chain(valkey) {
        let bytes = [start.as_bytes(), b"\xfe\0".as_slice(), &[kind], b"\x03odd\x01x\xff", &[0; 8]]
            .concat();
        let error = Rdb::new(&bytes).unwrap().entries().next().unwrap().unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::Refused { .. }));
        let text = error.to_string();
        assert!(text.contains(&format!("type {kind} ")) && text.contains("\"odd\""), "{text}");
        assert_eq!(error.at, 11);
    }
}

#[test]
fn types_of_older_and_newer_servers_are_skipped() {
    let text = b"\x01x".as_slice();
    let group = b"\0\0\0\0\x01\x01g\0\0\x01".as_slice();
    let stream = [group, &[0; 25], b"\x01\x01c", &[0; 8], b"\x01", &[0; 16]].concat();
    for (name, kind, value) in [
        ("list", 1, [b"\x02".as_slice(), text, text].concat()),
        ("set", 2, [b"\x01".as_slice(), text].concat()),
        ("scores as text", 3, b"\x03\x01a\x031.5\x01b\xfe\x01c\xff".to_vec()),
        ("hash", 4, b"\x01\x01a\x01b".to_vec()),
        ("zipmap", 9, text.to_vec()),
        ("ziplist", 10, b"\xc3\x03\x04\x01ab".to_vec()),
        ("sorted ziplist", 12, text.to_vec()),
        ("quicklist", 14, [b"\x02".as_slice(), text, text].concat()),
        ("stream", 15, stream),
        ("fields that expire", 24, [[1; 8].as_slice(), b"\x01\x05\x01a\x01b"].concat()),
        ("the same, small", 25, [[1; 8].as_slice(), text].concat()),
        (
            "module",
            7,
            b"\x81\0\0\0\0\0\0\0\x01\x01\x05\x02\x06\x03....\x04........\x05\x01x\0".to_vec(),
        ),
    ] {
        let start = [b"REDIS0012".as_slice(), &[kind], b"\x03odd"].concat();
        let end = b"\0\x04last\x01y\xff\0\0\0\0\0\0\0\0";
        let bytes = [&start, &value, end.as_slice()].concat();
        let keys: Vec<_> = Rdb::new(&bytes)
            .unwrap()
            .entries()
            .map(|it| it.unwrap_or_else(|error| panic!("{name}: {error}")).key().to_vec())
            .collect();
        assert_eq!(keys, [b"odd".to_vec(), b"last".to_vec()], "{name}");
    }
}
