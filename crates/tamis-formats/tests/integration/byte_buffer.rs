//! `ByteBufferBloomFilter` and `Hash.hashes` give the recorded bits.

use crate::golden_data::{hex, json, list, number, text, to_hex, units};
use crate::support::encode_filter;
use sha2::{Digest as _, Sha256};
use tamis_formats::byte_buffer;

fn golden() -> serde_json::Value {
    json("seeds_java/byte_buffer.json")
}

/// Returns the bytes into which [`Funnel::Chars`](tamis_formats::Funnel::Chars) converts a text.
fn key(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

#[test]
fn every_recorded_text_has_its_hashes() {
    for case in list(&golden()["hashes"]) {
        let units = units(&case["key"]);
        let hashes = byte_buffer::hashes(units.iter().copied());
        let expected = list(&case["hash"]).iter().map(number);
        assert!(hashes.iter().map(|&hash| i128::from(hash)).eq(expected), "{case}");
        let mut one = byte_buffer::create(1024).unwrap();
        one.insert(&key(&units));
        for (i, slot) in list(&case["hashes_slots_1024"]).iter().enumerate() {
            let bit = number(slot) as usize * 8 + i;
            assert_eq!(one.words()[bit / 64] >> (bit % 64) & 1, 1, "{case}");
        }
    }
}

#[test]
fn filters_have_the_bytes_and_the_answers_of_java() {
    for case in list(&golden()["filters"]) {
        let mut filter = byte_buffer::create(number(&case["size"]) as u64).unwrap();
        for item in list(&case["inserted"]) {
            filter.insert(&key(&units(item)));
        }
        assert_eq!(encode_filter("byte-buffer", &filter), hex(&case["bytes_hex"]), "{case}");
        let read = byte_buffer::decode(&hex(&case["bytes_hex"])).unwrap();
        assert_eq!(read, filter);
        for probe in list(&case["probes"]) {
            let found = read.contains(&key(&units(&probe[0])));
            assert_eq!(found, probe[1].as_bool().unwrap(), "{}: {}", case["size"], probe[0]);
        }
    }
    for case in list(&golden()["errors"]) {
        let Some(size) = case.get("size").map(number) else { continue };
        assert!(byte_buffer::create(size as u64).is_err(), "{case}");
    }
    assert!(byte_buffer::decode(&[]).is_err());
}

#[test]
fn whole_runs_give_the_recorded_rates() {
    for case in list(&golden()["false_positive_runs"]) {
        let size = number(&case["size_bytes"]) as u64;
        let (_, last) = text(&case["inserted"]).rsplit_once("key").unwrap();
        let items = last.parse::<u64>().unwrap() + 1;
        let mut filter = byte_buffer::create(size).unwrap();
        for i in 0..items {
            filter.insert(&key(&format!("key{i}").encode_utf16().collect::<Vec<_>>()));
        }
        let bytes = encode_filter("byte-buffer", &filter);
        assert_eq!(to_hex(&Sha256::digest(bytes)), text(&case["sha256"]));
        let estimate = filter.estimate_items();
        assert!((estimate / items as f64 - 1.0).abs() < 0.1, "{estimate} of {items}");
        let measured = number(&case["false_positives"]) as f64 / number(&case["probed"]) as f64;
        let rate = filter.estimate_rate();
        assert!((rate / measured - 1.0).abs() < 0.2, "{rate}, measured {measured}");
        let planned = byte_buffer::plan_bytes(items, rate);
        assert!(planned.abs_diff(size) < size / 20, "{planned} for {size}");
    }
}
