//! The usual names of the kinds of filters, as the page shows them.
//!
//! Replies such as that of `TM.INFO` name a kind by a word for programs; the page names it as people do. Its
//! translations are in `console/words.js`, by these names.

/// A kind, and its usual names: of a filter that refuses adds when it is full, and of one that does not.
const NAMES: [(&str, &str, &str); 9] = [
    ("split-block", "Bloom", "Bloom"),
    ("parquet", "Bloom, Parquet", "Bloom, Parquet"),
    ("classic", "Bloom, classic", "Bloom, classic"),
    ("expandable", "Bloom", "Bloom, growing"),
    ("redisbloom", "Bloom", "Bloom, growing"),
    ("cuckoo", "cuckoo", "cuckoo"),
    ("rediscuckoo", "cuckoo", "cuckoo"),
    ("counting", "counting", "counting"),
    ("window", "window", "window"),
];

/// Returns the usual name of a kind: its own word if that is usual, as `growing` is.
pub(super) fn usual_name(kind: &'static str, refuses: bool) -> &'static str {
    let row = NAMES.iter().find(|(of, ..)| *of == kind);
    row.map_or(kind, |(_, full, growing)| if refuses { full } else { growing })
}

#[cfg(test)]
mod tests {
    use tamis::Kind;
    use tamis_commands::{Expandable, Facts, Settings, Value};

    use super::*;

    #[test]
    fn a_bloom_filter_says_whether_it_grows() {
        for (expansion, name) in [(None, "Bloom"), (Some(2), "Bloom, growing")] {
            let filter = Expandable::reserve(100, 0.01, expansion).unwrap();
            let value = Value::Bloom(Box::new(filter));
            let facts = Facts::of(&value, &Settings::default(), 0).unwrap();
            assert_eq!(usual_name(facts.kind, facts.refuses), name);
        }
    }

    #[test]
    fn every_usual_name_has_a_translation() {
        let words = include_str!("../../console/words.js");
        let kinds = [Kind::SplitBlock, Kind::Classic, Kind::Growing, Kind::Cuckoo];
        let others = [Kind::Counting, Kind::Window, Kind::Parquet].map(Kind::name);
        let names = NAMES.iter().flat_map(|(_, full, growing)| [*full, *growing]);
        for name in names
            .chain(kinds.map(|kind| usual_name(kind.name(), false)))
            .chain(others.map(|kind| usual_name(kind, false)))
        {
            assert!(words.contains(&format!("\"kind.{name}\":")), "{name}");
        }
    }
}
