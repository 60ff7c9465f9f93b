//! Any bytes are a filter of the format named by `TAMIS_FORMAT`, or an error; what is read keeps its items and is written so that
//! it is read again.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, Format};

static FORMAT: LazyLock<&'static Format> = LazyLock::new(|| {
    let name = std::env::var("TAMIS_FORMAT").expect("TAMIS_FORMAT names a format");
    Format::named(&name).unwrap_or_else(|| panic!("no format {name}"))
});

fuzz_target!(|bytes: &[u8]| {
    let _ = Format::of(bytes);
    for told in [
        DecodeOptions::default(),
        DecodeOptions { items: Some(100), rate: Some(0.02), ..DecodeOptions::default() },
    ] {
        if let Ok(contents) = (FORMAT.decode)(bytes, &told) {
            use_it(contents, &told);
        }
    }
});

fn use_it(mut contents: Contents, told: &DecodeOptions) {
    let _ = contents.info().warnings;
    comes_back(&contents, told);
    let keys = [&b""[..], b"a", b"item", &[0; 4], &[7; 8], &[0x80; 40]];
    let mut answers = Answers::new();
    contents.contains_each(&keys, &mut answers);
    // What has no bits yet makes room for as many items as its file says, as the original does: that may be much.
    if contents.info().bits > 0 && contents.insert_each(&keys, &mut answers).is_ok() {
        contents.contains_each(&keys, &mut answers);
        assert_eq!(answers.count_ones(), keys.len(), "an item that was inserted is in");
        comes_back(&contents, told);
    }
    let other = contents.clone();
    let _ = contents.merge(&other);
    contents.contains_each(&keys, &mut answers);
}

fn comes_back(contents: &Contents, told: &DecodeOptions) {
    let encode = FORMAT.encode;
    let mut bytes = Vec::new();
    if encode(contents, told, &mut bytes).is_ok() {
        let back = (FORMAT.decode)(&bytes, told).expect("what is written is read");
        // Not compared for equality: a NaN is not itself.
        assert_eq!(format!("{:?}", back.info()), format!("{:?}", contents.info()));
    }
}
