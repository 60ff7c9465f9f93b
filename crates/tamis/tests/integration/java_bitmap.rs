//! `DenseSet` and `RepeatFinder` give the recorded results of two Java programs: a `byte[]` bitmap
//! and a duplicate finder.

use serde_json::Value;
use tamis::{DenseSet, Order, RepeatFinder};

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/seeds_java/bitmap.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn a_dense_set_has_the_bytes_of_the_java_array_after_every_step() {
    let golden = &golden()["bitmap_000"];
    let len_bits = golden["byte_length"].as_u64().unwrap() * 8;
    let mut set = DenseSet::new(0..=len_bits - 1).unwrap();
    for step in golden["trace"].as_array().unwrap() {
        let (op, num) = (step["op"].as_str().unwrap(), step["num"].as_i64().unwrap());
        // Values for which Java throws an exception are outside the range of the set.
        let value = u64::try_from(num).unwrap_or(u64::MAX);
        let fails = step.get("error").is_some();
        match op {
            "add" => assert_eq!(set.insert(value).is_err(), fails, "add {num}"),
            "clear" => _ = set.remove(value),
            "contain" => {
                let expected = step.get("result").is_some_and(|result| result == true);
                assert_eq!(set.contains(value), expected, "contain {num}");
            }
            other => panic!("unknown operation {other}"),
        }
        assert_eq!(set.range().contains(&value), !fails, "{num}");
        let expected = bytes(step["bytes_after"].as_str().unwrap());
        assert_eq!(set.to_bytes(Order::LsbFirst), expected, "after {op} {num}");
        assert_eq!(DenseSet::from_bytes(0, &expected, Order::LsbFirst).unwrap(), set);
    }
}

#[test]
fn repeats_are_those_of_the_java_duplicate_finder() {
    for case in golden()["duplicates_000"].as_array().unwrap() {
        let input: Vec<i64> =
            case["input"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
        // Java rejects a negative value. In Rust, a `u32` cannot be negative.
        let items: Result<Vec<u32>, _> = input.iter().map(|&n| u32::try_from(n)).collect();
        assert_eq!(items.is_err(), case.get("error").is_some(), "{input:?}");
        let Ok(items) = items else { continue };
        let mut finder = RepeatFinder::new().unwrap();
        finder.feed(&items);
        let expected = case["duplicates_sorted"].as_array().unwrap();
        assert!(
            finder.finish().repeated.iter().eq(expected.iter().map(|n| n.as_u64().unwrap())),
            "{input:?}"
        );
    }
}
