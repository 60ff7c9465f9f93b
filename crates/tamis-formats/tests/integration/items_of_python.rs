//! The items of the Python package are the items of Rust. `test_doors.py` of the package reads and
//! writes the same file.

use std::fs;

use tamis::{Bloom, Hasher, Item as _};
use tamis_formats::TamisFile;

/// `ITEMS` of `test_doors.py`, in Rust, as hashes.
fn hashes(hasher: &Hasher) -> Vec<u64> {
    let texts = ["", "a", "https://example.org/", "中文", "é", "\0"].map(str::to_owned);
    let texts = texts.into_iter().chain(["x".repeat(200)]);
    let id = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10_u128.to_be_bytes();
    texts
        .map(|text| text.hash_by(hasher))
        .chain([
            b"\xff\x00".hash_by(hasher),
            0_u64.hash_by(hasher),
            42_u64.hash_by(hasher),
            (-1_i64).hash_by(hasher),
            (1_u64 << 63).hash_by(hasher),
            id.hash_by(hasher),
            ("user", 7_u64).hash_by(hasher),
            (1_u64, 2_u64).hash_by(hasher),
            ("a", b"b".as_slice(), ("c", 3_u64)).hash_by(hasher),
        ])
        .collect()
}

#[test]
fn equal_items_in_rust_and_python_give_equal_files() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tamis-python/tests/golden/items.tamis");
    let python = fs::read(path).unwrap();
    let mut filter = Bloom::for_items(1_000, 0.001).unwrap();
    let hashes = hashes(&filter.hasher());
    for &hash in &hashes {
        assert!(filter.insert_hash(hash));
    }
    assert!(!filter.contains("b"));
    let mut rust = Vec::new();
    let added = hashes.len() as u64;
    TamisFile { added, ..TamisFile::new(filter.into()) }.write_to(&mut rust).unwrap();
    assert!(rust == python, "the files differ");
}
