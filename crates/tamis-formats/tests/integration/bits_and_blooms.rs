//! Filters of Go's bits-and-blooms give the same answers in Tamis as in Go, and re-encode to equal
//! bytes.

use crate::golden_data::{hex, json, list, number, text};
use crate::support::{assert_plans, assert_refused, encode_filter};
use tamis_formats::bits_and_blooms::{create, decode, json as as_json, plan};

fn item(i: usize) -> Vec<u8> {
    let end = &"项目0123456789abcdef".as_bytes()[..3 + i % 16];
    [format!("item:{i}:").as_bytes(), end].concat()
}

#[test]
fn filters_are_those_of_bits_and_blooms() {
    for case in list(&json("bits-and-blooms/bits-and-blooms.json")["filters"]) {
        let (bits, probes) = (number(&case["bits"]) as u64, number(&case["probes"]) as u64);
        let mut filter = create(bits, probes).unwrap();
        (0..number(&case["added"]) as usize).for_each(|i| _ = filter.insert(&item(i)));
        let bytes = encode_filter("bits-and-blooms", &filter);
        assert_eq!(bytes, hex(&case["write_to_hex"]), "{case}");
        assert_eq!(decode(&bytes).unwrap(), filter);
        for (i, expected) in text(&case["tests_0_99"]).bytes().enumerate() {
            assert_eq!(filter.contains(&item(i)), expected == b'1', "{case}: item {i}");
        }
    }
}

#[test]
fn plans_are_those_of_estimate_parameters() {
    assert_plans(&json("bits-and-blooms/bits-and-blooms.json")["plans"], plan);
}

#[test]
fn broken_files_are_refused_by_field_and_place() {
    let good = hex(&json("bits-and-blooms/bits-and-blooms.json")["filters"][1]["write_to_hex"]);
    let changes = [
        (7, 0, "the m at byte 0 is 0"),
        (7, 1, "the length of the bit set at byte 16 is 192, expected m"),
        (15, 0, "the k at byte 8 is 0"),
        (8, 1, "the k at byte 8 is"),
        (0, 128, "the m at byte 0 is"),
    ];
    assert_refused(&good, decode, &changes);
    assert!(
        decode(&good[..good.len() - 1]).is_err() && decode(&[&good[..], &[0]].concat()).is_err()
    );
    assert!(create(100, 1 << 20).is_err());
}

#[test]
fn json_is_that_of_marshal_json() {
    for case in list(&json("bits-and-blooms/bits-and-blooms.json")["filters"]) {
        let filter = decode(&hex(&case["write_to_hex"])).unwrap();
        let marshalled = text(&case["marshal_json"]);
        assert_eq!(as_json::decode(marshalled.as_bytes()).unwrap(), filter, "{case}");
        assert_eq!(encode_filter("bits-and-blooms-json", &filter), marshalled.as_bytes());
    }
}

#[test]
fn broken_json_is_refused_by_its_member() {
    let good = r#"{"m":64,"k":3,"b":"AAAAAAAAAEB-XU_n-v__3w=="}"#;
    let spaced = format!(" {} \n", good.replace(',', " ,\n\"other\": [1, {}],"));
    assert_eq!(as_json::decode(spaced.as_bytes()), as_json::decode(good.as_bytes()));
    for (from, to, expected) in [
        ("{", "[", "is not the JSON of a filter"),
        ("\"m\":64,", "", "missing field `m`"),
        (":64", ":0", "the m at byte 0 is 0"),
        (":64", ":65", "the length of the bit set in b at byte 0 is 64, expected m"),
        (":64", ":-1", "is not the JSON of a filter"),
        (":3", ":0", "the k at byte 0 is 0"),
        (":3", ":99999", "the k at byte 0 is 99999"),
        ("==", "", "base64 for URLs, with padding"),
        ("-XU_", "+XU/", "base64 for URLs, with padding"),
        ("-XU_n-v__3w==", "", "base64"),
        ("3w==", "3wAA", "bytes follow the end at byte 16"),
        ("}", "}x", "is not the JSON of a filter"),
    ] {
        let error = as_json::decode(good.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{from} {to}: {error}");
    }
}
