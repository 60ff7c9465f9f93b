//! Roaring bitmaps of CRoaring decode and re-encode to equal bytes.

use crate::golden_data::{base64, hex, json, list, number, text, to_hex};
use crate::support::{
    self, answers, assert_fails, decode_with, encode, encode_with, insert, versioned,
};
use sha2::{Digest as _, Sha256};
use tamis::CompressedSet;
use tamis_formats::roaring::{Roaring, RoaringForm, decode};
use tamis_formats::{Contents, Format, java_bitmap};

#[test]
fn bitmaps_have_the_bytes_of_croaring() {
    for case in list(&json("roaring/bitmaps.json")["cases"]) {
        let name = format!("{} {} {}", case["name"], case["width"], case["run_optimize"]);
        let set: CompressedSet = list(&case["ranges"])
            .iter()
            .flat_map(|range| {
                let [first, last, step] = [0, 1, 2].map(|i| number(&range[i]));
                (first..=last).step_by(step as usize).map(|value| value as u64)
            })
            .collect();
        assert_eq!(set.len(), number(&case["count"]) as u64, "{name}");
        let has_runs = case["run_optimize"].as_bool().unwrap();
        let is_64 = number(&case["width"]) == 64;
        let form = if is_64 { RoaringForm::Bits64 } else { RoaringForm::Bits32 };
        let roaring = Roaring { form, has_runs, ..Roaring::new(set) };
        let bytes = encode("roaring", &Contents::new(roaring.clone())).unwrap();
        assert_eq!(bytes.len() as i128, number(&case["len"]), "{name}");
        assert_eq!(to_hex(&Sha256::digest(&bytes)), text(&case["sha256"]), "{name}");
        if let Some(expected) = case.get("base64") {
            assert!(bytes == base64(expected), "{name}");
        }
        assert_eq!(Contents::new(roaring.clone()).info().bits, bytes.len() as u64 * 8, "{name}");
        let read = decode(&bytes).unwrap();
        assert_eq!((read.set, read.form), (roaring.set, roaring.form), "{name}");
    }
}

#[test]
fn bitmaps_are_those_of_java_s_legacy_form() {
    let java = versioned("java");
    for case in list(&json("roaring/java.json")) {
        let name = text(&case["name"]);
        let values = list(&case["values"]).iter().map(|value| text(value).parse().unwrap());
        let set: CompressedSet = values.collect();
        let bytes = hex(&case["hex"]);
        let read = decode(&bytes).unwrap();
        let unsigned = RoaringForm::Java { is_signed: false };
        assert_eq!((&read.set, read.form), (&set, unsigned), "{name}");
        let has_runs = case["run_optimize"].as_bool().unwrap();
        let contents = Contents::new(Roaring { has_runs, ..Roaring::new(set.clone()) });
        assert_eq!(encode_with("roaring", &contents, &java).unwrap(), bytes, "{name}");
        assert_eq!(encode("roaring", &Contents::new(read)).unwrap(), bytes, "{name}: kept");
        assert_eq!(decode_with("roaring", &bytes, &java).unwrap(), contents);
        assert_eq!(Format::of(&bytes).len(), usize::from(name != "empty"), "{name}");
        // A Java program with signed values stores those from 2⁶³ on first.
        let signed =
            Roaring { form: RoaringForm::Java { is_signed: true }, has_runs, ..Roaring::new(set) };
        let contents = Contents::new(signed.clone());
        let signed_bytes = encode("roaring", &contents).unwrap();
        assert_eq!(signed_bytes[0], 1);
        assert_eq!(contents.info().bits, signed_bytes.len() as u64 * 8);
        let again = decode(&signed_bytes).unwrap();
        assert_eq!((again.set, again.form), (signed.set, signed.form), "{name}");
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err() || len == 5, "{name}: {len}");
        }
    }
    let narrow =
        encode("roaring", &Contents::new(Roaring::new([1].into_iter().collect()))).unwrap();
    assert_fails(decode_with("roaring", &narrow, &java), "expected 32 bits, as in the file");
    // The flag determines the order of the high halves.
    let all = json("roaring/java.json");
    let large = list(&all).last().unwrap();
    let mut swapped = hex(&large["hex"]);
    swapped[0] = 1;
    assert!(decode(&swapped).unwrap_err().to_string().contains("above the previous one"));
}

#[test]
fn values_are_tested_inserted_and_merged() {
    let mut one = Contents::new(Roaring::new([1, 2, 3].into_iter().collect()));
    let keys = [&2_i32.to_le_bytes()[..], &9_u64.to_le_bytes(), &(-1_i32).to_le_bytes(), b"x"];
    assert_eq!(answers(&one, &keys), [true, false, false, false]);
    assert!(insert(&mut one, &keys).is_err());
    let other = Contents::new(Roaring::new([1 << 40].into_iter().collect()));
    one.merge(&other).unwrap();
    let info = one.info();
    assert_eq!((info.items, info.rate_now), (5.0, 0.0), "those before the failing one are in");
    let written = encode("roaring", &one).unwrap();
    assert_eq!(decode(&written).unwrap().form, RoaringForm::Bits64, "values of 32 bits no longer");
}

#[test]
fn sets_move_between_bitmaps() {
    let array = Contents::new(java_bitmap::decode(&[0b110, 0, 0x80]).unwrap());
    let bytes = encode("roaring", &array).unwrap();
    let read = Contents::new(decode(&bytes).unwrap());
    assert_eq!(encode("java-bitmap", &read).unwrap(), [0b110, 0, 0x80]);
    assert_eq!(encode("redis-bits", &read).unwrap(), [0b0110_0000, 0, 1]);
    let wide = Contents::new(Roaring::new([1 << 32].into_iter().collect()));
    assert!(encode("redis-bits", &wide).unwrap_err().contains("at most 4294967295"));
}

#[test]
fn bitmaps_that_no_library_writes_are_refused() {
    let header = [0x3a, 0x30, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 16, 0, 0, 0];
    assert!(decode(&[&header[..], &[5, 0, 7, 0]].concat()).is_ok());
    for (values, expected) in [
        (&[7, 0, 5, 0][..], "container"),
        (&[5, 0, 5, 0], "container"),
        (&[5, 0], "truncated"),
        (&[5, 0, 7, 0, 0], "follow the end"),
    ] {
        let error = decode(&[&header[..], values].concat()).unwrap_err().to_string();
        assert!(error.contains(expected), "{values:?}: {error}");
    }
    // A run that ends beyond its container, and a run with fewer values than its header declares.
    for run in [[0xff, 0xff, 1, 0], [0, 0, 0, 0]] {
        let bytes = [&[0x3b, 0x30, 0, 0, 1, 0, 0, 1, 0, 1, 0][..], &run].concat();
        assert!(decode(&bytes).unwrap_err().to_string().contains("container"), "{run:?}");
    }
    // Eight bytes that declare four billion bitmaps.
    assert!(decode(&[0, 0, 0, 0, 1, 0, 0, 0]).unwrap_err().to_string().contains("truncated"));
}

#[test]
fn a_set_of_small_values_is_written_in_64_bits_if_asked_for() {
    let set = Contents::new(Roaring::new((0..10).collect()));
    let write = |set: &Contents, version: &str| {
        encode_with("roaring", set, &versioned(version)).map_err(|error| error.to_string())
    };
    let (narrow, wide) = (write(&set, "32").unwrap(), write(&set, "64").unwrap());
    assert_eq!(wide[..12], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(wide[12..], narrow);
    for (bytes, version, other) in [(&narrow, "32", "64"), (&wide, "64", "32")] {
        assert_eq!(decode_with("roaring", bytes, &versioned(version)).unwrap(), set);
        let read = decode_with("roaring", bytes, &versioned(other));
        assert_fails(read, &format!("expected {version} bits"));
    }
    assert!(write(&set, "16").unwrap_err().contains("expected 32 or 64"));
    let large = Contents::new(Roaring::new([1 << 32].into_iter().collect()));
    assert!(write(&large, "32").unwrap_err().contains("at most"));
    // A file with 64-bit keys that its values do not need is written with 64-bit keys again.
    let read = support::decode("roaring", &wide).unwrap();
    assert_eq!(encode("roaring", &read).unwrap(), wide);
}

/// The number of bitmaps of a file of 64 bits may be equal to a cookie of 32 bits.
#[test]
fn as_many_bitmaps_as_a_cookie_are_read_again() {
    for maps in [12_345, 12_346, 12_347, 12_347 + 65_536] {
        let set: CompressedSet = (0..maps).map(|high: u64| high << 32 | 7).collect();
        let bytes = encode("roaring", &Contents::new(Roaring::new(set.clone()))).unwrap();
        let read = decode(&bytes).unwrap();
        assert_eq!((read.set, read.form), (set, RoaringForm::Bits64), "{maps}");
    }
}
