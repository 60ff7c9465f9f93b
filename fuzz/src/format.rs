//! Any bytes are a filter of a format, or an error. A filter that was decoded keeps its items, and its
//! encoding is decoded to the same filter.

use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, Format};
use xxhash_rust::xxh3::xxh3_64;

/// The formats whose rates are measured. This takes up to 30 ms for a filter; with `cfg(fuzzing)`, fewer
/// bits are read.
const MEASURED: [&str; 11] = [
    "dcso",
    "guava",
    "hive",
    "leveldb",
    "orc",
    "redis-bitmap",
    "redisbloom",
    "redisson",
    "rocksdb",
    "spark",
    "stream-lib",
];

/// Without libFuzzer, one of this number of inputs of such a format computes rates and inserts items.
const CHANGED: u64 = 64;

const KEYS: [&[u8]; 6] = [b"", b"a", b"item", &[0; 4], &[7; 8], &[0x80; 40]];

pub(crate) fn run(format: &Format, bytes: &[u8]) {
    let _ = Format::of(bytes);
    let is_changed =
        cfg!(fuzzing) || !MEASURED.contains(&format.name) || xxh3_64(bytes).is_multiple_of(CHANGED);
    for options in [
        DecodeOptions::default(),
        DecodeOptions { items: Some(100), rate: Some(0.02), ..DecodeOptions::default() },
    ] {
        let Ok(mut contents) = (format.decode)(bytes, &options) else { continue };
        check_round_trip(format, &contents, &options, is_changed);
        if is_changed {
            insert(format, &mut contents, &options);
        }
        let other = contents.clone();
        let _ = contents.merge(&other);
        contents.contains_each(&KEYS, &mut Answers::new());
    }
}

/// Inserts items, and tests that the filter has them.
fn insert(format: &Format, contents: &mut Contents, options: &DecodeOptions) {
    let mut answers = Answers::new();
    // A filter without bits makes room for the capacity in its file at the first insert, as the original
    // program does. The capacity may be large.
    if contents.info().bits > 0 && contents.insert_each(&KEYS, &mut answers).is_ok() {
        contents.contains_each(&KEYS, &mut answers);
        assert_eq!(answers.count_ones(), KEYS.len(), "an inserted item is found");
        check_round_trip(format, contents, options, true);
    }
}

/// Tests that the encoding of a filter is decoded to the same filter.
fn check_round_trip(
    format: &Format,
    contents: &Contents,
    options: &DecodeOptions,
    compares_info: bool,
) {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    if (format.encode)(contents, options, &mut once).is_err() {
        return;
    }
    let decoded = (format.decode)(&once, options).expect("an encoding can be decoded");
    (format.encode)(&decoded, options, &mut twice).expect("a decoded filter can be encoded");
    assert!(once == twice, "the second encoding differs from the first");
    if compares_info {
        // Not compared for equality: a NaN is not equal to itself.
        assert_eq!(format!("{:?}", decoded.info()), format!("{:?}", contents.info()));
    }
}
