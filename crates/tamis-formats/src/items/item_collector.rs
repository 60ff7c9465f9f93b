//! Collects the items of a filter, for formats that can only write a filter from all items at once.

use std::collections::HashSet;

use tamis::Answers;

use crate::errors::ChangeError;
use crate::filters::{FilterInfo, StoredFilter, answer_each};

/// Collects the distinct items of a filter until the filter is written.
///
/// The collector stores all items, with an overhead of about 50 bytes per item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemCollector {
    items: HashSet<Box<[u8]>>,
    format: &'static str,
}

impl ItemCollector {
    /// Creates an empty collector for the format named `format`.
    pub(crate) fn new(format: &'static str) -> Self {
        Self { items: HashSet::new(), format }
    }

    /// Returns the name of the format.
    pub(crate) fn format(&self) -> &'static str {
        self.format
    }

    /// Returns the items in sorted order, so that equal sets of items give equal files.
    pub(crate) fn sorted(&self) -> Vec<&[u8]> {
        let mut items: Vec<&[u8]> = self.items.iter().map(AsRef::as_ref).collect();
        items.sort_unstable();
        items
    }
}

impl StoredFilter for ItemCollector {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        answer_each(keys, answers, |key| self.items.contains(key));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        answer_each(keys, answers, |key| {
            !self.items.contains(key) && self.items.insert(key.into())
        });
        Ok(())
    }

    fn info(&self) -> FilterInfo {
        FilterInfo {
            layout: format!("items of a {} filter that is not written yet", self.format),
            items: self.items.len() as f64,
            ..FilterInfo::default()
        }
    }
}
