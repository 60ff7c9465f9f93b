//! Segments of a path template with names and other text, such as `{id}.json` and `{slug}-{id}`.
//!
//! A segment with one name has one value: the text between the prefix and the suffix. A segment with two names may have
//! several splits. Programs split the text `7-red-shoes` of `{id}-{slug}` differently: JAX-RS and Express end a name at
//! the first separator, Spring and Django at the last separator, and other programs split the text in their own code.
//! If the guard used one of the splits, the guard would refuse existing ids of the other programs. A name therefore has
//! several candidates, and an id passes if one of its candidates passes:
//!
//! ```text
//! {id}-{slug}     7-red-shoes      id: 7, 7-red
//! {slug}-{id}     red-shoes-7      id: 7, shoes-7
//! ```
//!
//! If the separator is no digit, at most one candidate is a positive integer or a UUID.

use std::borrow::Cow;
use std::ops::Range;

use crate::request::path::literal::{Comparison, Literal};
use crate::request::path::reading::{decoded, without_parameters};

/// The maximum number of candidates for one name. The shortest candidates count, so the limit excludes no id of up to
/// 255 bytes. A segment of 60 KB of dashes has 60 000 candidates.
const MAX_CANDIDATES: usize = 256;

/// A segment with one name or two names and other text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MixedSegment {
    pub(crate) prefix: Literal,
    /// The text between two names. The value is `None` if the segment has one name.
    pub(crate) separator: Option<Literal>,
    pub(crate) suffix: Literal,
}

impl MixedSegment {
    /// Returns the decoded text of the names: the segment of a path without the prefix and the suffix. Returns `None`
    /// if the segment does not match. The text of a name may be empty, because some programs accept an empty name.
    pub(crate) fn names_in<'p>(
        &self,
        part: &'p str,
        cuts_parameters: bool,
    ) -> Option<Cow<'p, [u8]>> {
        let cut = || self.within(decoded(without_parameters(part)));
        let whole = || self.within(decoded(part));
        match (cuts_parameters, &self.separator) {
            (true, _) => cut(),
            (false, None) => whole().or_else(cut),
            // For a servlet, the id of `1-999;-7` is 999. A separator after a semicolon must not hide this id.
            (false, Some(_)) => cut().or_else(whole),
        }
    }

    /// Tests whether a decoded segment of a path matches.
    pub(crate) fn matches(&self, segment: &[u8], comparison: Comparison) -> bool {
        self.range(segment, comparison).is_some()
    }

    /// Returns the text of the names in a decoded segment.
    fn within<'p>(&self, segment: Cow<'p, [u8]>) -> Option<Cow<'p, [u8]>> {
        let range = self.range(&segment, Comparison::IgnoreCase)?;
        Some(match segment {
            Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
            Cow::Owned(text) => Cow::Owned(text[range].to_vec()),
        })
    }

    /// Returns the range of the names in a decoded segment.
    fn range(&self, segment: &[u8], comparison: Comparison) -> Option<Range<usize>> {
        let start = self.prefix.bytes().len();
        let end = segment.len().checked_sub(self.suffix.bytes().len())?;
        let names = segment.get(start..end)?;
        let is_same = |text, literal: &Literal| comparison.is_same(text, literal.bytes());
        let has_separator = self.separator.as_ref().is_none_or(|separator| {
            names.windows(separator.bytes().len()).any(|text| is_same(text, separator))
        });
        let is_match = has_separator
            && is_same(&segment[..start], &self.prefix)
            && is_same(&segment[end..], &self.suffix);
        is_match.then_some(start..end)
    }

    /// Returns the rules for both names. Returns `None` if the segment has one name.
    pub(crate) fn splits(&self) -> Option<[Split; 2]> {
        let separator = self.separator.as_ref()?.bytes();
        Some([Side::Before, Side::After].map(|side| Split { separator: separator.to_vec(), side }))
    }
}

/// The rule for the candidates of a name in a segment with two names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    separator: Vec<u8>,
    side: Side,
}

/// The side of the separator on which the name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

impl Split {
    /// Returns the candidates for the name, the shortest candidate first. `names` is the text of both names. The time
    /// is linear in the length of the text.
    pub(crate) fn candidates<'t>(&self, names: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        let length = self.separator.len();
        let last = names.len().checked_sub(length);
        let starts = (0..last.map_or(0, |last| last + 1)).map(move |step| match self.side {
            Side::Before => step,
            Side::After => last.unwrap_or_default() - step,
        });
        let separators = starts
            .filter(move |&at| names[at..at + length].eq_ignore_ascii_case(&self.separator))
            .take(MAX_CANDIDATES);
        separators.map(move |at| match self.side {
            Side::Before => &names[..at],
            Side::After => &names[at + length..],
        })
    }

    /// Returns the shortest candidate.
    pub(crate) fn shortest(&self, names: &[u8]) -> Vec<u8> {
        self.candidates(names).next().map(<[u8]>::to_vec).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn mixed(prefix: &str, separator: Option<&str>, suffix: &str) -> MixedSegment {
        let separator = separator.map(Literal::new);
        MixedSegment { prefix: Literal::new(prefix), separator, suffix: Literal::new(suffix) }
    }

    /// Returns all texts of up to five characters that the templates of the test distinguish.
    fn texts() -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut longest = texts.clone();
        for _ in 0..5 {
            let longer = longest
                .iter()
                .flat_map(|text| ["-", "a", "A", "."].map(|it| format!("{text}{it}")));
            longest = longer.collect();
            texts.extend_from_slice(&longest);
        }
        texts
    }

    /// Returns all parts of a text.
    fn parts(text: &str) -> impl Iterator<Item = &str> {
        (0..=text.len()).flat_map(move |end| (0..=end).map(move |start| &text[start..end]))
    }

    #[test]
    fn each_split_has_its_candidates() {
        for (prefix, separator, suffix) in [
            ("", "-", ""),
            ("a", "-", ""),
            ("", "--", "."),
            ("", "a", "a"),
            ("-", "-", "-"),
            ("", "-a", ""),
        ] {
            let mixed = mixed(prefix, Some(separator), suffix);
            let [before, after] = mixed.splits().unwrap();
            for text in texts() {
                let is_split = |one: &str, other: &str| {
                    format!("{prefix}{one}{separator}{other}{suffix}").eq_ignore_ascii_case(&text)
                };
                let (mut ones, mut others) = (BTreeSet::new(), BTreeSet::new());
                for one in parts(&text) {
                    for other in parts(&text).filter(|other| is_split(one, other)) {
                        ones.insert(one.as_bytes());
                        others.insert(other.as_bytes());
                    }
                }
                let names = mixed.names_in(&text, false);
                assert_eq!(
                    names.is_some(),
                    !ones.is_empty(),
                    "{prefix} {separator} {suffix}: {text}"
                );
                let Some(names) = names else { continue };
                for (split, expected) in [(&before, ones), (&after, others)] {
                    let found: Vec<&[u8]> = split.candidates(&names).collect();
                    assert!(found.is_sorted_by_key(|id| id.len()), "{text}: {found:?}");
                    let count = found.len();
                    let found: BTreeSet<&[u8]> = found.into_iter().collect();
                    // Letters of equal names may differ in case.
                    let lower = |ids: &BTreeSet<&[u8]>| -> BTreeSet<Vec<u8>> {
                        ids.iter().map(|id| id.to_ascii_lowercase()).collect()
                    };
                    assert_eq!((count, lower(&found)), (found.len(), lower(&expected)), "{text}");
                }
            }
        }
    }

    #[test]
    fn one_name_has_one_value() {
        for (prefix, suffix) in [("", "."), ("a", ""), ("a", "a"), ("-a", ".a")] {
            let mixed = mixed(prefix, None, suffix);
            assert_eq!(mixed.splits(), None);
            for text in texts() {
                let is_value =
                    |id: &&str| format!("{prefix}{id}{suffix}").eq_ignore_ascii_case(&text);
                let expected = parts(&text).find(is_value).map(str::to_ascii_lowercase);
                let found = mixed.names_in(&text, false);
                let found = found.map(|id| String::from_utf8(id.to_ascii_lowercase()).unwrap());
                assert_eq!(found, expected, "{prefix} {suffix}: {text}");
            }
        }
    }

    #[test]
    fn a_semicolon_hides_no_id_of_a_servlet() {
        let names = |mixed: &MixedSegment, part: &str, cuts| {
            let names = mixed.names_in(part, cuts)?;
            Some(String::from_utf8(names.into_owned()).unwrap())
        };
        let json = mixed("", None, ".json");
        for (part, whole, cut) in [
            ("7.json;v=1", Some("7"), Some("7")),
            ("7;v=1.json", Some("7;v=1"), None),
            ("9.json;7.json", Some("9.json;7"), Some("9")),
            ("7%3B.json", Some("7;"), Some("7;")),
        ] {
            assert_eq!(names(&json, part, false).as_deref(), whole, "{part}");
            assert_eq!(names(&json, part, true).as_deref(), cut, "{part}");
        }
        let slug = mixed("", Some("-"), "");
        for (part, whole, cut) in [
            ("1-999;-7", Some("1-999"), Some("1-999")),
            ("red;x-7", Some("red;x-7"), None),
            ("red-7;v=1", Some("red-7"), Some("red-7")),
        ] {
            assert_eq!(names(&slug, part, false).as_deref(), whole, "{part}");
            assert_eq!(names(&slug, part, true).as_deref(), cut, "{part}");
        }
    }

    #[test]
    fn a_segment_of_dashes_has_few_candidates() {
        let dashes = "-".repeat(60_000);
        let mixed = mixed("", Some("-"), "");
        let names = mixed.names_in(&dashes, false).unwrap();
        for split in mixed.splits().unwrap() {
            let lengths: Vec<usize> = split.candidates(&names).map(<[u8]>::len).collect();
            assert_eq!(lengths, (0..256).collect::<Vec<_>>());
        }
    }
}
