//! `MyBloomFilter` gives the answers and the errors of the Java class.

use crate::golden_data::{json, list, number, text, units};
use crate::support::{answers, assert_fails, insert};
use serde_json::Value as Json;
use tamis_formats::my_bloom_filter::{MyBloomFilter, Throws, positions};
use tamis_formats::{Contents, Funnel, JavaType, hash_code_of_units};

fn golden() -> Json {
    json("seeds_java/my_bloom_filter.json")
}

fn hash_code(item: &Json) -> i32 {
    let value = &item["value"];
    if value.get("utf16").is_some() {
        return hash_code_of_units(units(value).into_iter());
    }
    let written = match value {
        Json::Null => return 0,
        Json::String(text) => text.clone(),
        Json::Object(long) => text(&long["repeat"]).repeat(number(&long["count"]) as usize),
        other => other.to_string(),
    };
    let java = match text(&item["type"]) {
        "string" => JavaType::String,
        "integer" => JavaType::Integer,
        "long" => JavaType::Long,
        "double" => JavaType::Double,
        "boolean" => JavaType::Boolean,
        "character" => JavaType::Character,
        other => panic!("{other}"),
    };
    let mut scratch = Vec::new();
    let key = Funnel::HashCode(java).key(written.as_bytes(), &mut scratch).unwrap();
    i32::from_le_bytes(key.try_into().unwrap())
}

#[test]
fn every_recorded_item_has_its_positions() {
    let golden = golden();
    assert_eq!(list(&golden["positions"]).len(), 58);
    for item in list(&golden["positions"]) {
        let code = hash_code(item);
        if item["type"] != "character" {
            assert_eq!(i128::from(code), number(&item["hash_code"]), "{item}");
        }
        let expected = list(&item["positions"]).iter().map(|it| u32::try_from(number(it)).ok());
        assert!(positions(code).eq(expected), "{item}");
    }
}

#[test]
fn it_throws_where_the_class_does_and_keeps_the_bits_set_before() {
    for case in list(&golden()["index_out_of_bounds"]) {
        let code = number(&case["integer"]) as i32;
        let mut filter = MyBloomFilter::default();
        assert_eq!(filter.contains(code), Ok(false), "{case}");
        let added = filter.add(code);
        assert_eq!(added.is_ok(), case["add"] == "ok", "{case}");
        assert_eq!(i128::from(filter.count_ones()), number(&case["cardinality_after_add"]));
        // A failed insert sets the first bits of the item, so the lookup reaches the bit number at
        // which Java throws.
        assert_eq!(filter.contains(code), added.map(|_| true).map_err(|_| Throws), "{case}");
    }
    let mut all = Contents::new(MyBloomFilter::default());
    let keys = [5_i32, -2147450880, 6].map(i32::to_le_bytes);
    assert_fails(insert(&mut all, &keys), "bitIndex < 0");
    assert_eq!(answers(&all, &keys), [true, true, false], "it may be in");
}

#[test]
fn keys_that_are_no_hash_codes_are_refused_and_absent() {
    let mut filter = Contents::new(MyBloomFilter::default());
    let keys = [&[5, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 0], b"text!"];
    assert_fails(insert(&mut filter, &keys), "hash codes");
    assert_eq!(answers(&filter, &keys), [true, false, false]);
}

#[test]
fn filters_of_different_lengths_merge() {
    let filter = |codes: &[i32]| {
        let mut filter = MyBloomFilter::default();
        codes.iter().for_each(|&code| _ = filter.add(code).unwrap());
        Contents::new(filter)
    };
    for (one, other) in [(&[5, 6][..], &[1_000_000][..]), (&[1_000_000], &[5, 6]), (&[], &[7])] {
        let mut merged = filter(one);
        merged.merge(&filter(other)).unwrap();
        assert_eq!(merged, filter(&[one, other].concat()));
    }
}

#[test]
fn null_zero_and_the_empty_text_are_the_same_item() {
    let golden = &golden()["after_adding_only_null"];
    let mut filter = MyBloomFilter::default();
    filter.add(0).unwrap();
    for (name, java, value) in [
        ("contains_integer_0", JavaType::Integer, "0"),
        ("contains_empty_string", JavaType::String, ""),
        ("contains_false", JavaType::Boolean, "false"),
        ("contains_double_0", JavaType::Double, "0.0"),
        ("contains_integer_1", JavaType::Integer, "1"),
        ("contains_integer_2", JavaType::Integer, "2"),
    ] {
        let found = filter.contains(java.hash_code(value).unwrap()).unwrap();
        assert_eq!(found, golden[name].as_bool().unwrap(), "{name}");
    }
}

#[test]
fn recorded_runs_are_equal_bit_for_bit() {
    for run in list(&golden()["simulations"]) {
        let codes = |range: &Json| {
            let (java, prefix) = match text(&run["type"]) {
                "string" => (JavaType::String, text(&run["prefix"]).to_owned()),
                _ => (JavaType::Integer, String::new()),
            };
            (number(&range[0])..number(&range[1]))
                .map(move |i| java.hash_code(&format!("{prefix}{i}")).unwrap())
        };
        let mut filter = MyBloomFilter::default();
        let items = codes(&run["inserted_range"]).count() as f64;
        codes(&run["inserted_range"]).for_each(|code| _ = filter.add(code).unwrap());
        assert_eq!(i128::from(filter.count_ones()), number(&run["cardinality"]), "{run}");
        assert_eq!(i128::from(filter.len_bits()) - 1, number(&run["highest_bit"]), "{run}");
        let found = codes(&run["probed_range"]).filter(|&code| filter.contains(code) == Ok(true));
        assert_eq!(found.count() as i128, number(&run["false_positives"]), "{run}");
        let estimate = filter.estimate_hash_codes();
        assert!((items..items * 6.0).contains(&estimate), "{run}: {estimate}");
    }
}

#[test]
fn the_rate_is_that_of_random_hash_codes() {
    // In the golden data, a filter of 100,000 random ints gave 32 false positives in a million
    // lookups. That is a rate of 137,000 in 2³² ints.
    let mut filter = MyBloomFilter::default();
    let mut code = 1_u32;
    for _ in 0..100_000 {
        code = code.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        // Java throws for one of these items.
        _ = filter.add((code ^ code >> 15).cast_signed());
    }
    let info = Contents::new(filter).info();
    assert!((1e-5..1e-4).contains(&info.rate_now), "{}", info.rate_now);
    assert!(info.warnings.iter().any(|warning| warning.contains("throws")));
}

#[test]
fn only_as_many_bytes_as_the_class_makes_are_read() {
    let zeros = MyBloomFilter::from_bytes(&[0; 100]).unwrap();
    assert_eq!(zeros, MyBloomFilter::default(), "an empty BitSet has no bytes");
    let filter = MyBloomFilter::from_bytes(&[0, 1]).unwrap();
    assert_eq!((filter.count_ones(), filter.len_bits()), (1, 9));
}

/// Estimates the number of items of a filter with these hash codes.
fn estimate(hash_codes: impl Iterator<Item = i32>) -> Option<f64> {
    let mut filter = MyBloomFilter::default();
    for hash_code in hash_codes {
        filter.add(hash_code).unwrap();
    }
    filter.estimate_items()
}

#[test]
fn the_number_of_items_is_estimated_from_the_bits() {
    let words = |n: u32| (0..n).map(|i| of_text(&format!("{:08x}", i.wrapping_mul(0x9e37_79b9))));
    assert_eq!(estimate(std::iter::empty()), Some(0.0));
    assert_eq!(estimate(words(1)), Some(1.0));
    let about = estimate(words(5000)).unwrap();
    assert!((about / 5000.0 - 1.0).abs() < 0.1, "{about}");
}

fn of_text(text: &str) -> i32 {
    JavaType::String.hash_code(text).unwrap()
}

#[test]
fn a_range_of_numbers_has_no_estimate() {
    for (first, n) in [(0, 501), (0, 5000), (1_000_000, 501), (12_345, 2000), (0, 100_000)] {
        let about = estimate(first..first + n);
        let is_right = |about: f64| (about / f64::from(n) - 1.0).abs() < 0.1;
        assert!(about.is_none_or(is_right), "{n} from {first}: {about:?}");
    }
    assert_eq!(estimate(0..501), None);
    let urls = (0..501).map(|i| of_text(&format!("https://example.com/page/{i}")));
    assert_eq!(estimate(urls), None);
}
