//! Filters of `rbloom` equal the recorded files, byte for byte. The test computes the hashes
//! itself.

use crate::golden_data::{hex, json, list, number, real};
use crate::support::{answers, assert_fails, encode_filter, insert};
use tamis_formats::{Contents, Funnel, rbloom};

#[test]
fn files_are_those_of_python() {
    for case in list(&json("python/rbloom.json")) {
        let (items, rate) = (number(&case["expected_items"]) as u64, real(&case["fpr"]));
        let mut filter = rbloom::create(items, rate).unwrap();
        assert_eq!(i128::from(filter.rule().probes()), number(&case["k"]), "{items}");
        assert_eq!(i128::from(filter.rule().bits()), number(&case["size_in_bits"]), "{items}");
        let mut scratch = Vec::new();
        for hash in list(&case["hashes"]) {
            let hash = hash.to_string().trim_matches('"').to_owned();
            filter.insert(Funnel::Hash128.key(hash.as_bytes(), &mut scratch).unwrap());
        }
        let estimate = real(&case["approx_items"]);
        assert!((filter.estimate_items() / estimate - 1.0).abs() < 1e-9, "{items}");
        let bytes = encode_filter("rbloom", &filter);
        assert_eq!(bytes, hex(&case["saved_hex"]), "{items}");
        assert_eq!(rbloom::decode(&bytes).unwrap(), filter);
        assert!(!filter.contains(&(1_u128 << 100 | 12_345).to_le_bytes()));
    }
}

#[test]
fn keys_of_another_width_are_refused_and_absent() {
    let mut contents = Contents::new(rbloom::create(100, 0.01).unwrap());
    let keys = [&[1; 16][..], &[2; 8], &[3; 16]];
    assert_fails(insert(&mut contents, &keys), "16 bytes");
    // The filter contains the first item. Two items have another length, so they are absent. The
    // last item was not inserted, because the batch ended with an error.
    let lookups = [&[1; 16][..], &[1; 17], &[2; 8], &[3; 16]];
    assert_eq!(answers(&contents, &lookups), [true, false, false, false]);
}

#[test]
fn no_probes_and_no_bits_are_refused() {
    for (bytes, field) in
        [(&[0; 9][..], "probes"), (&[3, 0, 0, 0, 0, 0, 0, 0], "bits"), (&[1], "probes")]
    {
        assert_fails(rbloom::decode(bytes), field);
    }
}
