//! Tests that the decoder of a format returns a filter or an error for any bytes. Also tests that a decoded filter
//! contains the inserted items, and that encoding and decoding return the same filter.

use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, Format};
use xxhash_rust::xxh3::xxh3_64;

/// The formats whose filters measure the false positive rate. A measurement takes up to 30 ms per filter. With
/// `cfg(fuzzing)`, a measurement reads fewer bits.
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

/// Without libFuzzer, the target measures rates and inserts items only for one of 64 inputs of a format in
/// [`MEASURED`].
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

/// Inserts items, and tests that the filter contains the items.
fn insert(format: &Format, contents: &mut Contents, options: &DecodeOptions) {
    let mut answers = Answers::new();
    // At the first insert, a filter without bits allocates memory for the capacity in the file, like the original
    // program. A forged capacity may be very large, so the target skips filters without bits.
    if contents.info().bits > 0 && contents.insert_each(&KEYS, &mut answers).is_ok() {
        contents.contains_each(&KEYS, &mut answers);
        assert_eq!(answers.count_ones(), KEYS.len(), "an inserted item is found");
        check_round_trip(format, contents, options, true);
    }
}

/// Tests that encoding and decoding return the same filter.
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
        // The code compares the debug texts, because a NaN is not equal to itself.
        assert_eq!(format!("{:?}", decoded.info()), format!("{:?}", contents.info()));
    }
}
