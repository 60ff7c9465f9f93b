//! Each release must read these files and write equal ones.

use tamis::{AnyFilter, Hasher, Kind, Plan};
use tamis_formats::TamisFile;

/// Returns the expected content of each golden file, as `tests/golden/tamis/README.md` describes
/// it.
fn golden() -> Vec<(&'static str, TamisFile)> {
    [
        ("split-block.tamis", Kind::SplitBlock, Hasher::xxh3(0), 100, 0.01),
        ("split-block-fold.tamis", Kind::SplitBlock, Hasher::fold(5), 100, 0.01),
        ("split-block-mix.tamis", Kind::SplitBlock, Hasher::mix(5), 100, 0.01),
        ("parquet.tamis", Kind::Parquet, Hasher::xxh64(0), 100, 0.01),
        ("classic.tamis", Kind::Classic, Hasher::sip13([1, 2]), 100, 0.001),
        ("counting.tamis", Kind::Counting, Hasher::xxh3(0), 100, 0.01),
        ("cuckoo.tamis", Kind::Cuckoo, Hasher::xxh3(0), 100, 0.01),
        ("growing.tamis", Kind::Growing, Hasher::xxh3(0), 100, 0.01),
        ("window.tamis", Kind::Window, Hasher::xxh3(0), 100, 0.01),
    ]
    .map(|(name, kind, hasher, items, rate)| {
        let plan = Plan::for_kind(kind, items, rate).unwrap();
        let mut file = TamisFile::new(AnyFilter::from_plan(&plan, hasher).unwrap());
        for item in 0..items {
            file.filter.try_insert(&format!("item {item}")).unwrap();
        }
        file.added = items;
        file.metadata.insert("source", "golden").unwrap();
        file.metadata.insert("说明", "一百个条目").unwrap();
        (name, file)
    })
    .into()
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(crate::golden_data::path("tamis").join(name)).unwrap()
}

#[test]
fn golden_files_are_read_as_they_were_written() {
    for (name, expected) in golden() {
        let file = TamisFile::decode(&read(name)).unwrap();
        assert_eq!(file, expected, "{name}");
        assert!((0..100).all(|item| file.filter.contains(&format!("item {item}"))), "{name}");
    }
}

#[test]
fn golden_files_are_written_again_byte_for_byte() {
    for (name, file) in golden() {
        let mut bytes = Vec::new();
        file.write_to(&mut bytes).unwrap();
        assert!(bytes == read(name), "{name}: the format has changed");
    }
}
