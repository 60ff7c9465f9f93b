//! Golomb-coded sets equal those of Bitcoin Core and rust-bitcoin, byte for byte.

use crate::golden_data::{hex, hexes, json, list, number, sip_key, text, to_hex};
use crate::support::{self, answers, assert_fails, encode, insert};
use serde_json::Value as Json;
use tamis::Answers;
use tamis_formats::{
    ChangeError, Contents, DecodeErrorKind, GolombError, GolombParams, GolombSet, Parameter,
};

fn golden() -> Json {
    json("bitcoin/bip158.json")
}

#[test]
fn siphash_is_the_one_of_two_and_four_rounds() {
    for case in list(&golden()["siphash_2_4"]) {
        // A set of one item stores the high 64 bits of the product hash × M. Here M is 2³² − 1. So
        // the stored value is almost the first 32 bits of the hash.
        let params = GolombParams::new(32, u32::MAX).unwrap();
        let set = GolombSet::new(sip_key(case), params, &[hex(&case["data"])]).unwrap();
        let hash = u64::from_str_radix(text(&case["hash"]), 16).unwrap();
        let value = ((u128::from(hash) * u128::from(u32::MAX)) >> 64) as u64;
        assert_eq!(set.values().collect::<Vec<_>>(), [value], "{case}");
    }
}

#[test]
fn sets_are_those_of_rust_bitcoin() {
    let golden = golden();
    assert_eq!(list(&golden["gcs"]).len(), 12);
    for case in list(&golden["gcs"]) {
        let what = text(&case["what"]);
        let params =
            GolombParams::new(number(&case["P"]) as u8, number(&case["M"]) as u32).unwrap();
        let set = GolombSet::new(sip_key(case), params, &hexes(&case["items"])).unwrap();
        assert_eq!(to_hex(set.bytes()), text(&case["filter_hex"]), "{what}");
        assert_eq!(i128::from(set.len()), number(&case["N"]), "{what}");
        if let Some(values) = case["sorted_values"].as_array() {
            assert!(set.values().eq(values.iter().map(|value| number(value) as u64)), "{what}");
        }
        assert_eq!(GolombSet::decode(set.bytes(), sip_key(case), params).unwrap(), set, "{what}");

        let probes = list(&case["probes"]);
        let items: Vec<_> = probes.iter().map(|probe| hex(&probe[0])).collect();
        let expected: Vec<_> = probes.iter().map(|probe| probe[1].as_bool().unwrap()).collect();
        let mut answers = Answers::new();
        set.contains_each(&items, &mut answers);
        assert!(answers.iter().eq(expected.iter().copied()), "{what}");
        assert!(items.iter().map(|item| set.contains(item)).eq(expected), "{what}");
        for query in list(&case["set_queries_rust_bitcoin"]) {
            let items = hexes(&query["query"]);
            let any = format!("Ok({})", set.contains_any(&items));
            assert_eq!(any, text(&query["any"]), "{what}");
            set.contains_each(&items, &mut answers);
            let all = format!("Ok({})", answers.count_ones() == items.len());
            assert_eq!(all, text(&query["all"]), "{what}");
        }
    }
}

#[test]
fn bytes_that_bitcoin_core_refuses_are_refused() {
    let golden = golden();
    let malformed = &golden["malformed"];
    let decode = |bytes: &[u8]| GolombSet::decode(bytes, sip_key(malformed), GolombParams::BASIC);
    assert!(decode(&hex(&malformed["valid_hex"])).is_ok());
    let expected = [
        "truncated",
        "truncated",
        "follow the end at byte 9",
        "truncated",
        "follow the end at byte 1",
        "shortest form",
        "out of range",
    ];
    let cases = list(&malformed["cases"]);
    assert_eq!(cases.len(), expected.len());
    for (case, expected) in cases.iter().zip(expected) {
        let error = decode(&hex(&case["hex"])).unwrap_err().to_string();
        assert!(error.contains(expected), "{}: {error}", case["case"]);
    }
    assert_fails(decode(&[0xff, 0, 0, 0, 0, 1, 0, 0, 0]), "below 2³²");
    // A huge number of items allocates no memory, because the input is too short for it.
    assert!(decode(&[0xfe, 255, 255, 255, 255, 1, 2, 3]).is_err());
    // The padding of the last byte is not checked, as in Bitcoin Core.
    let set = GolombSet::new([1, 2], GolombParams::BASIC, &["a"]).unwrap();
    let mut padded = set.bytes().to_vec();
    *padded.last_mut().unwrap() |= 1;
    assert!(decode(&padded).is_ok());
}

#[test]
fn params_have_limits() {
    assert_eq!(GolombParams::new(33, 1), Err(GolombError::Params));
    assert_eq!(GolombParams::new(0, 0), Err(GolombError::Params));
    let basic = GolombParams::new(19, 784_931).unwrap();
    assert_eq!(basic, GolombParams::BASIC);
    assert_eq!((basic.p(), basic.m()), (19, 784_931));
}

#[test]
fn a_set_cannot_be_changed_and_says_what_to_do() {
    let set = GolombSet::new([1, 2], GolombParams::BASIC, &["a", "b"]).unwrap();
    let mut contents = Contents::new(set);
    let before = contents.clone();
    for changed in [insert(&mut contents, &["c"]).map(drop), contents.merge(&before)] {
        let Err(ChangeError::Refused(why)) = changed else { panic!("{changed:?}") };
        assert!(why.contains("from all items"), "{why}");
    }
    assert_eq!(contents, before);
    let info = contents.info();
    assert_eq!((info.items, info.rate_now), (2.0, 1.0 / 784_931.0));
    assert_eq!(info.details[1].1.len(), 64);
    assert_eq!(answers(&contents, &["b", "c"]), [true, false]);
}

#[test]
fn a_missing_block_is_requested_and_other_params_are_refused() {
    let error = support::decode("bip158", &[0]).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Missing(Parameter::BlockHash));
    assert!(error.to_string().contains("block's hash"), "{error}");
    let set = GolombSet::new([1, 2], GolombParams::new(10, 1024).unwrap(), &["a"]).unwrap();
    assert_fails(encode("bip158", &Contents::new(set)), "build one from the items");
}

#[test]
fn the_false_positive_rate_is_one_in_m() {
    let params = GolombParams::new(5, 40).unwrap();
    let items: Vec<_> = (0..10_000_u32).map(u32::to_le_bytes).collect();
    let set = GolombSet::new([3, 4], params, &items).unwrap();
    let absent: Vec<_> = (0..200_000_u32).map(|i| (i + 10_000).to_le_bytes()).collect();
    let mut answers = Answers::new();
    set.contains_each(&absent, &mut answers);
    // The set has 5,000 items. Values of different items may coincide, so the count is slightly
    // lower. The bound is four standard deviations.
    let expected = 200_000.0 * (1.0 - (-1.0_f64 / 40.0).exp());
    let found = answers.count_ones() as f64;
    assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} against {expected}");
}
