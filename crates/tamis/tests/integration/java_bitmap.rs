//! `DenseSet` and `RepeatFinder` give the recorded results of two Java programs: a `byte[]` bitmap
//! and a duplicate finder.

use crate::golden_json::{hex, json, list, number, text};
use tamis::{DenseSet, Order, RepeatFinder};

#[test]
fn a_dense_set_has_the_bytes_of_the_java_array_after_every_step() {
    let golden = &json("seeds_java/bitmap.json")["bitmap_000"];
    let len_bits = golden["byte_length"].as_u64().unwrap() * 8;
    let mut set = DenseSet::new(0..=len_bits - 1).unwrap();
    for step in list(&golden["trace"]) {
        let (op, num) = (text(&step["op"]), number(&step["num"]));
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
        let expected = hex(&step["bytes_after"]);
        assert_eq!(set.to_bytes(Order::LsbFirst), expected, "after {op} {num}");
        assert_eq!(DenseSet::from_bytes(0, &expected, Order::LsbFirst).unwrap(), set);
    }
}

#[test]
fn repeats_are_those_of_the_java_duplicate_finder() {
    for case in list(&json("seeds_java/bitmap.json")["duplicates_000"]) {
        let input: Vec<i128> = list(&case["input"]).iter().map(number).collect();
        // Java rejects a negative value. In Rust, a `u32` cannot be negative.
        let items: Result<Vec<u32>, _> = input.iter().map(|&n| u32::try_from(n)).collect();
        assert_eq!(items.is_err(), case.get("error").is_some(), "{input:?}");
        let Ok(items) = items else { continue };
        let mut finder = RepeatFinder::new().unwrap();
        finder.feed(&items);
        let expected = list(&case["duplicates_sorted"]).iter().map(|n| number(n) as u64);
        assert!(finder.finish().repeated.iter().eq(expected), "{input:?}");
    }
}
