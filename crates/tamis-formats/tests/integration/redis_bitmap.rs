//! `BloomFilterHelper` of the Java articles: plans, probes and errors equal those of the Java
//! class.

use crate::golden_data::{hex, json, list, number, real, snapshot, text, units};
use crate::support::{
    answers, assert_fails, decode, decode_with, encode, encode_with, format, insert, planned,
};
use serde_json::Value as Json;
use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_formats::{Charset, CreateError, DecodeErrorKind, DecodeOptions, ForeignBloom};

/// The name of the format.
const NAME: &str = "redis-bitmap";

fn golden() -> Json {
    json("seeds_java/redis_helper.json")["bloom_filter_helper_000_003"].clone()
}

/// Returns the bytes of a golden item that the funnel hashes.
fn key(funnel: &str, item: &Json) -> Vec<u8> {
    let mut bytes = Vec::new();
    Charset::Utf8.encode_units(&units(item), &mut bytes);
    if funnel == "utf8_twice" {
        bytes.extend_from_within(..);
    }
    bytes
}

#[test]
fn plans_and_offsets_equal_those_of_java() {
    for case in list(&golden()["offsets"]) {
        let plan = RedisBitmapPlan::new(number(&case["n"]) as i32, real(&case["fpp"]));
        assert_eq!(i128::from(plan.bits), number(&case["bit_size"]), "{}", case["n"]);
        assert_eq!(i128::from(plan.probes), number(&case["num_hash_functions"]), "{}", case["n"]);
        for pair in list(&case["offsets"]) {
            let offsets: Vec<_> =
                plan.offsets(&key(text(&case["funnel"]), &pair[0])).unwrap().collect();
            let expected: Vec<_> = list(&pair[1]).iter().map(|it| number(it) as u32).collect();
            assert_eq!(offsets, expected, "{} {}", case["n"], pair[0]);
        }
    }
}

#[test]
fn no_filter_is_created_where_java_fails() {
    for case in list(&golden()["sizing_and_edge_cases"]) {
        let (n, fpp) = (number(&case["n"]), real(&case["fpp"]));
        let plan = RedisBitmapPlan::new(n as i32, fpp);
        assert_eq!(i128::from(plan.bits), number(&case["bit_size"]), "{case}");
        assert_eq!(i128::from(plan.probes), number(&case["num_hash_functions"]), "{case}");
        assert_eq!(plan.is_clipped(), plan.bits == i32::MAX, "{case}");
        match (plan.offsets(text(&case["item"]).as_bytes()), case.get("first_offsets")) {
            (None, None) => assert!(text(&case["error"]).contains("/ by zero"), "{case}"),
            (Some(offsets), Some(expected)) => {
                let expected = list(expected).iter().map(|it| number(it) as u32);
                assert!(offsets.take(expected.len()).eq(expected), "{case}");
            }
            _ => panic!("{case}"),
        }
        if plan.bits <= 0 && n >= 0 {
            let error = (format(NAME).create)(&planned(n as u64, fpp)).unwrap_err();
            let CreateError::Refused(why) = error else { panic!("{error}") };
            let expected = if plan.bits == 0 { "divides by them" } else { "negative" };
            assert!(why.contains(expected), "{why}");
        }
    }
    assert_fails((format(NAME).create)(&planned(1 << 31, 0.03)), "at most 2,147,483,647");
}

#[test]
fn the_filter_of_the_article_is_equal_bit_for_bit() {
    let article = &golden()["article_test_main"];
    let mut filter = (format(NAME).create)(&planned(1000, 0.1)).unwrap();
    let items: Vec<_> = (0..1000).map(|i| i.to_string()).collect();
    insert(&mut filter, &items[..100]).unwrap();
    let string = encode_with(NAME, &filter, &planned(1000, 0.1)).unwrap();
    assert!(string == hex(&article["redis_string_hex"]));
    let absent = answers(&filter, &items).iter().filter(|&&found| !found).count();
    assert_eq!(absent as i128, number(&article["not_contained"]));
    let options = DecodeOptions { key: Some(b"bf".to_vec()), ..planned(1000, 0.1) };
    let rdb = snapshot(&[(0, b"other", b"x"), (0, b"bf", &string)]);
    assert_eq!(decode_with(NAME, &rdb, &options).unwrap(), filter);
    let error =
        decode_with(NAME, &rdb, &DecodeOptions { key: None, ..options.clone() }).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::SeveralKeys { keys: "other, bf".into() });
    let error = decode(NAME, &rdb).unwrap_err();
    assert!(matches!(error.kind, DecodeErrorKind::SeveralKeys { .. }), "before the plan: {error}");
    let names: Vec<_> = (1..=13).map(|i| i.to_string()).collect();
    let many: Vec<_> = names.iter().map(|name| (0, name.as_bytes(), &string[..])).collect();
    assert_fails(decode(NAME, &snapshot(&many)), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more");
    let alone = snapshot(&[(0, b"bf", &string)]);
    assert_eq!(decode_with(NAME, &alone, &DecodeOptions { key: None, ..options }).unwrap(), filter);
}

#[test]
fn the_bitmap_of_a_server_has_the_bits_that_were_set() {
    let options = DecodeOptions { key: Some(b"bitmap".to_vec()), ..planned(1000, 0.5) };
    for file in ["lfu.rdb", "lru-uncompressed.rdb"] {
        let bytes = std::fs::read(crate::golden_data::path("redis_rdb").join(file)).unwrap();
        let contents = decode_with(NAME, &bytes, &options).unwrap();
        let filter: &ForeignBloom = contents.downcast_ref().unwrap();
        // SETBIT bitmap 7 1, SETBIT bitmap 1000 1.
        assert_eq!((filter.words()[0], filter.words()[15]), (1 << 7, 1 << (1000 - 960)));
        assert_eq!(filter.count_ones(), 2);
    }
}

#[test]
fn strings_that_do_not_fit_the_plan_are_refused() {
    let string = hex(&golden()["article_test_main"]["redis_string_hex"]);
    let decode = |bytes: &[u8], items| decode_with(NAME, bytes, &planned(items, 0.1));
    let error = decode(&[&string[..], b"\n"].concat(), 1000).unwrap_err().to_string();
    assert!(error.contains("line feed") && error.contains("redis-cli -D"), "{error}");
    for items in [998, 10] {
        assert_fails(decode(&string, items), "that it was planned for");
    }
    // Bits after the last bit of the filter are set. A filter for 10 items at 0.1 has 47 bits.
    assert_fails(decode(&[0, 0, 0, 0, 0, 1], 10), "behind them are set");
    assert!(decode(&[0, 0, 0, 0, 0, 2], 10).is_ok());
    assert!(decode(b"", 10).is_ok_and(|empty| empty.info().fill == 0.0), "a key that is not there");
}

#[test]
fn guava_takes_it_if_its_bits_are_whole_words() {
    // 4,792 bits are not a multiple of 64. A filter for 13 items at 0.0947 needs 64 bits.
    let filter = (format(NAME).create)(&planned(1000, 0.1)).unwrap();
    assert!(encode("guava", &filter).is_err());
    let has_64_bits = |&p: &f64| RedisBitmapPlan::new(13, p).bits == 64;
    let (n, p) = (13, (1..1000).map(|i| f64::from(i) / 1000.0).find(has_64_bits).unwrap());
    let mut filter = (format(NAME).create)(&planned(n, p)).unwrap();
    insert(&mut filter, &["one", "two"]).unwrap();
    let bytes = encode("guava", &filter).unwrap();
    let back = decode("guava", &bytes).unwrap();
    assert_eq!(back, filter);
    let string = encode_with(NAME, &back, &planned(n, p)).unwrap();
    assert_eq!(decode_with(NAME, &string, &planned(n, p)).unwrap(), filter);
    assert_fails(encode_with(NAME, &back, &planned(1000, 0.1)), "plans 4792 bits");
}

#[test]
fn a_clamped_plan_has_a_warning() {
    let filter = (format(NAME).create)(&planned(300_000_000, 0.03)).unwrap();
    assert!(filter.info().warnings[0].contains("2,147,483,647"));
}
