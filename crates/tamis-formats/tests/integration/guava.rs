//! Guava's filters give the same answers in Tamis as in Guava, and re-encode to equal bytes.

use crate::golden_data::{base64, hex, json, list, number, real, text, to_hex};
use crate::support::{digits, encode_filter, planned};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tamis_formats::guava::{self, GuavaRelease, GuavaStrategy};
use tamis_formats::{Charset, DecodeOptions, ForeignBloom, Format, Funnel};

fn strategy(json: &Json) -> GuavaStrategy {
    match text(json) {
        "MURMUR128_MITZ_32" => GuavaStrategy::Mitz32,
        "MURMUR128_MITZ_64" => GuavaStrategy::Mitz64,
        other => panic!("{other}"),
    }
}

fn funnel(name: &str) -> Funnel {
    match name {
        "integer" => Funnel::Int,
        "long" => Funnel::Long,
        "unencodedChars" => Funnel::Chars,
        "byteArray" => Funnel::Hex,
        "string_utf8" => Funnel::Text(Charset::Utf8),
        "string_utf16be" => Funnel::Text(Charset::Utf16Be),
        "string_latin1" => Funnel::Text(Charset::Latin1),
        other => panic!("{other}"),
    }
}

/// Returns the bytes of a golden item that Guava hashes.
fn key(funnel: Funnel, item: &Json) -> Vec<u8> {
    let mut scratch = Vec::new();
    if let Some(units) = item.get("utf16") {
        // Half of a surrogate pair, which a Rust string cannot contain.
        let pair = |pair: &[u8]| u16::from_be_bytes([pair[0], pair[1]]);
        let units: Vec<u16> = hex(units).chunks(2).map(pair).collect();
        match funnel {
            Funnel::Chars => return units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            Funnel::Text(charset) => charset.encode_units(&units, &mut scratch),
            other => panic!("{other:?}"),
        }
        return scratch;
    }
    let item = match item {
        Json::String(text) => text.clone(),
        Json::Object(long) => text(&long["repeat"]).repeat(number(&long["count"]) as usize),
        number => number.to_string(),
    };
    funnel.key(item.as_bytes(), &mut scratch).unwrap().to_vec()
}

/// Returns the items of a list, or the items that a rule generates.
fn items(json: &Json) -> Vec<Json> {
    let Some(rule) = json.get("gen") else { return list(json).to_vec() };
    let range = number(&json["from"])..number(&json["to"]);
    match text(rule) {
        "int_range" => range.map(|i| (i as i64).into()).collect(),
        "long_mul" => {
            let mul = number(&json["mul"]) as i64;
            range.map(|i| (i as i64).wrapping_mul(mul).to_string().into()).collect()
        }
        "fmt" => range.map(|i| format!("{}{i}", text(&json["prefix"])).into()).collect(),
        other => panic!("{other}"),
    }
}

fn holds(golden: &Json, release: GuavaRelease) {
    let (id, funnel) = (&golden["id"], funnel(text(&golden["funnel"])));
    let (n, fpp) = (number(&golden["n"]) as u64, real(&golden["fpp"]));
    let mut filter = guava::create(n, fpp, strategy(&golden["strategy"]), release).unwrap();
    assert_eq!(guava::plan_bits(n, fpp).0, number(&golden["num_bits_formula"]) as u64, "{id}");
    assert_eq!(filter.rule().bits(), number(&golden["bit_size"]) as u64, "{id}");
    assert_eq!(u64::from(filter.rule().probes()), number(&golden["k"]) as u64, "{id}");
    let inserted = items(&golden["inserted"]);
    let put = digits(inserted.iter().map(|item| filter.insert(&key(funnel, item))));
    if let Some(expected) = golden.get("put_returned") {
        assert_eq!(put, text(expected), "{id}");
    }
    assert_eq!(filter.count_ones(), number(&golden["bit_count"]) as u64, "{id}");
    let items = (filter.estimate_items() + 0.5).floor() as i128;
    assert_eq!(items, number(&golden["approximate_element_count"]), "{id}");
    let expected = real(&golden["expected_fpp"]);
    assert!((expected_fpp(&filter) / expected - 1.0).abs() < 1e-12, "{id}");
    for probe in list(&golden["probes"]) {
        let found = filter.contains(&key(funnel, &probe[0]));
        assert_eq!(found, probe[1].as_bool().unwrap(), "{id}: {}", probe[0]);
    }
    let bytes = encode_filter("guava", &filter);
    assert_eq!(bytes.len() as i128, number(&golden["write_to_len"]), "{id}");
    assert_eq!(to_hex(&Sha256::digest(&bytes)), text(&golden["write_to_sha256"]), "{id}");
    if let Some(expected) = golden.get("write_to_base64") {
        assert!(bytes == base64(expected), "{id}");
    }
    assert_eq!(guava::decode(&bytes).unwrap(), filter, "{id}");
}

/// Returns the rate that Guava states, which assumes independent probes.
fn expected_fpp(filter: &ForeignBloom) -> f64 {
    filter.fill().powf(filter.rule().probes().into())
}

#[test]
fn filters_of_guava_31_and_33_are_the_same() {
    let golden = json("guava/filters.json");
    assert_eq!(list(&golden["filters"]).len(), 50);
    list(&golden["filters"]).iter().for_each(|filter| holds(filter, GuavaRelease::Until33));
    let newer = list(&golden["guava_33_6_0_where_different"]);
    newer.iter().for_each(|filter| holds(filter, GuavaRelease::Since33));
}

#[test]
fn three_generations_of_guava_plan_as_recorded() {
    let golden = json("guava/sizing.json");
    for row in list(&golden["rows"]) {
        let (n, fpp) = (number(&row[0]) as u64, real(&row[1]));
        let (bits, _) = guava::plan_bits(n, fpp);
        assert_eq!(bits, number(&row[2]) as u64, "{row}");
        for (column, probes) in
            [(3, GuavaRelease::Until14), (4, GuavaRelease::Until33), (5, GuavaRelease::Since33)]
        {
            let k = guava::plan_probes(n, bits, fpp, probes);
            assert_eq!(k, number(&row[column]) as u64, "{row}, {probes:?}");
        }
    }
}

#[test]
fn the_release_that_planned_the_filter_is_detected() {
    let create = Format::named("guava").unwrap().create;
    let golden = json("guava/sizing.json");
    let mut differ = 0;
    for row in list(&golden["rows"]) {
        let (items, rate) = (number(&row[0]) as u64, real(&row[1]));
        if items > 10_000 || !(rate > 0.0 && rate < 1.0) || number(&row[2]) == 0 {
            continue;
        }
        for (column, release) in [(3, "14"), (4, "31"), (5, "33")] {
            let options = DecodeOptions { version: Some(release.into()), ..planned(items, rate) };
            if let Ok(contents) = create(&options) {
                let probes = contents.info().probes.map(i64::from);
                assert_eq!(probes, Some(number(&row[column]) as i64), "{row}, {release}");
                differ += u64::from(number(&row[column]) != number(&row[5]));
            }
        }
    }
    assert!(differ > 10, "{differ}");
    let options = DecodeOptions { version: Some("32".into()), ..planned(1, 0.1) };
    assert!(create(&options).unwrap_err().to_string().contains("expected 14, 31"));
}

#[test]
fn javas_serialized_form_is_named() {
    let golden = json("guava/sizing.json");
    let bytes = base64(&golden["java_serialization_sample"]["java_serialized_base64"]);
    assert_eq!(Format::of(&bytes).iter().map(|format| format.name).collect::<Vec<_>>(), ["guava"]);
    let error = guava::decode(&bytes).unwrap_err().to_string();
    assert!(error.contains("Java's serialized form") && error.contains("writeTo"), "{error}");
}

#[test]
fn read_from_fails_where_guava_does() {
    let golden = json("guava/errors.json");
    for case in list(&golden["read_from"]) {
        let bytes = hex(&case["hex"]);
        let read = guava::decode_start(&bytes);
        if case["result"] != "ok" {
            let error = read.unwrap_err().to_string();
            assert!(error.contains("byte"), "{error}");
            continue;
        }
        let (filter, rest) = read.unwrap();
        assert_eq!(i128::from(filter.rule().probes()), number(&case["k"]), "{case}");
        assert_eq!(i128::from(filter.rule().bits()), number(&case["bit_size"]), "{case}");
        assert_eq!(i128::from(filter.count_ones()), number(&case["bit_count"]), "{case}");
        assert_eq!(expected_fpp(&filter), real(&case["expected_fpp"]), "{case}");
        assert_eq!(rest.len() as i128, number(&case["bytes_left_unread"]), "{case}");
        let is_in = filter.contains(&1_i32.to_le_bytes());
        assert_eq!(is_in, case["contains_1"].as_bool().unwrap(), "{case}");
        // Bytes after the end of the filter are an error.
        assert_eq!(guava::decode(&bytes).is_ok(), rest.is_empty(), "{case}");
    }
}

#[test]
fn create_refuses_where_guava_does() {
    let golden = json("guava/errors.json");
    for case in list(&golden["create"]) {
        // Skip numbers that do not fit Guava's signed type.
        let Ok(n) = text(&case["n"]).parse() else { continue };
        let fpp = real(&case["fpp"]);
        let created = guava::create(n, fpp, GuavaStrategy::Mitz64, GuavaRelease::Until33);
        match case.get("k") {
            Some(k) => {
                let rule = created.unwrap().rule().clone();
                assert_eq!(i128::from(rule.probes()), number(k), "{case}");
                assert_eq!(i128::from(rule.bits()), number(&case["bit_size"]), "{case}");
            }
            None => assert!(created.is_err(), "{case}"),
        }
    }
}

#[test]
fn filters_merge_as_put_all_does() {
    let golden = json("guava/merge.json");
    for case in list(&golden["put_all"]) {
        let [mut left, right, merged] =
            ["left", "right", "merged"].map(|name| guava::decode(&base64(&case[name])).unwrap());
        assert!(left.merge(&right));
        assert_eq!(left, merged);
        let items = (left.estimate_items() + 0.5).floor() as i128;
        assert_eq!(items, number(&case["merged_approximate_element_count"]));
        let rate = real(&case["merged_expected_fpp"]);
        assert!((expected_fpp(&left) / rate - 1.0).abs() < 1e-12);
    }
    for case in list(&golden["compatibility"]) {
        // Skip two cases. The file does not store the funnel. A decoded filter merges only with a
        // copy, never with itself.
        if ["self", "different funnel"].contains(&text(&case["case"])) {
            continue;
        }
        let strategies = match text(&case["case"]) {
            "different strategy" => [GuavaStrategy::Mitz32, GuavaStrategy::Mitz64],
            _ => [GuavaStrategy::Mitz64; 2],
        };
        let [mut left, right] =
            [("left", strategies[0]), ("right", strategies[1])].map(|(side, strategy)| {
                let bits = number(&case[format!("{side}_bits").as_str()]) as usize;
                let probes = number(&case[format!("{side}_k").as_str()]) as u8;
                let mut bytes = vec![strategy as u8, probes];
                bytes.extend((bits as u32 / 64).to_be_bytes());
                bytes.resize(6 + bits / 8, 0);
                guava::decode(&bytes).unwrap()
            });
        assert_eq!(left.merge(&right), case["is_compatible"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn murmur3_is_guavas() {
    for case in list(&json("guava/murmur3.json")["cases"]) {
        // In a filter of 2⁶³ bits with one probe, the bit number is the low half of the hash
        // without its sign.
        let key = match case.get("length") {
            // The test generates the items by the rule in the golden file.
            Some(len) => (0..number(len) as u32)
                .map(|i| i.wrapping_mul(i).wrapping_add(i / 256) as u8)
                .collect(),
            None => hex(&case["input_hex"]),
        };
        let digest = hex(&case["digest_hex"]);
        let low = i64::from_le_bytes(digest[..8].try_into().unwrap());
        assert_eq!(i128::from(low), number(&case["as_long"]), "{case}");
        let mut filter = guava::decode(&[&[1, 1, 0, 0, 4, 0][..], &[0; 8192]].concat()).unwrap();
        filter.insert(&key);
        let bit = (low & i64::MAX) as u64 % 65_536;
        assert_eq!(filter.words()[bit as usize / 64], 1 << (bit % 64), "{case}");
    }
}
