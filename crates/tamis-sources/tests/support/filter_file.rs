//! A filter file.

use tamis::{AnyFilter, Hasher, Plan};
use tamis_formats::TamisFile;

/// Returns a filter file of these texts.
pub fn filter_file(plan: &Plan, texts: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
    for text in texts {
        filter.try_insert(&text).unwrap();
    }
    let mut bytes = Vec::new();
    TamisFile::new(filter).write_to(&mut bytes).unwrap();
    bytes
}
