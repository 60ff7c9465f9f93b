//! The set of the records seen so far: an exact set of digests, or the filter that replaced the
//! set.

use tamis::{Answers, DigestSet, PlanError};

use crate::arguments::byte_size::ByteSize;
use crate::commands::dedup::approx::{Approx, Expected};
use crate::commands::dedup::digest::Width;
use crate::exit::Failure;

/// The memory limit, and the reaction when a set reaches the limit.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The memory limit of the set in bytes.
    pub max_bytes: u64,
    /// If true, the run fails at the limit instead of becoming approximate.
    pub is_exact: bool,
    /// The highest false positive rate that a filter should have.
    pub target: f64,
}

/// A set of digests of width `D`.
pub struct Seen<D: Width> {
    held: Held<D>,
    budget: Budget,
    hashes: Vec<u64>,
}

enum Held<D: Width> {
    Exact(DigestSet<D>),
    Approx(Approx),
}

/// The accuracy of the results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// The method of comparison as text.
    pub method: String,
    /// The number of distinct records.
    pub distinct: u64,
    /// The expected number of distinct records that were lost, and that `distinct` does not count.
    pub expected_lost: f64,
    /// For filters: the probability that the next new record is lost, and the rate that the user
    /// gave.
    pub rates: Option<(f64, f64)>,
    /// The memory of the set in bytes.
    pub memory_bytes: u64,
}

impl<D: Width> Seen<D> {
    /// Creates an empty exact set.
    pub fn exact(budget: Budget) -> Self {
        Self::of(Held::Exact(DigestSet::within(budget.max_bytes)), budget)
    }

    /// Creates an empty filter for `expected` records.
    ///
    /// # Errors
    ///
    /// Returns an error if the filter does not fit the budget.
    pub fn approx(budget: Budget, expected: Expected) -> Result<Self, Failure> {
        let approx = Approx::new(expected, budget.target, budget.max_bytes);
        Ok(Self::of(Held::Approx(approx.map_err(Failure::new)?), budget))
    }

    fn of(held: Held<D>, budget: Budget) -> Self {
        Self { held, budget, hashes: Vec::new() }
    }

    /// Inserts digests, and sets the bits in `new` of the new digests. Returns a message for the
    /// user if the set became a filter.
    ///
    /// # Errors
    ///
    /// Returns an error if the set exceeds the memory and must stay exact.
    pub fn insert_each(
        &mut self,
        digests: &[D],
        new: &mut Answers,
    ) -> Result<Option<String>, Failure> {
        let mut said = None;
        if let Held::Exact(set) = &mut self.held {
            match set.insert_each(digests, new) {
                Ok(()) => return Ok(None),
                Err(_) => said = Some(self.convert()?),
            }
        }
        if let Held::Approx(approx) = &mut self.held {
            self.hashes.clear();
            self.hashes.extend(digests.iter().map(|digest| digest.hash64()));
            approx.insert_each(&self.hashes, new).map_err(Failure::new)?;
        }
        Ok(said)
    }

    /// Returns the number of distinct records.
    pub fn distinct(&self) -> u64 {
        match &self.held {
            Held::Exact(set) => set.len(),
            Held::Approx(approx) => approx.items(),
        }
    }

    /// Sets the expected number of distinct records: see [`DigestSet::set_expected`]. The call has
    /// no effect on a filter.
    pub fn set_expected(&mut self, distinct: u64) {
        if let Held::Exact(set) = &mut self.held {
            set.set_expected(distinct);
        }
    }

    /// Converts the exact set to a filter.
    fn convert(&mut self) -> Result<String, Failure> {
        let Held::Exact(set) = &mut self.held else { unreachable!("called for an exact set") };
        let limit = ByteSize { bytes: self.budget.max_bytes };
        let distinct = set.len();
        if self.budget.is_exact {
            return Err(Failure::new(format!(
                "the exact set does not fit: {distinct} distinct records fill {limit}; give more \
                 --memory, or leave out --exact to go on with an approximate filter"
            )));
        }
        let set = std::mem::take(set);
        // If the user gave no limit, the set becomes a filter because the system has refused to
        // allocate memory.
        let bytes = self.budget.max_bytes.min(set.memory_bytes().max(1 << 20));
        let approx =
            Approx::from_set(set, bytes, self.budget.target).map_err(|error| match error {
                PlanError::TooSmall { .. } => {
                    Failure::new(format!("--memory {limit} is too little"))
                }
                other => Failure::new(other),
            })?;
        let rate = approx.rate();
        self.held = Held::Approx(approx);
        Ok(format!(
            "{distinct} distinct records fill the memory: going on with an approximate filter, at \
             first with a chance of {rate:.1e} to lose a new record"
        ))
    }

    /// Tests whether the set is a filter. A filter may report a new record as seen.
    pub fn is_approximate(&self) -> bool {
        matches!(self.held, Held::Approx(_))
    }

    /// Returns the accuracy of the results so far.
    pub fn accuracy(&self) -> Accuracy {
        match &self.held {
            Held::Exact(set) => Accuracy {
                method: format!("exact by {}-bit hash", D::BITS),
                distinct: set.len(),
                expected_lost: set.expected_collisions(),
                rates: None,
                memory_bytes: set.memory_bytes(),
            },
            Held::Approx(approx) => Accuracy {
                method: "approximate".into(),
                distinct: approx.items(),
                expected_lost: approx.expected_lost(),
                rates: Some((approx.rate(), approx.target())),
                memory_bytes: approx.memory_bytes(),
            },
        }
    }
}
