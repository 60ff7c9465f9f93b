//! Arrays of items, read without Python objects.

pub mod arrow;
pub mod buffer;

use std::ops::Range;

use pyo3::prelude::*;

use crate::keys::{Encoding, Keys};

/// An array of items. Several threads read parts of the array at the same time, without the GIL.
pub trait Source: Sync {
    /// Returns the number of rows.
    fn len(&self) -> usize;

    /// Reads rows into a batch.
    ///
    /// # Errors
    ///
    /// The exception for an item that the set cannot hold.
    fn read(&self, rows: Range<usize>, encoding: Encoding, batch: &mut Batch) -> PyResult<()>;
}

/// The rows of a part of an array.
pub struct Batch {
    /// The items of the rows that are not null, in order.
    pub keys: Keys,
    /// The rows that are null, counted from the first row of the batch, in order.
    pub nulls: Vec<usize>,
    /// Memory for copies of the array's bytes.
    pub bytes: Vec<u8>,
    /// Memory for integers of 64 bits.
    pub integers: Vec<u64>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new(encoding: Encoding) -> Self {
        let (nulls, bytes, integers) = (Vec::new(), Vec::new(), Vec::new());
        Self { keys: encoding.keys(), nulls, bytes, integers }
    }

    /// Removes the rows.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.nulls.clear();
    }
}
