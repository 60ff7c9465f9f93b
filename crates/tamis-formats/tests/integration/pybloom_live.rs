//! Filters of `pybloom_live` have equal bits, and reject items and grow as in the Python library.

use crate::golden_data::{base64, json, list, number, real, text, to_hex};
use crate::support::{self, digits, encode_filter, planned};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tamis_formats::pybloom_live::{ShortDigest, decode, decode_scalable, plan};
use tamis_formats::{Contents, DecodeOptions, Layers, Rule, StoredFilter as _};

fn golden() -> Json {
    json("python/pybloom_live.json")
}

fn create(format: &str, items: u64, rate: f64, md5: bool) -> Layers {
    let options = DecodeOptions { md5, ..planned(items, rate) };
    let created = (support::format(format).create)(&options).unwrap();
    created.downcast_ref::<Layers>().unwrap().clone()
}

fn has_answers(layers: &Layers, prefix: &str, expected: &Json) {
    let found = |i| layers.contains(format!("{prefix}{i}").as_bytes());
    assert_eq!(digits((0..text(expected).len()).map(found)), text(expected));
}

fn is_of_golden(layers: &Layers, case: &Json) {
    let bytes = encode_filter("pybloom-live", layers);
    let layer = &layers.layers()[0];
    let (slices, width) = plan(layer.capacity, layer.rate);
    assert_eq!(i128::from(slices), number(&case["num_slices"]), "{case}");
    assert_eq!(i128::from(width), number(&case["bits_per_slice"]), "{case}");
    assert_eq!(i128::from(layer.added.unwrap()), number(&case["count"]), "{case}");
    assert_eq!(bytes.len() as i128, number(&case["file_len"]), "{case}");
    match case.get("file_base64") {
        Some(expected) => assert!(bytes == base64(expected), "{case}"),
        None => assert_eq!(to_hex(&Sha256::digest(&bytes)), text(&case["file_sha256"])),
    }
    has_answers(layers, "q", &case["probe_q0_q59"]);
    assert_eq!(&decode(&bytes, ShortDigest::Xxh128).unwrap(), layers);
}

#[test]
fn filters_have_the_bytes_of_python() {
    let golden = golden();
    for case in list(&golden["filters"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["error_rate"]));
        let mut layers = create("pybloom-live", capacity, rate, false);
        let many = number(&case["count"]) as usize - 2;
        for i in 0..many {
            let sign = if i % 4 == 0 { "\u{4e2d}" } else { "" };
            layers.insert(format!("p{i}{sign}").as_bytes()).unwrap();
        }
        for last in ["12345", ""] {
            layers.insert(last.as_bytes()).unwrap();
        }
        is_of_golden(&layers, case);
    }
}

#[test]
fn every_digest_and_every_width_of_its_words_is_pythons() {
    let golden = golden();
    let mut rules = std::collections::BTreeSet::new();
    for case in list(&golden["more"]["filters"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["error_rate"]));
        let mut layers = create("pybloom-live", capacity, rate, false);
        for i in 0..number(&case["n"]) {
            layers.insert(format!("p{i}").as_bytes()).unwrap();
        }
        rules.insert(layers.layers()[0].filter.rule().to_string());
        is_of_golden(&layers, case);
    }
    assert!(rules.len() >= 3, "{rules:?}");
}

#[test]
fn a_full_filter_refuses_items_when_python_does() {
    let golden = golden();
    let full = &golden["more"]["full"];
    let (capacity, rate) = (number(&full["capacity"]) as u64, real(&full["error_rate"]));
    let mut layers = create("pybloom-live", capacity, rate, false);
    for step in list(&full["trace"]) {
        let inserted = layers.insert(text(&step[0]).as_bytes());
        match &step[1] {
            Json::Bool(was_in) => assert_eq!(inserted, Ok(!was_in), "{step}"),
            _ => assert!(inserted.unwrap_err().to_string().contains("full: 6 of 5"), "{step}"),
        }
        assert_eq!(i128::from(layers.layers()[0].added.unwrap()), number(&step[2]), "{step}");
    }
    assert_eq!(encode_filter("pybloom-live", &layers), base64(&full["file_base64"]));
    assert!(layers.insert(b"f0").is_err(), "even one that is in, as there");
}

#[test]
fn a_filter_that_grows_has_the_layers_of_python() {
    let golden = golden();
    let old = &golden["scalable"];
    let bytes = base64(&old["file_base64"]);
    let layers = decode_scalable(&bytes, ShortDigest::Xxh128).unwrap();
    assert_eq!(encode_filter("pybloom-live-scalable", &layers), bytes);
    assert!((0..60).all(|i| layers.contains(format!("s{i}").as_bytes())));
    for case in list(&golden["more"]["scalable"]) {
        // Start from an empty file of this scale, as Python writes it.
        let file = base64(&case["file_base64"]);
        let empty = [&file[..28], &[0; 4]].concat();
        let mut layers = decode_scalable(&empty, ShortDigest::Xxh128).unwrap();
        let mut is_old = |i| !layers.insert(format!("s{i}").as_bytes()).unwrap();
        let added = digits((0..number(&case["n"])).map(&mut is_old));
        assert_eq!(added, text(&case["add_returned"]));
        for (layer, expected) in layers.layers().iter().zip(list(&case["filters"])) {
            assert_eq!(i128::from(layer.capacity), number(&expected[0]), "{expected}");
            assert_eq!(layer.rate, real(&expected[1]), "{expected}");
            assert_eq!(i128::from(layer.added.unwrap()), number(&expected[4]), "{expected}");
        }
        has_answers(&layers, "q", &case["probe_q0_q199"]);
        assert!(encode_filter("pybloom-live-scalable", &layers) == file, "{}", case["filters"]);
    }
    let info = Contents::new(layers.clone()).info();
    assert!(info.details.contains(&("layers", "3".into())), "{:?}", info.details);
    // The rate of all layers together.
    let planned: f64 = layers.layers().iter().map(|layer| layer.rate).sum();
    assert!(planned > 2.0 * real(&old["error_rate"]), "three layers");
    assert_eq!(info.rate_planned, Some(planned));
    assert!((40.0..80.0).contains(&info.items), "{}", info.items);
}

#[test]
fn filters_merge_as_their_union_does() {
    let union = &golden()["more"]["union"];
    let read = |name: &str| decode(&base64(&union[name]), ShortDigest::Xxh128).unwrap();
    let mut merged = read("left");
    assert!(merged.merge(&read("right")).unwrap());
    let (merged, expected) = (&merged.layers()[0], &read("union").layers()[0].clone());
    assert_eq!(merged.filter, expected.filter);
    // The union of Python does not keep the number of items.
    assert_eq!((merged.added, expected.added), (Some(30), Some(0)));
    assert!(!read("left").merge(&create("pybloom-live", 101, 0.001, false)).unwrap());
}

#[test]
fn md5_is_another_rule() {
    let [new, old] = [false, true].map(|md5| create("pybloom-live", 20, 0.1, md5));
    let rule = |layers: &Layers| -> Rule { layers.layers()[0].filter.rule().clone() };
    assert_eq!(rule(&old).to_string(), "salted MD5, one slice per probe");
    assert_ne!(rule(&new), rule(&old));
    let warnings = |layers: &Layers| Contents::new(layers.clone()).info().warnings;
    assert!(warnings(&new)[0].contains("use MD5, which must be given"), "{:?}", warnings(&new));
    assert_eq!(warnings(&old), [""; 0]);
    // If the probes need more than 128 bits of digest, all releases use the same hash.
    assert_eq!(warnings(&create("pybloom-live", 20, 0.0001, false)), [""; 0]);
    let mut old = old;
    old.insert(b"item").unwrap();
    assert_eq!(decode(&encode_filter("pybloom-live", &old), ShortDigest::Md5).unwrap(), old);
}

#[test]
fn more_than_64_slices_are_refused_and_not_called_damaged() {
    let file = |slices: u64| {
        let mut bytes = 1e-20_f64.to_le_bytes().to_vec();
        for number in [slices, 8, 1, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(vec![0; slices as usize]);
        bytes
    };
    let error = |slices| decode(&file(slices), ShortDigest::default()).unwrap_err().to_string();
    let sliced = error(67);
    assert!(sliced.contains("takes 67 slices") && !sliced.contains("damaged"), "{sliced}");
    assert!(error(1075).contains("damaged"), "{}", error(1075));
    assert!(decode(&file(64), ShortDigest::default()).is_ok());
}
