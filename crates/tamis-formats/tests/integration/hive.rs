//! Hive's filters give the same answers in Tamis as in Hive, and re-encode to equal bytes.

use crate::golden_data::{base64, json, list, number};
use crate::support::{assert_answers, assert_fails, assert_refused, encode_filter};
use tamis_formats::{Format, Funnel, hive};

/// Returns the recorded item with number `i`: a long, a string or a double.
fn key(i: i64, of: i64) -> Vec<u8> {
    let (funnel, item) = match of {
        0 => (Funnel::LongBigEndian, (-3 * i).to_string()),
        1 => (Funnel::Bytes, format!("x{i}")),
        _ => (Funnel::DoubleBigEndian, (i as f64 / 4.0).to_string()),
    };
    funnel.key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec()
}

#[test]
fn filters_are_those_of_hive() {
    for case in list(&json("hive/hive.json")) {
        let items = number(&case["max_entries"]);
        let mut filter = hive::create(items as u64, 0.05).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&case["num_bits"]), "{case}");
        assert_eq!(i128::from(filter.rule().probes()), number(&case["num_hash_functions"]));
        (0..items.min(30) as i64).for_each(|i| _ = filter.insert(&key(i, i % 3)));
        let bytes = base64(&case["serialized_base64"]);
        assert_eq!(encode_filter("hive", &filter), bytes, "{case}");
        assert_eq!(hive::decode(&bytes).unwrap(), filter);
        assert_answers(&case["probes_0_59_bits_long1_string2_double4"], |i| {
            (0..3).map(|of| i128::from(filter.contains(&key(i, of))) << of).sum()
        });
    }
}

#[test]
fn numbers_of_hive_have_their_highest_byte_first() {
    let hive = Format::named("hive").unwrap();
    assert!(
        hive.item_domain.accepts(Funnel::LongBigEndian) && hive.item_domain.accepts(Funnel::Bytes)
    );
    assert!(!hive.item_domain.accepts(Funnel::Long), "Guava's would find nothing");
}

#[test]
fn broken_files_are_refused_by_field_and_place() {
    let good = base64(&json("hive/hive.json")[0]["serialized_base64"]);
    let changes = [
        (0, 0, "number of probes at byte 0 is 0, expected 1 to 127"),
        (0, 128, "number of probes at byte 0 is 128"),
        (4, 7, "number of words at byte 1 is 7, expected 8 or more"),
        (4, 9, "number of words at byte 1 is 9, expected a multiple of 8"),
        (4, 16, "words at byte 5"),
        (1, 128, "number of words at byte 1 is -"),
    ];
    assert_refused(&good, hive::decode, &changes);
    assert!(hive::decode(&[&good[..], &[0]].concat()).is_err());
    for (items, rate) in [(0, 0.05), (1, 0.0), (1, f64::NAN), (1 << 40, 0.05)] {
        assert_fails(hive::create(items, rate), "plan");
    }
}
