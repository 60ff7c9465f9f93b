//! Any bytes are a filter of a format, or an error. A filter that was decoded keeps its items, and its
//! encoding is decoded to the same filter.

use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, Format};
use xxhash_rust::xxh3::xxh3_64;

/// One of this number of inputs computes rates, which takes up to 30 ms.
const RATED: u64 = 32;

const KEYS: [&[u8]; 6] = [b"", b"a", b"item", &[0; 4], &[7; 8], &[0x80; 40]];

pub(crate) fn run(format: &Format, bytes: &[u8]) {
    let _ = Format::of(bytes);
    let is_rated = xxh3_64(bytes).is_multiple_of(RATED);
    for told in [
        DecodeOptions::default(),
        DecodeOptions { items: Some(100), rate: Some(0.02), ..DecodeOptions::default() },
    ] {
        let Ok(mut contents) = (format.decode)(bytes, &told) else { continue };
        comes_back(format, &contents, &told);
        if is_rated {
            change(format, &mut contents, &told);
        }
        let other = contents.clone();
        let _ = contents.merge(&other);
        contents.contains_each(&KEYS, &mut Answers::new());
    }
}

/// Computes the rates of a filter, and inserts items.
fn change(format: &Format, contents: &mut Contents, told: &DecodeOptions) {
    let info = contents.info();
    let mut answers = Answers::new();
    // A filter without bits makes room for the capacity in its file at the first insert, as the original
    // program does. The capacity may be large.
    if info.bits > 0 && contents.insert_each(&KEYS, &mut answers).is_ok() {
        contents.contains_each(&KEYS, &mut answers);
        assert_eq!(answers.count_ones(), KEYS.len(), "an inserted item is found");
        comes_back(format, contents, told);
    }
}

fn comes_back(format: &Format, contents: &Contents, told: &DecodeOptions) {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    if (format.encode)(contents, told, &mut once).is_ok() {
        let back = (format.decode)(&once, told).expect("an encoding can be decoded");
        (format.encode)(&back, told, &mut twice).expect("it was encoded before");
        assert!(once == twice, "the same filter");
    }
}
