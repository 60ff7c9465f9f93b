//! The set of the records of a window, exact or approximate.

use serde::Serialize;
use tamis::{Answers, Plan};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::{HumanCount, Rate};
use crate::commands::dedup::digest::Width;
use crate::commands::dedup::seen::Accuracy;
use crate::commands::dedup::window::filter::WindowFilter;
use crate::commands::dedup::window::ring::Ring;
use crate::exit::Failure;

/// The parameters of a window.
#[derive(Clone, Debug)]
pub struct WindowShape {
    /// The length of the window as text.
    pub span: String,
    /// The number of slices.
    pub slices: u32,
    /// If true, a repeat restarts the window of its record.
    pub refreshes: bool,
    /// The memory limit of the records in the window, in bytes.
    pub max_bytes: u64,
}

/// The records of a window.
pub struct Recent<D: Width> {
    held: Held<D>,
    shape: WindowShape,
    // The current slice, or `None` before the first record with a time.
    slice: Option<u64>,
    distinct: u64,
    hashes: Vec<u64>,
}

enum Held<D: Width> {
    Exact {
        ring: Ring<D>,
        /// The expected number of new records that were dropped because their digest equals the
        /// digest of another record.
        lost: f64,
    },
    Approx(WindowFilter),
}

/// The statistics of a window at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowStats {
    /// The length of the window as text.
    pub span: String,
    /// The number of slices.
    pub slices: u32,
    /// The number of records in the window at the end of the run. For an approximate run, the
    /// number is an estimate.
    pub remembered: u64,
    /// True if an approximate window ever held more records than planned.
    pub over_rate: bool,
}

impl<D: Width> Recent<D> {
    /// Creates an empty window. If `planned` contains a number of distinct records and a rate, the
    /// window is approximate. If `planned` is `None`, the window is exact and compares digests.
    ///
    /// # Errors
    ///
    /// Returns an error if no filter has this plan, or if the memory is too small for the window.
    pub fn new(shape: WindowShape, planned: Option<(u64, f64)>) -> Result<Self, Failure> {
        let WindowShape { slices, refreshes, max_bytes, .. } = shape;
        let held = match planned {
            None => Held::Exact { ring: Ring::new(slices, refreshes, max_bytes), lost: 0.0 },
            Some((items, rate)) => {
                let plan = Plan::window(items, rate, slices).map_err(Failure::new)?;
                if plan.bytes() > max_bytes {
                    return Err(Failure::new(format!(
                        "{} distinct lines in a window at a rate of {} take {}, and --memory \
                         leaves {}: give more --memory, a higher rate, or a shorter --window with \
                         fewer --items",
                        HumanCount(items),
                        Rate(rate),
                        ByteSize { bytes: plan.bytes() },
                        ByteSize { bytes: max_bytes },
                    )));
                }
                let filter = WindowFilter::new(&plan, slices, refreshes);
                Held::Approx(filter.map_err(Failure::new)?)
            }
        };
        Ok(Self { held, shape, slice: None, distinct: 0, hashes: Vec::new() })
    }

    /// Inserts the digests of records of one slice. Sets bit `i` of `new` if digest `i` was not in
    /// the window before its insertion. `slice` must not be before the latest slice. `None` means
    /// the latest slice, or the first slice if there is no latest slice.
    ///
    /// # Errors
    ///
    /// Returns an error if the digests exceed the memory.
    pub fn insert_each(
        &mut self,
        slice: Option<u64>,
        digests: &[D],
        new: &mut Answers,
    ) -> Result<(), Failure> {
        if let Some(slice) = slice {
            self.advance(slice);
        }
        match &mut self.held {
            Held::Exact { ring, lost } => {
                let before = ring.len();
                if ring.insert_each(digests, new).is_err() {
                    return Err(self.too_large());
                }
                // A new digest equals each digest in the window with a probability of 2⁻ʷ, where w
                // is the width in bits.
                let others = (before + ring.len()) as f64 / 2.0;
                *lost += new.count_ones() as f64 * others * (-f64::from(D::BITS)).exp2();
            }
            Held::Approx(filter) => {
                self.hashes.clear();
                self.hashes.extend(digests.iter().map(|digest| digest.hash64()));
                filter.insert_each(&self.hashes, new);
            }
        }
        self.distinct += new.count_ones() as u64;
        Ok(())
    }

    /// Advances the window until `slice` is the current slice.
    fn advance(&mut self, slice: u64) {
        // Records before the first record with a time belong to the slice of the first record with
        // a time.
        let present = self.slice.get_or_insert(slice);
        let passed = slice.saturating_sub(*present);
        if passed > 0 {
            *present = slice;
            match &mut self.held {
                Held::Exact { ring, .. } => ring.advance(passed),
                Held::Approx(filter) => filter.advance(passed),
            }
        }
    }

    fn too_large(&self) -> Failure {
        let accuracy = self.accuracy();
        // If the user gave no limit, the window is too large because the system has refused to
        // allocate memory.
        let bytes = if self.shape.max_bytes == u64::MAX {
            accuracy.memory_bytes
        } else {
            self.shape.max_bytes
        };
        Failure::new(format!(
            "a window of {} does not fit: its distinct lines fill {}; give more --memory, a \
             shorter --window, or be approximate with --approx",
            self.shape.span,
            ByteSize { bytes },
        ))
    }

    /// Returns the statistics of the window after the last record.
    pub fn finish(&mut self) -> WindowStats {
        let (remembered, over_rate) = match &mut self.held {
            Held::Exact { ring, .. } => (ring.remembered(), false),
            Held::Approx(filter) => {
                filter.measure();
                (filter.remembered(), filter.was_over_rate())
            }
        };
        WindowStats {
            span: self.shape.span.clone(),
            slices: self.shape.slices,
            remembered,
            over_rate,
        }
    }

    /// Returns the accuracy of the results so far.
    pub fn accuracy(&self) -> Accuracy {
        match &self.held {
            Held::Exact { ring, lost } => Accuracy {
                method: format!("in a window, exact by {}-bit hash", D::BITS),
                distinct: self.distinct,
                expected_lost: *lost,
                rates: None,
                memory_bytes: ring.memory_bytes(),
            },
            Held::Approx(filter) => Accuracy {
                method: "in a window, approximate".into(),
                distinct: self.distinct,
                expected_lost: filter.expected_lost(),
                rates: Some((filter.highest_rate(), filter.target())),
                memory_bytes: filter.memory_bytes(),
            },
        }
    }
}
