//! Loads ids into a generation in batches.

use tamis::PlanError;

use crate::ids::generation::Generation;

/// The number of ids in one batch insert.
const BATCH: usize = 1024;

/// Buffers the keys of ids, and loads the keys into a generation in batches. One batch is about four times as fast as
/// one insert for each key. The caller must call [`flush`](Self::flush) at the end.
pub(crate) struct Batch<'g> {
    generation: &'g Generation,
    hashes: Vec<u64>,
}

impl<'g> Batch<'g> {
    pub(crate) fn new(generation: &'g Generation) -> Self {
        Self { generation, hashes: Vec::with_capacity(BATCH) }
    }

    /// Loads a key. `value` is the integer value of the id, if the id is an integer.
    pub(crate) fn load_key(&mut self, key: &[u8], value: Option<i64>) -> Result<(), PlanError> {
        self.hashes.extend(self.generation.prepare_load(key, value));
        if self.hashes.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Loads the buffered keys.
    pub(crate) fn flush(&mut self) -> Result<(), PlanError> {
        let loaded = self.generation.load_hashes(&self.hashes);
        self.hashes.clear();
        loaded
    }
}
