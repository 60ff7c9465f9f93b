//! Hadoop's filters give the same answers in Tamis as in Hadoop, and re-encode to equal bytes.

use crate::golden_data::files::dynamic_of_rows;
use crate::golden_data::{hex, json, list, number, text};
use crate::support::{assert_answers, assert_fails, assert_refused, encode};
use tamis_formats::hadoop::{self, CountingFilter, DynamicFilter, HashType};
use tamis_formats::{Contents, StoredFilter as _};

fn hash_type(json: &serde_json::Value) -> HashType {
    if number(json) == 0 { HashType::Jenkins } else { HashType::Murmur }
}

#[test]
fn filters_of_both_hashes_are_the_same() {
    let golden = json("hadoop/hadoop.json");
    assert_eq!(list(&golden["hadoop_bloom_filter"]).len(), 6);
    for case in list(&golden["hadoop_bloom_filter"]) {
        let (bits, probes) = (number(&case["vector_size"]), number(&case["nb_hash"]));
        let mut filter =
            hadoop::create(bits as u32, probes as u32, hash_type(&case["hash_type"])).unwrap();
        (0..8).for_each(|i| _ = filter.insert(format!("row{i}").as_bytes()));
        filter.insert(&[0x80, 0xff, 7]);
        let bytes = hex(&case["writable_hex"]);
        assert_eq!(encode("hadoop", &Contents::new(filter.clone())).unwrap(), bytes, "{case}");
        assert_eq!(hadoop::decode(&bytes).unwrap(), filter);
        let found = |i| filter.contains(format!("row{i}").as_bytes()).into();
        assert_answers(&case["probes_0_39"], found);
    }
}

fn counting() -> (CountingFilter, serde_json::Value) {
    let case = json("hadoop/hadoop.json")["hadoop_counting_bloom_filter"].clone();
    let (counters, probes) = (number(&case["vector_size"]), number(&case["nb_hash"]));
    let hash_type = hash_type(&case["hash_type"]);
    (CountingFilter::new(counters as u32, probes as u32, hash_type).unwrap(), case)
}

#[test]
fn counters_are_the_same_and_go_down_again() {
    let (mut filter, case) = counting();
    assert_eq!(text(&case["adds"]), "c0..c4 cyclic, 20 adds");
    (0..20).for_each(|i| _ = filter.insert(format!("c{}", i % 5).as_bytes()));
    let bytes = |filter: &CountingFilter| {
        encode("hadoop-counting", &Contents::new(filter.clone())).unwrap()
    };
    assert_eq!(bytes(&filter), hex(&case["writable_hex"]));
    assert_eq!(CountingFilter::decode(&bytes(&filter)).unwrap(), filter);
    assert_eq!(i128::from(filter.count(b"c1")), number(&case["approximate_count_c1"]));
    assert!(filter.remove(b"c1"));
    assert_eq!(bytes(&filter), hex(&case["after_delete_c1_hex"]));
    assert_eq!(filter.contains(b"c1"), case["membership_c1_after"].as_bool().unwrap());
}

#[test]
fn a_counter_at_15_stays_and_is_reported() {
    let (mut filter, _) = counting();
    assert!(filter.insert(b"often"));
    (0..30).for_each(|_| assert!(!filter.insert(b"often")));
    assert_eq!(filter.count(b"often"), 15);
    assert!((0..100).all(|_| filter.remove(b"often")));
    assert_eq!(filter.count(b"often"), 15);
    assert!(!filter.remove(b"never"), "not in, so nothing to delete");
    let info = Contents::new(filter).info();
    assert_eq!(info.warnings.len(), 1);
    assert!(info.warnings[0].contains("stopped at 15"), "{:?}", info.warnings);
}

#[test]
fn counters_merge_up_to_15() {
    let (empty, _) = counting();
    let [mut one, mut other] = [empty.clone(), empty];
    (0..10).for_each(|_| _ = one.insert(b"both"));
    (0..3).for_each(|_| _ = other.insert(b"both"));
    other.insert(b"right");
    assert!(one.merge(&other).unwrap());
    assert!(one.contains(b"right") && (13..=14).contains(&one.count(b"both")));
    assert!(one.merge(&other).unwrap() && one.count(b"both") == 15);
    assert!(!one.merge(&CountingFilter::new(50, 3, HashType::Jenkins).unwrap()).unwrap());
    let plain = Contents::new(hadoop::create(50, 3, HashType::Murmur).unwrap());
    assert_fails(Contents::new(one).merge(&plain), "counters of 4 bits");
}

#[test]
fn broken_files_are_refused_by_field_and_place() {
    let good = hex(&json("hadoop/hadoop.json")["hadoop_bloom_filter"][0]["writable_hex"]);
    let changes = [
        (3, 0, "version at byte 0 is -256, expected -1"),
        (7, 0, "number of probes at byte 4 is 0"),
        (6, 1, "number of probes at byte 4 is 260, expected 1 to 255"),
        (8, 2, "hash type at byte 8 is 2, expected 0 (Jenkins) or 1 (Murmur)"),
        (9, 0x80, "vector size at byte 9 is -2147483548"),
        (9, 0x7f, "bits at byte 13"),
        (12, 90, "end at byte 25"),
    ];
    assert_refused(&good, hadoop::decode, &changes);
    let (filter, _) = counting();
    let mut bytes = encode("hadoop-counting", &Contents::new(filter)).unwrap();
    let last_word = bytes.len() - 8;
    bytes[last_word] = 1;
    assert_fails(CountingFilter::decode(&bytes), "counters at byte 37 is not zero");
}

#[test]
fn filters_that_hadoop_cannot_create_are_refused() {
    for (bits, probes) in [(0, 1), (1 << 31, 1), (1, 0), (1, 256)] {
        assert_fails(hadoop::create(bits, probes, HashType::Jenkins), "1 to");
        assert!(CountingFilter::new(bits, probes, HashType::Jenkins).is_err());
    }
}

#[test]
fn a_dynamic_filter_is_rows_of_filters_as_hadoop_writes_them() {
    for case in list(&json("hadoop/hadoop.json")["hadoop_bloom_filter"]) {
        let (bits, probes) = (number(&case["vector_size"]), number(&case["nb_hash"]));
        let hash = hash_type(&case["hash_type"]);
        let mut filter = DynamicFilter::new(bits as u32, probes as u32, hash, 9).unwrap();
        let insert = |filter: &mut DynamicFilter| {
            (0..8).for_each(|i| _ = filter.insert(format!("row{i}").as_bytes()).unwrap());
            filter.insert(&[0x80, 0xff, 7]).unwrap();
        };
        insert(&mut filter);
        insert(&mut filter);
        let bytes = dynamic_of_rows(&hex(&case["writable_hex"]), 2);
        let contents = Contents::new(filter.clone());
        assert_eq!(encode("hadoop-dynamic", &contents).unwrap(), bytes, "{case}");
        assert_eq!(DynamicFilter::decode(&bytes).unwrap(), filter);
        let found = |i| filter.contains(format!("row{i}").as_bytes()).into();
        assert_answers(&case["probes_0_39"], found);
    }
}

#[test]
fn a_dynamic_filter_of_other_rows_is_refused() {
    let row = hex(&json("hadoop/hadoop.json")["hadoop_bloom_filter"][0]["writable_hex"]);
    let good = dynamic_of_rows(&row, 2);
    let changes = [
        (16, 0, "records of a row at byte 13 is 0"),
        (17, 128, "records of the last row at byte 17 is -"),
        (24, 0, "number of rows at byte 21 is 0"),
        (24, 3, "version at byte"),
        (24, 1, "bytes follow the end"),
        (32, 9, "header of a row at byte 25 is not that of the whole filter"),
    ];
    assert_refused(&good, DynamicFilter::decode, &changes);
    let mut hostile = DynamicFilter::new(1 << 20, 3, HashType::Murmur, 1).unwrap();
    hostile.insert(b"first").unwrap();
    assert_fails(hostile.insert(b"second"), "more than any program plans");
    let [mut one, other] =
        [(); 2].map(|()| DynamicFilter::new(64, 3, HashType::Murmur, 9).unwrap());
    assert!(one.merge(&other).unwrap());
    assert!(!one.merge(&DynamicFilter::new(65, 3, HashType::Murmur, 9).unwrap()).unwrap());
}
