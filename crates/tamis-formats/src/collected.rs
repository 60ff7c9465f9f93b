//! Items of a format that is written once, from all of its items: they wait here until then.

use std::collections::HashSet;
use std::io;

use tamis::Answers;

use crate::contents::{Facts, answer_each};
use crate::error::EncodeError;

/// The distinct items of a filter that is to be written.
///
/// Memory: all items and some 50 bytes for each.
#[derive(Clone, Debug)]
pub struct Collected {
    items: HashSet<Box<[u8]>>,
    what: &'static str,
    write: Write,
}

/// Writes the filter of items, which are sorted.
pub(crate) type Write = fn(
    items: &[&[u8]],
    told: &crate::told::Told,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError>;

impl PartialEq for Collected {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what && self.items == other.items
    }
}

impl Collected {
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

    pub(crate) fn facts(&self) -> Facts {
        Facts {
            rule: format!("items of a {} that is not written yet", self.what),
            items: self.items.len() as f64,
            ..Facts::default()
        }
    }

    /// Writes the filter. Equal items give equal bytes.
    pub(crate) fn write(
        &self,
        told: &crate::told::Told,
        out: &mut dyn io::Write,
    ) -> Result<(), EncodeError> {
        let mut items: Vec<&[u8]> = self.items.iter().map(AsRef::as_ref).collect();
        items.sort_unstable();
        (self.write)(&items, told, out)
    }
}
