//! Items of a format that is written once, from all of its items: they wait here until then.

use std::collections::HashSet;
use std::io;

use tamis::Answers;

use crate::contents::{FilterInfo, answer_each};
use crate::error::EncodeError;

/// The distinct items of a filter that is to be written.
///
/// Memory: all items and some 50 bytes for each.
#[derive(Clone, Debug)]
pub struct ItemCollector {
    items: HashSet<Box<[u8]>>,
    what: &'static str,
    write: Write,
}

/// Writes the filter of items, which are sorted.
pub(crate) type Write = fn(
    items: &[&[u8]],
    options: &crate::decode_options::DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError>;

impl PartialEq for ItemCollector {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what && self.items == other.items
    }
}

impl ItemCollector {
    /// Starts an empty set for the format `what`.
    pub(crate) fn new(what: &'static str, write: Write) -> Self {
        Self { items: HashSet::new(), what, write }
    }

    /// Returns the name of the format.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    pub(crate) fn contains_each(&self, keys: &[impl AsRef<[u8]>], answers: &mut Answers) {
        answer_each(keys, answers, |key| self.items.contains(key));
    }

    pub(crate) fn insert_each(&mut self, keys: &[impl AsRef<[u8]>], answers: &mut Answers) {
        answer_each(keys, answers, |key| {
            !self.items.contains(key) && self.items.insert(key.into())
        });
    }

    pub(crate) fn info(&self) -> FilterInfo {
        FilterInfo {
            rule: format!("items of a {} that is not written yet", self.what),
            items: self.items.len() as f64,
            ..FilterInfo::default()
        }
    }

    /// Writes the filter. Equal items give equal bytes.
    pub(crate) fn write(
        &self,
        options: &crate::decode_options::DecodeOptions,
        out: &mut dyn io::Write,
    ) -> Result<(), EncodeError> {
        let mut items: Vec<&[u8]> = self.items.iter().map(AsRef::as_ref).collect();
        items.sort_unstable();
        (self.write)(&items, options, out)
    }
}
