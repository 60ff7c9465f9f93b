//! LevelDB's filter blocks give the same answers in Tamis as in LevelDB. Tamis builds and
//! re-encodes them to equal bytes.

use crate::golden_data::{hex, json, list, number};
use crate::support::{answers, assert_fails, assert_refused, encode_filter, insert};
use tamis_formats::leveldb::FilterBlock;
use tamis_formats::{Contents, DecodeOptions, Format};

fn key(i: i128) -> String {
    format!("k{i:05}{}", if i % 9 == 0 { "中" } else { "" })
}

#[test]
fn blocks_cut_from_tables_hold_their_keys() {
    let golden = json("lsm/lsm_blocks.json");
    assert_eq!(list(&golden["leveldb"]).len(), 5);
    for case in list(&golden["leveldb"]) {
        let bytes = hex(&case["filter_block_hex"]);
        let block = FilterBlock::decode(&bytes).unwrap();
        assert_eq!(block.filters() as i128, number(&case["filters_in_block"]), "{case}");
        let keys: Vec<_> = (0..number(&case["keys"])).map(key).collect();
        assert!(keys.iter().all(|key| block.contains_any(key.as_bytes())), "{case}");
        let is_first = keys.iter().all(|key| block.contains_at(0, key.as_bytes()));
        assert_eq!(is_first, case["first_filter_holds_all_keys"].as_bool().unwrap(), "{case}");
        if is_first {
            let placed: Vec<_> = keys.iter().map(|key| (0, key)).collect();
            let bits_per_key = number(&case["bits_per_key"]) as u32;
            assert_eq!(FilterBlock::build(bits_per_key, &placed), block, "{case}");
        }
        let found = answers(&Contents::new(block.clone()), &keys);
        assert!(found.iter().all(|&found| found), "{case}");
        assert!(encode_filter("leveldb", &block) == bytes, "{case}");
    }
}

#[test]
fn keys_are_tested_at_the_offset_of_their_block() {
    let block = FilterBlock::build(16, &[(4_100, "late"), (100, "early"), (2_000, "first 2 KiB")]);
    assert_eq!(block.filters(), 3);
    for (offset, key, is_in) in [
        (0, "early", true),
        (2_047, "first 2 KiB", true),
        (0, "late", false),
        (2_048, "early", false),
        (4_096, "late", true),
        (4_096, "early", false),
        (6_144, "after the last filter", true),
        (u64::MAX, "after the last filter", true),
    ] {
        assert_eq!(block.contains_at(offset, key.as_bytes()), is_in, "{offset} {key}");
    }
    assert_eq!(FilterBlock::decode(&encode_filter("leveldb", &block)).unwrap(), block);
    let empty = FilterBlock::build::<&str>(10, &[]);
    assert!(!empty.contains_any(b"key") && empty.contains_at(0, b"key"));
    assert_eq!(encode_filter("leveldb", &empty), [0, 0, 0, 0, 11]);
}

#[test]
fn more_than_30_probes_answer_yes_with_a_warning() {
    let mut bytes = encode_filter("leveldb", &FilterBlock::build(10, &[(0, "key")]));
    assert_eq!(bytes[8], 6);
    bytes[8] = 31;
    let block = FilterBlock::decode(&bytes).unwrap();
    assert!(block.contains_any(b"any") && block.contains_at(0, b"any"));
    let info = Contents::new(block).info();
    assert_eq!(info.rate_now, 1.0);
    assert!(info.warnings[0].contains("more than 30 probes"));
}

#[test]
fn a_block_rejects_inserts_and_merges() {
    let mut contents = Contents::new(FilterBlock::build(10, &[(0, "key")]));
    assert_fails(insert(&mut contents, &["new"]), "build the filter again");
    assert_fails(contents.merge(&contents.clone()), "one table");
    let info = contents.info();
    assert_eq!((info.bits, info.probes), (64, Some(6)));
    assert!((info.items - 1.0).abs() < 0.2, "{}", info.items);
}

#[test]
fn broken_offsets_are_refused_by_place() {
    let good = encode_filter("leveldb", &FilterBlock::build(10, &[(0, "key"), (2_048, "other")]));
    assert_eq!(good.len(), 2 * 9 + 2 * 4 + 5);
    let changes = [
        (18, 1, "offset of a filter at byte 18 is 1"),
        (22, 1, "offset of a filter at byte 22 is 1"),
        (22, 19, "offset of a filter at byte 22 is 19"),
        (22, 17, "offset of the offsets at byte 26 is 18"),
        (26, 17, "offset of the offsets at byte 26 is 17"),
        (26, 27, "offset of the offsets at byte 26 is 27"),
        (30, 64, "base lg at byte 30 is 64"),
    ];
    assert_refused(&good, FilterBlock::decode, &changes);
    assert!(FilterBlock::decode(&good[..4]).unwrap_err().to_string().contains("truncated"));
}

/// Files of `tests/golden/lsm`: tables with the keys `key00000` to `key00199`.
#[test]
fn the_filter_of_a_whole_table_is_read() {
    let keys: Vec<String> = (0..200).map(|i| format!("key{i:05}")).collect();
    let others: Vec<String> = (0..2000).map(|i| format!("other{i}")).collect();
    for (name, format) in
        [("leveldb.ldb", "leveldb"), ("rocksdb-5.sst", "rocksdb"), ("rocksdb-6.sst", "rocksdb")]
    {
        let bytes = std::fs::read(crate::golden_data::path(&format!("lsm/{name}"))).unwrap();
        let found = Format::of(&bytes);
        assert!(found.len() == 1 && found[0].name == format, "{name}: {found:?}");
        let decode = |bytes: &[u8]| (found[0].decode)(bytes, &DecodeOptions::default());
        let contents = decode(&bytes).unwrap();
        assert!(answers(&contents, &keys).iter().all(|&found| found), "{name}");
        let found = answers(&contents, &others).iter().filter(|&&found| found).count();
        assert!(found < 100, "{name}: {found}");
        assert!(tamis_formats::is_sorted_table(&bytes));
        // A table cut at its start keeps its footer, whose positions are then wrong or outside.
        for from in 1..bytes.len() {
            _ = decode(&bytes[from..]);
        }
        // Each read block has a checksum.
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            if let Ok(contents) = decode(&damaged) {
                let found = answers(&contents, &keys);
                assert!(found.iter().all(|&found| found), "{name}: damaged at {at}");
            }
        }
    }
    let error_of = |name: &str| {
        let bytes = std::fs::read(crate::golden_data::path(&format!("lsm/{name}"))).unwrap();
        let format = Format::of(&bytes)[0];
        (format.decode)(&bytes, &DecodeOptions::default()).unwrap_err().to_string()
    };
    assert!(error_of("rocksdb-none.sst").contains("has no Bloom filter: write the table with one"));
}

/// A filter of prefixes reports every whole key as absent.
#[test]
fn a_table_whose_filter_has_only_prefixes_is_refused() {
    let path = crate::golden_data::path("lsm/rocksdb-5.sst");
    let mut bytes = std::fs::read(path).unwrap();
    // The properties lie before the metaindex, which the footer names. Each block ends with its type
    // and its checksum.
    const METAINDEX: usize = 2933;
    let end = METAINDEX - 5;
    let stored: [u8; 4] = bytes[end + 1..METAINDEX].try_into().unwrap();
    let checksum = |block: &[u8]| (xxhash_rust::xxh3::xxh3_64(block) as u32).to_le_bytes();
    let start = (0..end).find(|&start| checksum(&bytes[start..end]) == stored).unwrap();
    let name = b"whole.key.filtering";
    let at = bytes.windows(name.len()).position(|part| part == name).unwrap() + name.len();
    assert!(start < at && bytes[at] == b'1');
    bytes[at] = b'0';
    let resealed = checksum(&bytes[start..end]);
    bytes[end + 1..METAINDEX].copy_from_slice(&resealed);
    let format = Format::of(&bytes)[0];
    assert_fails((format.decode)(&bytes, &DecodeOptions::default()), "whole_key_filtering = true");
}

/// Each name repeats the one before, so that a small file could ask for terabytes.
#[test]
fn a_table_with_endless_names_is_refused() {
    let mut block = vec![0, 0x80, 0x89, 0x7a, 0];
    block.resize(block.len() + 2_000_000, b'f');
    for _ in 0..1000 {
        block.extend([0x80, 0x89, 0x7a, 0, 0]);
    }
    block.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    let mut checksum = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    checksum.update(&block);
    checksum.update(&[0]);
    let checksum = (checksum.finalize() as u32).rotate_right(15).wrapping_add(0xa282_ead8);
    let mut footer = vec![0];
    let mut len = block.len();
    while len >= 0x80 {
        footer.push(len as u8 | 0x80);
        len >>= 7;
    }
    footer.push(len as u8);
    footer.resize(40, 0);
    footer.extend(b"\x57\xfb\x80\x8b\x24\x75\x47\xdb");
    block.push(0);
    block.extend(checksum.to_le_bytes());
    block.extend(footer);
    let format = Format::of(&block)[0];
    assert_fails((format.decode)(&block, &DecodeOptions::default()), "at most 1,024 bytes");
}
