//! The filter kinds that the page shows, as IDs. `console/translations.js` contains a name for each
//! ID in each language.
//!
//! Replies such as the reply of `TM.INFO` name a kind by its implementation. The page uses one name
//! for several implementations. The page has two names for Bloom filters: one for filters that grow
//! and one for filters that do not grow. IDs never change, and the IDs sort in the same order as
//! the names.

/// A filter kind and its two IDs. The first ID is for a filter that rejects inserts when the filter
/// is full. The second ID is for a filter that accepts inserts at any fill.
const IDS: [(&str, &str, &str); 6] = [
    ("split-block", "bloom", "bloom"),
    ("parquet", "bloom-parquet", "bloom-parquet"),
    ("classic", "bloom-classic", "bloom-classic"),
    ("bloom (growing)", "bloom-growing", "bloom-growing"),
    ("bloom (RedisBloom)", "bloom", "bloom-growing"),
    ("cuckoo (RedisBloom)", "cuckoo", "cuckoo"),
];

/// Returns the ID of a kind. A kind that is not in the table is its own ID.
pub(super) fn kind_id(kind: &'static str, refuses: bool) -> &'static str {
    let row = IDS.iter().find(|(of, ..)| *of == kind);
    row.map_or(kind, |(_, full, growing)| if refuses { full } else { growing })
}

#[cfg(test)]
mod tests {
    use tamis::Kind;
    use tamis_commands::{ScalableBloom, Settings, Value};

    use super::*;

    #[test]
    fn the_id_of_a_bloom_filter_depends_on_whether_it_grows() {
        for (expansion, name) in [(None, "bloom"), (Some(2), "bloom-growing")] {
            let filter = ScalableBloom::reserve(100, 0.01, expansion).unwrap();
            let value = Value::Bloom(Box::new(filter));
            let info = value.info(&Settings::default(), 0).unwrap();
            assert_eq!(kind_id(info.kind, info.refuses), name);
        }
    }

    #[test]
    fn every_kind_id_has_a_translation() {
        let translations = include_str!("../../console/translations.js");
        let kinds = [Kind::SplitBlock, Kind::Classic, Kind::Growing, Kind::Cuckoo];
        let others = [Kind::Counting, Kind::Window, Kind::Parquet].map(Kind::name);
        let names = IDS.iter().flat_map(|(_, full, growing)| [*full, *growing]);
        for name in names
            .chain(kinds.map(|kind| kind_id(kind.name(), false)))
            .chain(others.map(|kind| kind_id(kind, false)))
        {
            assert!(translations.contains(&format!("\"kind.{name}\":")), "{name}");
        }
    }
}
