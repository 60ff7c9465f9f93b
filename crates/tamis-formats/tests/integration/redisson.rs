//! Redisson's filters: sizes, probes, reading and writing follow its source code.

use crate::golden_data::{hex, json, list, number, real, text};
use crate::support::{
    assert_fails, decode, decode_with, encode_with, format, insert, keyed, planned,
};
use serde_json::Value as Json;
use tamis_formats::redisson::Redisson;
use tamis_formats::{
    CreateError, DecodeErrorKind, DecodeOptions, ForeignBloom, Parameter, Rdb, Sniff,
};

/// The name of the format.
const NAME: &str = "redisson";

fn golden() -> Json {
    json("redisson/filters.json")
}

fn options(case: &Json, key: Option<&str>) -> DecodeOptions {
    let key = key.map(|key| key.as_bytes().to_vec());
    let (items, rate) = (&case["expected_insertions"], &case["false_probability"]);
    DecodeOptions { key, ..planned(number(items) as u64, real(rate)) }
}

#[test]
fn the_hash_is_highwayhash_with_the_key_of_redisson() {
    let plan = Redisson::plan(55_000_000, 0.03).unwrap();
    for case in list(&golden()["highway"]) {
        let [a, b] = [0, 1].map(|i| u64::from_str_radix(text(&case["hash128"][i]), 16).unwrap());
        let offsets: Vec<_> = plan.offsets(&hex(&case["data"])).take(3).collect();
        let reduced = |sum: u64| (sum & i64::MAX as u64) % plan.size();
        let expected = [a, a.wrapping_add(b), a.wrapping_add(b).wrapping_add(a)].map(reduced);
        assert_eq!(offsets, expected, "{}", case["data"]);
    }
}

#[test]
fn filters_have_the_same_offsets_and_bits() {
    for case in list(&golden()["filters"]) {
        let (n, p) =
            (number(&case["expected_insertions"]) as u64, real(&case["false_probability"]));
        let plan = Redisson::plan(n, p).unwrap();
        assert_eq!(i128::from(plan.size()), number(&case["size"]), "{n}");
        assert_eq!(i128::from(plan.hash_iterations()), number(&case["hash_iterations"]), "{n}");
        let items: Vec<_> = list(&case["items"]).iter().map(|pair| text(&pair[0])).collect();
        for pair in list(&case["items"]) {
            let offsets = list(&pair[1]).iter().map(|it| number(it) as u64);
            assert!(plan.offsets(text(&pair[0]).as_bytes()).eq(offsets), "{n} {}", pair[0]);
        }
        let Some(string) = case.get("redis_string_hex") else { continue };
        let mut filter = (format(NAME).create)(&options(case, None)).unwrap();
        insert(&mut filter, &items).unwrap();
        assert!(encode_with(NAME, &filter, &options(case, None)).unwrap() == hex(string), "{n}");
        match &case["count_estimate"] {
            Json::String(_) => assert_eq!(filter.info().items, f64::INFINITY),
            count => assert_eq!(filter.info().items.round() as i128, number(count), "{n}"),
        }
        assert!(filter.info().warnings[0].contains("StringCodec"));
    }
}

#[test]
fn a_snapshot_holds_the_bitmap_and_its_settings() {
    for case in list(&golden()["filters"]) {
        let Some(string) = case.get("redis_string_hex") else { continue };
        let filter = decode_with(NAME, &hex(string), &options(case, None)).unwrap();
        for (name, config) in [("users", "{users}:config"), ("shop{1}", "shop{1}:config")] {
            let bytes = encode_with(NAME, &filter, &options(case, Some(name))).unwrap();
            let entries = Rdb::new(&bytes).unwrap().entries().map(Result::unwrap);
            let keys: Vec<_> = entries.map(|it| (it.key().to_vec(), it.type_name())).collect();
            assert_eq!(keys, [(config.into(), "hash"), (name.into(), "string")]);
            assert_eq!(format(NAME).sniff(&bytes), Sniff::Yes);
            let (of_plan, of_both) = (options(case, None), options(case, Some(name)));
            for options in [DecodeOptions::default(), keyed(name), of_plan, of_both] {
                assert_eq!(decode_with(NAME, &bytes, &options).unwrap(), filter, "{name}");
            }
            let other = DecodeOptions { items: Some(99), ..options(case, Some(name)) };
            assert_fails(decode_with(NAME, &bytes, &other), "given items and rate need");
            for words in ["{none}:config", "not initialized"] {
                assert_fails(decode_with(NAME, &bytes, &keyed("none")), words);
            }
        }
    }
}

#[test]
fn settings_of_a_server_are_read_in_each_of_its_encodings() {
    // The snapshot contains a Redis hash with the same fields as the settings of a filter. Under
    // the key of settings, the same hash holds the settings of a filter.
    for file in ["lfu.rdb", "lru-uncompressed.rdb"] {
        let mut bytes = std::fs::read(crate::golden_data::path("redis_rdb").join(file)).unwrap();
        let name = b"small-hash";
        let at = bytes.windows(name.len()).position(|it| it == name).unwrap();
        bytes[at..at + name.len()].copy_from_slice(b"{x}:config");
        let checksum = bytes.len() - 8;
        bytes[checksum..].fill(0);
        let contents = decode_with(NAME, &bytes, &keyed("x")).unwrap();
        let filter: &ForeignBloom = contents.downcast_ref().unwrap();
        let rule = filter.rule();
        assert_eq!((rule.bits(), rule.probes(), filter.count_ones()), (729, 5, 0));
        assert_eq!(format(NAME).sniff(&bytes), Sniff::Yes);
    }
    // The same hash as a ziplist, the encoding of servers before version 7.
    let mut list = vec![0; 10];
    for text in [&b"size"[..], b"hashIterations"] {
        list.extend([0, text.len() as u8]);
        list.extend(text);
        list.extend(if text == b"size" { &[0, 0xc0, 0xd9, 2][..] } else { &[0, 0xf6] });
    }
    list.push(0xff);
    let mut bytes = b"REDIS0009\xfe\0\x0d\x0a{x}:config".to_vec();
    bytes.push(list.len() as u8);
    bytes.extend(&list);
    bytes.extend(b"\xff\0\0\0\0\0\0\0\0");
    let contents = decode(NAME, &bytes).unwrap();
    let filter: &ForeignBloom = contents.downcast_ref().unwrap();
    assert_eq!((filter.rule().bits(), filter.rule().probes()), (729, 5));
}

/// Returns a snapshot with the settings of a filter. `probes` is an encoded string of Redis.
fn config(size: &str, probes: &[u8]) -> Vec<u8> {
    let start = b"REDIS0009\xfe\0\x04\x0a{x}:config\x02\x04size";
    let size = [&[size.len() as u8], size.as_bytes()].concat();
    let end = b"\xff\0\0\0\0\0\0\0\0";
    [&start[..], &size, b"\x0ehashIterations", probes, end].concat()
}

#[test]
fn a_new_filter_takes_no_more_memory_than_the_options_confirm() {
    let large = golden()["filters"][3].clone();
    let bytes = config("401414246", b"\xc0\x05");
    let error = decode(NAME, &bytes).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Missing(Parameter::Items));
    let read = decode_with(NAME, &bytes, &options(&large, None)).unwrap();
    assert_eq!(read.info().bits, 401_414_246);
    for size in ["0", "4294967295", "-1", "many"] {
        assert_fails(decode(NAME, &config(size, b"\xc0\x05")), "1 to 4294967294");
    }
}

#[test]
fn settings_of_too_many_probes_are_refused() {
    for (probes, is_read) in [("65535", true), ("65536", false), ("4294967295", false)] {
        let encoded = [&[probes.len() as u8], probes.as_bytes()].concat();
        match decode(NAME, &config("729", &encoded)) {
            Ok(_) => assert!(is_read, "{probes}"),
            Err(error) => assert!(!is_read && error.to_string().contains("1 to 65535"), "{error}"),
        }
    }
}

#[test]
fn plans_are_refused_where_redisson_refuses() {
    let refusal = |items, rate| Redisson::plan(items, rate).unwrap_err().to_string();
    for (n, p) in [(0, 0.03), (1, 1.0), (0, 0.0), (1, 0.62)] {
        assert!(refusal(n, p).contains("0 bits"), "{n} {p}");
    }
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(refusal(10, p).contains("rates from 0 to 1"), "{p}");
    }
    let most = number(&golden()["limits"]["max_size_bits"]) as u64;
    assert!(Redisson::plan(588_000_000, 0.03).unwrap().size() <= most);
    assert!(refusal(589_000_000, 0.03).contains(&format!("at most {most} bits")));
    assert_eq!(Redisson::plan(1000, 0.0).unwrap().hash_iterations(), 1074);
    let error = (format(NAME).create)(&planned(1, 1.0));
    assert!(matches!(error, Err(CreateError::Refused(why)) if why.contains("0 bits")));
}
