//! `RedisBitmaps` of the Java article: the filter grows after the same items and sets the same
//! bits.

use crate::golden_data::{hex, json, list, number, real, snapshot, text, to_hex};
use crate::support::{
    answers, assert_fails, decode, decode_with, digits, encode, encode_with, format, insert,
    planned,
};
use md5::{Digest as _, Md5};
use serde_json::Value as Json;
use sha2::Sha256;
use tamis_formats::{Contents, DecodeOptions, ForeignBloom, RedisBitmaps, Sniff};

/// The name of the format.
const NAME: &str = "redis-bitmaps";

fn golden() -> Vec<Json> {
    list(&json("seeds_java/redis_bitmaps.json")["redis_bitmaps_002"]).to_vec()
}

/// Returns the items of a case.
fn items(case: &Json) -> Vec<String> {
    let count = 0..number(&case["count"]) as u32;
    match text(&case["items"]) {
        "prefix + decimal i" => count.map(|i| format!("{}{i}", text(&case["prefix"]))).collect(),
        _ => count.map(|i| to_hex(&Md5::digest(i.to_le_bytes()))).collect(),
    }
}

/// Encodes a bitmap as the Redis string.
fn string(bitmap: &ForeignBloom, options: &DecodeOptions) -> Vec<u8> {
    encode_with(NAME, &Contents::new(bitmap.clone()), options).unwrap()
}

#[test]
fn it_grows_after_the_same_items_into_the_same_bits() {
    for case in golden() {
        let (n, fpp) = (number(&case["n"]) as u64, real(&case["fpp"]));
        let mut filter = RedisBitmaps::new(n, fpp).unwrap();
        let rule = filter.bitmaps()[0].rule().clone();
        assert_eq!(i128::from(rule.bits()), number(&case["bit_size"]));
        assert_eq!(i128::from(rule.probes()), number(&case["k"]));
        let (mut growth, mut put) = (Vec::new(), String::new());
        for (i, item) in items(&case).iter().enumerate() {
            let cursor = filter.cursor();
            put.push(if filter.insert(item.as_bytes()).unwrap() { '1' } else { '0' });
            if filter.cursor() > cursor {
                growth.push((i as i128, filter.bitmaps()[cursor].count_ones(), filter.cursor()));
            }
        }
        let expected: Vec<_> = list(&case["growth"])
            .iter()
            .map(|it| {
                let (ones, cursor) = (number(&it["bitcount"]) as u64, number(&it["new_cursor"]));
                (number(&it["after_put_index"]), ones, cursor as usize)
            })
            .collect();
        assert_eq!(growth, expected);
        if let Some(expected) = case.get("put_returned") {
            assert_eq!(put, text(expected));
        }
        assert_eq!(filter.cursor() as i128, number(&case["final_cursor"]));
        for (bitmap, key) in filter.bitmaps().iter().zip(list(&case["keys"])) {
            let string = string(bitmap, &planned(n, fpp));
            assert_eq!(string.len() as i128, number(&key["strlen"]), "{}", key["key"]);
            assert_eq!(i128::from(bitmap.count_ones()), number(&key["bitcount"]), "{}", key["key"]);
            assert_eq!(to_hex(&Sha256::digest(&string)), text(&key["sha256"]), "{}", key["key"]);
            if let Some(expected) = key.get("hex") {
                assert!(string == hex(expected), "{}", key["key"]);
            }
        }
        let union = filter.union();
        for probe in list(&case["probes"]) {
            let item = text(&probe["item"]);
            assert_eq!(filter.contains(item.as_bytes()), probe["redis_bitmaps"] == true, "{item}");
            assert!(union.contains(item.as_bytes()) || !filter.contains(item.as_bytes()), "{item}");
        }
        let absent: Vec<_> = (0..20_000).map(|i| format!("absent:{i}")).collect();
        let contents = Contents::new(filter.clone());
        let found = answers(&contents, &absent).iter().filter(|&&found| found).count();
        let expected = &case["false_positives_of_20000_absent"]["redis_bitmaps"];
        assert_eq!(found as i128, number(expected));
        // The rate that is estimated from the bits is close to the measured rate.
        let (rate, measured) = (contents.info().rate_now, found as f64 / 20_000.0);
        assert!((rate - measured).abs() < 0.2 * measured + 0.001, "{rate} {measured}");
        let file = encode(NAME, &contents).unwrap();
        assert_eq!(decode_with(NAME, &file, &planned(n, fpp)).unwrap(), contents);
        assert_eq!(format(NAME).sniff(&file), Sniff::Maybe);
        filter.reset();
        assert_eq!(filter, RedisBitmaps::new(n, fpp).unwrap());
    }
}

#[test]
fn batches_are_inserted_one_after_the_other() {
    let case = &golden()[2];
    let mut each = Contents::new(RedisBitmaps::new(100, 0.03).unwrap());
    let put = insert(&mut each, &items(case)).unwrap();
    assert_eq!(digits(put), text(&case["put_returned"]));
    assert!(answers(&each, &items(case)).iter().all(|&found| found));
}

#[test]
fn merged_filters_hold_the_items_of_both_and_grow_on() {
    let filled = |name: &str, count: u32| {
        let mut filter = RedisBitmaps::new(100, 0.03).unwrap();
        let items: Vec<_> = (0..count).map(|i| format!("{name}{i}")).collect();
        for item in &items {
            filter.insert(item.as_bytes()).unwrap();
        }
        (filter, items)
    };
    for (one, other) in [(50, 50), (0, 300), (300, 20), (350, 500)] {
        let ((one, in_one), (other, in_other)) = (filled("one ", one), filled("other ", other));
        let mut both = Contents::new(one.clone());
        both.merge(&Contents::new(other.clone())).unwrap();
        let items = [in_one, in_other].concat();
        assert!(answers(&both, &items).iter().all(|&found| found));
        let mut both = both.downcast_ref::<RedisBitmaps>().unwrap().clone();
        // No bitmap is fuller than the Java class allows, because the class checks the fill after
        // each item.
        for bitmap in both.bitmaps() {
            let (ones, rule) = (bitmap.fill() * bitmap.rule().bits() as f64, bitmap.rule());
            assert!(ones <= (rule.bits() / 2 + u64::from(rule.probes())) as f64 + 0.5);
        }
        assert!(both.cursor() <= one.cursor() + other.cursor() + 1);
        // The decoded copy stays equal to the original after further inserts.
        let options = planned(100, 0.03);
        let bytes = encode_with(NAME, &Contents::new(both.clone()), &options).unwrap();
        let mut back = decode_with(NAME, &bytes, &options).unwrap();
        let more: Vec<_> = (0..200).map(|i| format!("more {i}")).collect();
        insert(&mut back, &more).unwrap();
        for item in &more {
            both.insert(item.as_bytes()).unwrap();
        }
        assert_eq!(back, Contents::new(both));
    }
    let mut one = Contents::new(RedisBitmaps::new(100, 0.03).unwrap());
    let other = Contents::new(RedisBitmaps::new(200, 0.03).unwrap());
    assert_fails(one.merge(&other), "layouts differ");
}

#[test]
fn one_bitmap_is_a_filter_of_guava_and_back() {
    let case = &golden()[2];
    let options = planned(100, 0.03);
    let string = hex(&list(&case["keys"])[0]["hex"]);
    let bitmap = decode_with(NAME, &string, &options).unwrap();
    let file = encode("guava", &bitmap).unwrap();
    assert_eq!(file.len(), 6 + string.len());
    // The expected order of the bits: the bits of each byte are reversed, and the words are counted
    // from the end.
    let reversed: Vec<u8> = string.iter().map(|byte| byte.reverse_bits()).collect();
    let words: Vec<u8> = reversed
        .chunks(8)
        .flat_map(|word| word.iter().rev().copied().collect::<Vec<_>>())
        .collect();
    assert!(file[6..] == words);
    let back = decode("guava", &file).unwrap();
    assert!(encode_with(NAME, &back, &options).unwrap() == string);
    let snapshot = snapshot(&[(0, b"bloomfilter-0", &string)]);
    let rdb = decode_with(NAME, &snapshot, &options).unwrap();
    assert!(encode("guava", &rdb).unwrap() == file, "a snapshot without a cursor");
}

#[test]
fn several_bitmaps_become_one_filter_only_if_that_is_asked_for() {
    let case = &golden()[2];
    let mut filter = Contents::new(RedisBitmaps::new(100, 0.03).unwrap());
    insert(&mut filter, &items(case)).unwrap();
    let warnings = filter.info().warnings;
    assert!(warnings[0].contains("grown 3 times") && warnings[0].contains("union"), "{warnings:?}");
    assert_fails(encode("guava", &filter), "a union of their bits");
    let union = DecodeOptions { union: true, ..DecodeOptions::default() };
    let one = decode("guava", &encode_with("guava", &filter, &union).unwrap()).unwrap();
    assert!(answers(&one, &items(case)).iter().all(|&found| found));
    let (one, all) = (one.info().rate_now, filter.info().rate_now);
    assert!(one > 2.0 * all, "{one} {all}");
}

#[test]
fn missing_keys_and_other_plans_are_refused() {
    let string = hex(&list(&golden()[2]["keys"])[0]["hex"]);
    let refused = |bytes: &[u8], options: &DecodeOptions, expected: &str| {
        assert_fails(decode_with(NAME, bytes, options), expected);
    };
    let right = planned(100, 0.03);
    for (other, bytes) in [
        (planned(50, 0.03), &string[..]),
        (planned(200, 0.03), &string),
        (right.clone(), &string[1..]),
    ] {
        refused(bytes, &other, "that it was planned for");
        refused(&snapshot(&[(0, b"bloomfilter-0", bytes)]), &other, "plan");
    }
    refused(&[&string[..], b"\n"].concat(), &right, "line feed");
    let two = [
        (0, &b"bloomfilter-0"[..], &string[..]),
        (0, b"cursor", b"2"),
        (0, b"bloomfilter-2", &string),
    ];
    refused(&snapshot(&two), &right, "\"bloomfilter-1\" is missing");
    refused(&snapshot(&[two[0], (0, b"cursor", b"two")]), &right, "no decimal number");
    refused(&snapshot(&[two[0], (1, two[0].1, two[0].2)]), &right, "databases 0 and 1");
    // A reset does not delete this key.
    let left = snapshot(&[two[0], (0, b"bloomfilter-1", b"left")]);
    let contents = decode_with(NAME, &left, &right).unwrap();
    assert_eq!(contents.downcast_ref::<RedisBitmaps>().unwrap().cursor(), 0);
}
