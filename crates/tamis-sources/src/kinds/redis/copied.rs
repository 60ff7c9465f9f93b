//! Copies of filters with a foreign layout.

use tamis::Answers;
use tamis_commands::ScalableBloom;
use tamis_formats::{Contents, FilterInfo, Funnel};
use tamis_redis::RedisCopy;

use crate::ids::base::ForeignFilter;

/// A filter of any format.
#[derive(Debug)]
pub(super) struct Copied {
    contents: Contents,
    info: FilterInfo,
    funnel: Funnel,
}

impl Copied {
    /// Creates a copy. The function reads all bits. `funnel` converts the text of an id to the bytes that the filter
    /// hashes.
    pub(super) fn new(contents: Contents, funnel: Funnel) -> Self {
        Self { info: contents.info(), contents, funnel }
    }
}

impl ForeignFilter for Copied {
    fn contains(&self, id: &[u8]) -> bool {
        let mut scratch = Vec::new();
        // If the funnel cannot convert an id, no program has added the id.
        let Ok(key) = self.funnel.key(id, &mut scratch) else { return false };
        let mut answers = Answers::new();
        self.contents.contains_each(&[key], &mut answers);
        answers.iter().next() == Some(true)
    }

    fn items(&self) -> u64 {
        // The cast converts NaN to 0, and infinity to the maximum of `u64`.
        self.info.items.round() as u64
    }

    fn bytes(&self) -> u64 {
        if self.info.bytes > 0 { self.info.bytes } else { self.info.bits / 8 }
    }

    fn rate(&self) -> f64 {
        self.info.rate_planned.unwrap_or(self.info.rate_now)
    }

    fn estimate_rate(&self) -> f64 {
        self.info.rate_now
    }
}

impl ForeignFilter for RedisCopy {
    fn contains(&self, id: &[u8]) -> bool {
        self.contains(id)
    }

    fn items(&self) -> u64 {
        self.items()
    }

    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn rate(&self) -> f64 {
        self.rate()
    }

    fn estimate_rate(&self) -> f64 {
        self.estimate_rate()
    }
}

/// A filter of `BF.RESERVE` that has grown beyond its capacity. No file format can hold this filter.
#[derive(Debug)]
pub(super) struct Grown {
    pub(super) filter: ScalableBloom,
    /// The length of the serialized image in bytes.
    pub(super) bytes: u64,
}

impl ForeignFilter for Grown {
    fn contains(&self, id: &[u8]) -> bool {
        self.filter.contains_hash(self.filter.hasher().hash(id))
    }

    fn items(&self) -> u64 {
        self.filter.items()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn rate(&self) -> f64 {
        self.filter.rate()
    }

    fn estimate_rate(&self) -> f64 {
        self.filter.estimate_rate()
    }
}
