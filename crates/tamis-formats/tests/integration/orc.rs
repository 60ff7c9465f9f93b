//! ORC's filters give the same answers in Tamis as in ORC, and re-encode to equal bytes.

use crate::golden_data::files::orc_message;
use crate::golden_data::{base64, json, list, number, real};
use crate::support::{answers, assert_answers, assert_fails, assert_refused, decode, insert};
use tamis_formats::orc::{self, RowGroups};
use tamis_formats::{Funnel, OrcType};

/// Returns the recorded item with number `i`: a long, a string or a double.
fn key(i: i64, of: i64) -> Vec<u8> {
    let (funnel, item) = match of {
        0 => (OrcType::Long, (-5 * i).to_string()),
        1 => (OrcType::Bytes, format!("o{i}")),
        _ => (OrcType::Double, (i as f64 / 8.0).to_string()),
    };
    Funnel::Orc(funnel).key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec()
}

#[test]
fn filters_are_those_of_orc() {
    for case in list(&json("orc/orc.json")) {
        let items = number(&case["expected_entries"]);
        let mut filter = orc::create(items as u64, real(&case["fpp"])).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&case["bit_size"]), "{case}");
        assert_eq!(i128::from(filter.rule().probes()), number(&case["num_hash_functions"]));
        (0..items.min(30) as i64).for_each(|i| _ = filter.insert(&key(i, i % 3)));
        let words = base64(&case["bitset_little_endian_longs_base64"]);
        assert_eq!(filter.words().len() * 8, words.len());
        let read = RowGroups::decode(&orc_message(case)).unwrap();
        assert_eq!(read.filters(), [filter.clone()], "{case}");
        assert_answers(&case["probes_0_59_bits_long1_string2_double4"], |i| {
            (0..3).map(|of| i128::from(filter.contains(&key(i, of))) << of).sum()
        });
    }
}

#[test]
fn an_item_is_looked_for_in_all_row_groups_and_added_to_none_of_several() {
    let cases = json("orc/orc.json");
    let [large, small] = [1, 2].map(|i| orc_message(&cases[i]));
    let mut both = decode("orc", &[large, small.clone()].concat()).unwrap();
    let found = answers(&both, &[key(29, 2), key(0, 0), key(31, 1)]);
    assert_eq!(found, [true, true, false]);
    assert_eq!(both.info().details, [("row groups", "2".to_owned())]);
    assert_fails(insert(&mut both, &[key(1, 1)]), "each row group");
    let mut one = decode("orc", &small).unwrap();
    assert_fails(insert(&mut one, &[b"text"]), "8 bytes");
    insert(&mut one, &[key(1, 1)]).unwrap();
    let copy = one.clone();
    one.merge(&copy).unwrap();
    assert!(one.merge(&both).is_err());
}

#[test]
fn broken_streams_are_refused_by_field_and_place() {
    let good = orc_message(&json("orc/orc.json")[0]);
    let changes = [
        (0, 0x12, "bloomFilter at byte 0"),
        (2, 0x10, "numHashFunctions at byte 2"),
        (3, 0, "numHashFunctions at byte 3 is 0"),
        (4, 0x11, "BLOOM_FILTER, whose text"),
        (4, 0x22, "utf8bitset at byte 4"),
        (5, 9, "whole words"),
        (5, 0, "whole words"),
        (1, 13, "whole words"),
    ];
    assert_refused(&good, RowGroups::decode, &changes);
    for broken in [&b""[..], &[0x0a; 20], &[0x0a, 255]] {
        assert!(RowGroups::decode(broken).is_err());
    }
    for (items, rate) in [(0, 0.05), (1, 0.0), (1, f64::NAN), (1 << 40, 0.05)] {
        assert_fails(orc::create(items, rate), "plan");
    }
}

#[test]
fn the_older_stream_has_the_same_filters_in_words() {
    let new = orc_message(&json("orc/orc.json")[0]);
    let filter = RowGroups::decode(&new).unwrap();
    let words = filter.filters()[0].words();
    let mut message = vec![8, filter.filters()[0].rule().probes() as u8];
    for word in words {
        message.push(0x11);
        message.extend(word.to_le_bytes());
    }
    let of = |len: usize, message: &[u8]| {
        assert!(message.len() < 1 << 14 && len < 1 << 14);
        [&[0x0a, len as u8 | 0x80, (len >> 7) as u8], message].concat()
    };
    let old = of(message.len(), &message);
    assert_eq!(RowGroups::decode_original(&old).unwrap(), filter);
    let two = RowGroups::decode_original(&old.repeat(2)).unwrap();
    assert_eq!(two.into_each().collect::<Vec<_>>(), [filter.clone(), filter]);
    assert!(RowGroups::decode_original(&new).is_err());
    for broken in [
        of(message.len() - 1, &message),
        of(message.len() - 1, &message[..message.len() - 1]),
        of(message.len() + 1, &message),
        of(2, &message[..2]),
    ] {
        assert!(RowGroups::decode_original(&broken).is_err());
    }
}

#[test]
fn a_float_is_hashed_as_the_double_of_equal_value() {
    let key =
        |of, item: &str| Funnel::Orc(of).key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec();
    assert_eq!(key(OrcType::Float, "0.1"), key(OrcType::Double, "0.10000000149011612"));
    assert_eq!(key(OrcType::Float, "0.10000000149011612"), key(OrcType::Float, "0.1"));
    assert_eq!(key(OrcType::Float, "-2.5"), key(OrcType::Double, "-2.5"));
    assert_ne!(key(OrcType::Float, "0.1"), key(OrcType::Double, "0.1"));
}
