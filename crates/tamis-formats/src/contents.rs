//! What a file of any format holds, for programs that find out only at run time.

use std::fmt;

use tamis::{Answers, Filter as _, Merge as _, OutOfMemory, TryInsert as _};

use crate::flat::FlatFilter;
use crate::integers::IntegerBitmap;
use crate::layers::Layers;
use crate::my_bloom_filter::MyBloomFilter;
use crate::roaring::Roaring;
use crate::tamis_file::TamisFile;

/// What a file of any format holds. The kind is matched once a batch, not once an item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Contents {
    /// A filter of this library.
    Tamis(TamisFile),
    /// One run of bits and a rule.
    Flat(FlatFilter),
    /// An exact set of integers, a bit each.
    Integers(IntegerBitmap),
    /// `MyBloomFilter` of Java articles.
    MyBloomFilter(MyBloomFilter),
    /// Filters that know for how much they were made, one behind the other.
    Layers(Layers),
    /// An exact set of integers, compressed.
    Roaring(Roaring),
}

/// All there is to tell of what a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// What it is, in a few words: the hash and the rule.
    pub rule: String,
    /// How many bits it has.
    pub bits: u64,
    /// How many probes an item has, if that is one number.
    pub probes: Option<u32>,
    /// The share of bits that are set.
    pub fill: f64,
    /// About how many distinct items are in; infinite if there is no telling.
    pub items: f64,
    /// The rate at which it takes absent items for present ones now; 0 for an exact set.
    pub rate: f64,
    /// What else the format says, as names and values in the order in which they are shown.
    pub more: Vec<(&'static str, String)>,
    /// What a user should be warned of, each a line.
    pub warnings: Vec<String>,
}

/// Why items could not be inserted, or filters not be merged.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChangeError {
    /// The format or the original cannot do it; the text says why, and what to do.
    Refused(Box<str>),
    /// The memory is not there.
    Memory(OutOfMemory),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Refused(why) => f.write_str(why),
            ChangeError::Memory(OutOfMemory { bytes }) => {
                write!(f, "{bytes} more bytes of memory are not there")
            }
        }
    }
}

impl std::error::Error for ChangeError {}

impl ChangeError {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        ChangeError::Refused(why.into().into())
    }
}

impl Contents {
    /// Tells for many items, each as the bytes that the original hashes, whether they may be in.
    pub fn contains_each<K: AsRef<[u8]>>(&self, keys: &[K], answers: &mut Answers) {
        match self {
            Contents::Tamis(file) => {
                let hashes = hashes(file, keys);
                file.filter.contains_hashes(&hashes, answers.reset(keys.len()));
            }
            Contents::Flat(filter) => filter.contains_each(keys, answers),
            Contents::Integers(set) => set.contains_each(keys, answers),
            Contents::MyBloomFilter(filter) => filter.contains_each(keys, answers),
            Contents::Layers(layers) => layers.contains_each(keys, answers),
            Contents::Roaring(set) => set.contains_each(keys, answers),
        }
    }

    /// Inserts many items in order; tells which were new.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if there is no room, or the original would fail; items before the one that failed are in then.
    pub fn insert_each<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        answers: &mut Answers,
    ) -> Result<(), ChangeError> {
        match self {
            Contents::Tamis(file) => {
                let hashes = hashes(file, keys);
                let inserted = file.filter.try_insert_hashes(&hashes, answers.reset(keys.len()));
                let count = inserted.err().map_or(keys.len(), |error| error.inserted);
                file.added = file.added.saturating_add(count as u64);
                inserted.map_err(|error| ChangeError::refused(error.to_string()))
            }
            Contents::Flat(filter) => {
                filter.insert_each(keys, answers);
                Ok(())
            }
            Contents::Integers(set) => set.insert_each(keys, answers),
            Contents::MyBloomFilter(filter) => filter.insert_each(keys, answers),
            Contents::Layers(layers) => layers.insert_each(keys, answers),
            Contents::Roaring(set) => set.insert_each(keys, answers),
        }
    }

    /// Takes in all items of another.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if they do not fit together; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), ChangeError> {
        let is_merged = match (&mut *self, other) {
            (Contents::Tamis(one), Contents::Tamis(other)) => {
                let refused = |error: tamis::MergeError| ChangeError::refused(error.to_string());
                one.filter.merge(&other.filter).map_err(refused)?;
                one.added = one.added.saturating_add(other.added);
                true
            }
            (Contents::Flat(one), Contents::Flat(other)) => one.merge(other),
            (Contents::Integers(one), Contents::Integers(other)) => {
                one.merge(other).map(|()| true)?
            }
            (Contents::Layers(one), Contents::Layers(other)) => one.merge(other),
            (Contents::Roaring(one), Contents::Roaring(other)) => {
                one.merge(other);
                true
            }
            (_, _) => false,
        };
        if is_merged {
            return Ok(());
        }
        let (one, other) = (self.facts(), other.facts());
        Err(ChangeError::refused(format!(
            "not of one layout: {} against {}",
            one.layout(),
            other.layout()
        )))
    }

    /// Reads from the bits what there is to tell. Linear time.
    #[must_use]
    pub fn facts(&self) -> Facts {
        match self {
            Contents::Flat(filter) => Facts {
                rule: filter.rule().to_string(),
                bits: filter.rule().bits(),
                probes: Some(filter.rule().probes()),
                fill: filter.fill(),
                items: filter.estimate_items(),
                rate: filter.estimate_rate(),
                warnings: filter.warnings(),
                ..Facts::default()
            },
            Contents::Integers(set) => set.facts(),
            Contents::MyBloomFilter(filter) => filter.facts(),
            Contents::Layers(layers) => layers.facts(),
            Contents::Roaring(set) => set.facts(),
            Contents::Tamis(file) => Facts {
                rule: file.filter.layout().to_string(),
                bits: file.filter.plan().bits(),
                fill: file.filter.fill(),
                items: file.filter.estimate_items(),
                rate: file.filter.estimate_rate(),
                ..Facts::default()
            },
        }
    }
}

impl Facts {
    fn layout(&self) -> String {
        match self.probes {
            Some(probes) => format!("{}, {probes} probes of {} bits", self.rule, self.bits),
            None => format!("{}, {} bits", self.rule, self.bits),
        }
    }
}

fn hashes(file: &TamisFile, keys: &[impl AsRef<[u8]>]) -> Vec<u64> {
    let hasher = file.filter.hasher();
    keys.iter().map(|key| hasher.hash(key.as_ref())).collect()
}
