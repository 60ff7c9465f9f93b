//! Filters of npm's `bloom-filters` give the same answers in Tamis, and re-encode to equal text.

use crate::golden_data::{json, list, number, text};
use crate::support::{assert_plans, digits, encode_filter};
use tamis::Answers;
use tamis_formats::bloom_filters::{DEFAULT_SEED, create, decode, plan};

const FILE: &str = "bloom-filters/bloom-filters.json";

#[test]
fn filters_are_those_of_bloom_filters() {
    let golden = json(FILE);
    let items: Vec<&str> = list(&golden["items"]).iter().map(text).collect();
    for case in list(&golden["filters"]) {
        let (bits, probes) = (number(&case["bits"]) as u64, number(&case["probes"]) as u64);
        let mut filter = create(bits, probes, number(&case["seed"]) as i64).unwrap();
        let mut answers = Answers::new();
        filter.insert_each(&items[..number(&case["added"]) as usize], &mut answers);
        assert_eq!(encode_filter("bloom-filters", &filter), text(&case["json"]).as_bytes());
        let read = decode(text(&case["json"]).as_bytes()).unwrap();
        assert_eq!(read, filter, "{bits}");
        read.contains_each(&items, &mut answers);
        assert_eq!(digits(answers.iter()), text(&case["has_0_399"]), "{bits}");
    }
}

#[test]
fn plans_are_those_of_bloom_filters() {
    assert_plans(&json(FILE)["plans"], plan);
}

#[test]
fn filters_merge_if_their_seeds_are_equal() {
    let mut one = create(1_000, 3, DEFAULT_SEED).unwrap();
    let mut other = one.clone();
    one.insert(b"one");
    other.insert(b"other");
    assert!(one.merge(&other) && one.contains(b"one") && one.contains(b"other"));
    assert!(!one.merge(&create(1_000, 3, 7).unwrap()));
}

#[test]
fn broken_json_is_refused_by_its_member() {
    let good = r#"{"type":"BloomFilter","_size":90,"_nbHashes":7,"_filter":{"size":96,"content":"QgAAgAAgAAACASAA"},"_seed":7}"#;
    let twice = good.replacen(',', ",\"_seed\":7,", 1);
    assert!(decode(twice.as_bytes()).is_err(), "a member twice");
    let spaced = format!(" {} \n", good.replacen(',', " ,\n\"_length\": [1, {}],", 1));
    assert_eq!(decode(spaced.as_bytes()), decode(good.as_bytes()));
    assert!(decode(good.as_bytes()).is_ok());
    for (from, to, expected) in [
        ("{", "[", "is not the JSON of a filter"),
        ("\"_size\":90,", "", "missing field `_size`"),
        ("BloomFilter", "CuckooFilter", "the type at byte 0 is not BloomFilter"),
        (":90", ":0", "the _size at byte 0 is not a whole number from 1"),
        (":90", ":-1", "the _size at byte 0"),
        (":90", ":90.5", "the _size at byte 0"),
        (":90", ":1e300", "the _size at byte 0"),
        (":90", ":1e999", "is not the JSON of a filter: number out of range"),
        (":90", ":4294967296", "the size of _filter at byte 0 is not _size, rounded up"),
        (":90", ":97", "the size of _filter"),
        (":90", ":88", "the size of _filter"),
        (":90", ":\"90\"", "is not the JSON of a filter"),
        (":7,", ":0,", "the _nbHashes at byte 0"),
        (":7,", ":2147483648,", "the _nbHashes at byte 0"),
        (":7,", ":1101,", "the _nbHashes at byte 0"),
        (":7}", ":0.5}", "the _seed at byte 0"),
        (":7}", ":1e300}", "the _seed at byte 0"),
        (":96", ":95", "the size of _filter"),
        (":96", ":null", "is not the JSON of a filter"),
        ("QgAA", "QgA", "the content of _filter at byte 0 is not base64"),
        ("QgAA", "Qg-_", "the content of _filter at byte 0 is not base64"),
        ("QgAA", "", "the content of _filter at byte 0 is not as long as its size"),
        ("SAA", "SD/", "the content of _filter at byte 0 is not zero"),
        (r#"{"size":96,"content":"QgAAgAAgAAACASAA"}"#, "[0,1,0]", "before 2.0.0"),
        (r#"{"size":96,"content":"QgAAgAAgAAACASAA"}"#, "7", "an object with size and content"),
        ("7}", "7}x", "is not the JSON of a filter"),
        ("7}", "7", "is not the JSON of a filter"),
    ] {
        let error = decode(good.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{from} {to}: {error}");
    }
    for (bits, probes, seed) in
        [(0, 1, 1), (1 << 33, 1, 1), (1, 0, 1), (1, 1_101, 1), (1, 1, i64::MIN)]
    {
        assert!(create(bits, probes, seed).is_err(), "{bits} {probes} {seed}");
    }
}
