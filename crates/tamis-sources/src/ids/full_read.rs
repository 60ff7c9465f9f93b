//! Counts the ids of a full read.
//!
//! A filter counts an id as new if the id changes a bit. A few new ids change no bit, because other ids have set all of
//! their bits: these ids are false positives of the filter. The rows of the full read show how many ids were not
//! counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a full read. All threads of the full read share the counts.
#[derive(Debug, Default)]
pub(crate) struct FullRead {
    /// The number of rows with an id.
    rows: AtomicU64,
    /// The number of rows with an id that changed no bit of the filter.
    unchanged: AtomicU64,
    /// The number of ids that changes have inserted during the full read. A later row with one of these ids changes no
    /// bit.
    inserted: AtomicU64,
}

impl FullRead {
    /// Counts rows of the full read. `new` is the number of rows that changed a bit.
    pub(crate) fn count_rows(&self, rows: u64, new: u64) {
        // Relaxed: the numbers publish no other data. The caller of `uncounted` ends the full read first.
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.unchanged.fetch_add(rows - new, Ordering::Relaxed);
    }

    /// Counts ids that a change has inserted, and that changed a bit.
    pub(crate) fn count_inserted(&self, new: u64) {
        self.inserted.fetch_add(new, Ordering::Relaxed);
    }

    /// Returns the number of ids that the filter has not counted as new. `rate` is the planned false positive rate of
    /// the filter.
    ///
    /// If more rows changed no bit than the rate explains, the source has rows with equal ids. Then the function returns
    /// 0, because the number of different ids is unknown. If the source has fewer rows with equal ids, each of these rows
    /// counts as an id.
    pub(crate) fn uncounted(&self, rate: f64) -> u64 {
        let rows = self.rows.load(Ordering::Relaxed);
        let unchanged = self.unchanged.load(Ordering::Relaxed);
        let unchanged = unchanged.saturating_sub(self.inserted.load(Ordering::Relaxed));
        if unchanged as f64 <= rows as f64 * rate { unchanged } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_change_count_if_the_rate_explains_them() {
        for (rows, new, inserted, expected) in [
            (1_000_000, 999_961, 0, 39),
            (1_000_000, 999_961, 9, 30),
            (1_000_000, 999_961, 50, 0),
            (1_000_000, 1_000_000, 0, 0),
            // The source has rows with equal ids.
            (1_000_000, 500_000, 0, 0),
            (2, 1, 0, 0),
            (0, 0, 3, 0),
        ] {
            let counts = FullRead::default();
            counts.count_rows(rows, new);
            counts.count_inserted(inserted);
            assert_eq!(counts.uncounted(0.001), expected, "{rows} {new} {inserted}");
        }
    }
}
