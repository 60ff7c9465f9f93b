//! Counts repeated records in little memory. A count is never too low and seldom too high.
//!
//! The structure is a count-min sketch with conservative update (Cormode and Muthukrishnan 2005;
//! Estan and Varghese 2002). A record has one cell in each of four rows, and the smallest of the
//! four cells is the count of the record. An addition raises only the cells that are lower than the
//! new count. A count is too high only if other records share all four cells of the record.

use tamis::{Bitmap, Bits as _, BitsMut as _, OutOfMemory};

/// The number of rows. Each row has one cell for every record.
const ROWS: usize = 4;

/// Counts of records, addressed by their hashes.
pub struct Sketch {
    // Each word holds two cells. A large bitmap is memory-mapped, so the system provides each page
    // at the first access to the page.
    cells: Bitmap,
    row_cells: u64,
}

impl Sketch {
    /// Creates a sketch of at most `max_bytes` with all counts zero.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be allocated.
    pub fn new(max_bytes: u64) -> Result<Self, OutOfMemory> {
        let row_cells = (max_bytes / 4 / ROWS as u64).max(2) / 2 * 2;
        let cells = Bitmap::zeroed(row_cells * ROWS as u64 * 32)?;
        Ok(Self { cells, row_cells })
    }

    /// Returns the indices of the cells of `hash`.
    fn places(&self, hash: u64) -> [usize; ROWS] {
        std::array::from_fn(|row| {
            // Each row uses a different part of the hash. The multiplication spreads the part of
            // the row over all bits.
            let mixed = hash.rotate_left(16 * row as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let at = (u128::from(mixed) * u128::from(self.row_cells)) >> 64;
            row * self.row_cells as usize + at as usize
        })
    }

    fn cell(&self, place: usize) -> u32 {
        (self.cells.words()[place / 2] >> (place % 2 * 32)) as u32
    }

    /// Adds `times` to the count of `hash`.
    pub fn add(&mut self, hash: u64, times: u64) {
        let places = self.places(hash);
        let count = u64::from(self.least(&places)).saturating_add(times);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        for place in places {
            if self.cell(place) < count {
                let shift = place % 2 * 32;
                let word = &mut self.cells.words_mut()[place / 2];
                *word = *word & !(u64::from(u32::MAX) << shift) | u64::from(count) << shift;
            }
        }
    }

    /// Returns the count of `hash`. The count is never too low.
    pub fn count(&self, hash: u64) -> u64 {
        self.least(&self.places(hash)).into()
    }

    fn least(&self, places: &[usize; ROWS]) -> u32 {
        places.iter().map(|&place| self.cell(place)).min().expect("there are rows")
    }

    /// Returns the probability that a record that was never added has a count above zero. The
    /// method reads all cells.
    pub fn rate(&self) -> f64 {
        let taken = |row: usize| {
            let row_words = (self.row_cells / 2) as usize;
            let words = &self.cells.words()[row * row_words..][..row_words];
            let halves = words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
            halves.filter(|&cell| cell > 0).count() as f64 / self.row_cells as f64
        };
        (0..ROWS).map(taken).product()
    }

    /// Returns the memory of the cells in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.row_cells * ROWS as u64 * 4
    }
}

#[cfg(test)]
mod tests {
    use tamis::Hasher;

    use super::*;

    #[test]
    fn counts_are_never_too_low_and_as_seldom_too_high_as_said() {
        let mut sketch = Sketch::new(1 << 20).unwrap();
        let hash = |i: u64| Hasher::default().hash_item(&i);
        (0..30_000).for_each(|i| sketch.add(hash(i), i % 5 + 1));
        let too_high = (0..30_000).filter(|&i| {
            assert!(sketch.count(hash(i)) > i % 5);
            sketch.count(hash(i)) > i % 5 + 1
        });
        let too_high = too_high.count() as f64;
        let absent = (30_000..130_000).filter(|&i| sketch.count(hash(i)) > 0).count() as f64;
        let expected = sketch.rate() * 1e5;
        assert!((absent - expected).abs() < 5.0 * expected.sqrt(), "{absent} {expected}");
        assert!(expected > 50.0 && too_high < sketch.rate() * 3e4 + 50.0, "{too_high} {expected}");
        assert!(sketch.memory_bytes() <= 1 << 20);
    }

    #[test]
    fn a_count_ends_at_the_most_that_a_cell_holds() {
        let mut sketch = Sketch::new(64).unwrap();
        sketch.add(7, u64::MAX);
        sketch.add(7, 1);
        assert_eq!(sketch.count(7), u64::from(u32::MAX));
    }
}
