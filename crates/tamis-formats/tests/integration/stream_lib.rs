//! stream-lib's filters give the same answers in Tamis as in stream-lib, and re-encode to equal
//! bytes.

use crate::golden_data::{base64, json, list, number, real, text};
use crate::support::{assert_fails, assert_refused, digits, encode_filter};
use tamis_formats::{Charset, Format, Funnel, Items, Sniff, stream_lib};

fn key(i: usize) -> Vec<u8> {
    let item = format!("k{i}");
    Funnel::Text(Charset::Utf16).key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec()
}

#[test]
fn filters_are_those_of_stream_lib() {
    let format = Format::named("stream-lib").unwrap();
    assert_eq!(format.items, Items::Default(Funnel::Text(Charset::Utf16)));
    for case in list(&json("stream-lib/stream_lib.json")) {
        let (items, rate) = (number(&case["num_elements"]) as u64, real(&case["max_fp"]));
        let mut filter = stream_lib::create(items, rate).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&case["buckets"]), "{case}");
        assert_eq!(i128::from(filter.rule().probes()), number(&case["hash_count"]), "{case}");
        (0..10).for_each(|i| _ = filter.insert(&key(i)));
        let bytes = encode_filter("stream-lib", &filter);
        assert_eq!(bytes, base64(&case["serialized_base64"]), "{case}");
        assert_eq!(stream_lib::decode(&bytes).unwrap(), filter);
        assert_eq!(format.sniff(&bytes), Sniff::Yes);
        let found = digits((0..100).map(|i| filter.contains(&key(i))));
        assert_eq!(found, text(&case["probes_0_99"]), "{case}");
    }
}

#[test]
fn broken_files_are_refused_by_field_and_place() {
    let good = base64(&json("stream-lib/stream_lib.json")[0]["serialized_base64"]);
    let words_at = good.len() - 1 - 2 * 8 - 4;
    let changes = [
        (3, 0, "number of probes at byte 0 is 0"),
        (2, 1, "number of probes at byte 0 is 259"),
        (11, 0, "the bit set at byte 4 is not a java.util.BitSet"),
        (words_at + 3, 0, "number of words at byte 72 is 0"),
        (words_at, 2, "number of words at byte 72 is 33554434"),
        (words_at + 3, 9, "words at byte 76"),
        (good.len() - 1, 0, "the end of the bit set"),
    ];
    assert_refused(&good, stream_lib::decode, &changes);
    assert!(stream_lib::decode(&[&good[..], b"x"].concat()).is_err());
    for (items, rate) in [(0, 0.05), (1, 1e-5), (1, f64::NAN), (1 << 40, 0.05)] {
        assert_fails(stream_lib::create(items, rate), "plan");
    }
}
