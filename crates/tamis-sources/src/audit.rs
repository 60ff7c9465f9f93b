//! Compares a set of ids with its source: each id of the source passes, and absent ids pass only at
//! the planned rate.
//!
//! The audit reads the source by itself, so it also finds ids that the set has missed. It makes
//! absent ids at random from a seed. Those that the filter contains are looked up in the source:
//! an id that exists is no absent one.

mod absent;
mod binomial;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::errors::source_error::SourceError;
use crate::ids::id_set::IdSet;
use crate::ids::state::SyncState;
use crate::source::audit_source::{AuditSource, canonical_row};
use absent::AbsentIds;

/// The settings of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// How many absent ids are tested.
    pub absent: u64,
    /// The same seed makes the same absent ids.
    pub seed: u64,
    /// How long the audit waits for refused ids that are new in the source. It should be the sync
    /// delay of the source.
    pub patience: Duration,
}

impl Default for AuditOptions {
    /// Returns 100 000 absent ids, the seed 1 and 10 seconds.
    fn default() -> Self {
        Self { absent: 100_000, seed: 1, patience: Duration::from_secs(10) }
    }
}

/// What an audit has found.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditReport {
    /// How well the guard knew the source at the end.
    pub state: SyncState,
    /// The number of ids of the source that were tested.
    pub present_checked: u64,
    /// The number of rows of the source that are no ids of the type.
    pub invalid_rows: u64,
    /// The number of ids of the source that the set refuses.
    pub present_refused: u64,
    /// Some of the refused ids, in their canonical text.
    pub refused_examples: Vec<Vec<u8>>,
    /// The number of absent ids that were tested.
    pub absent_checked: u64,
    /// The number of absent ids that the filter contains.
    pub absent_passed: u64,
    /// The planned rate of the filter, a probability.
    pub planned_rate: f64,
    /// The present rate of the filter, as its bits show it.
    pub estimated_rate: f64,
    /// The probability of `absent_passed` ids or more, if the planned rate is the true one. 1 if
    /// there are not more than expected.
    pub chance: f64,
}

/// Below this chance, the rate is too high. The normal distribution has it at 4.8 standard
/// deviations.
const LEAST_CHANCE: f64 = 1e-6;

/// How many refused ids are remembered, to look at them again.
const MAX_REFUSED: usize = 100_000;

/// How many refused ids a report has.
const MAX_EXAMPLES: usize = 10;

/// The time between two looks at refused ids.
const PAUSE: Duration = Duration::from_millis(50);

impl AuditReport {
    /// Returns the measured rate: the share of absent ids that the filter contains. 0 if none were
    /// tested.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.absent_passed as f64 / self.absent_checked.max(1) as f64
    }

    /// Tests whether no id of the source is refused.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.present_refused == 0
    }

    /// Tests whether the planned rate explains how many absent ids pass.
    #[must_use]
    pub fn is_rate_kept(&self) -> bool {
        self.chance >= LEAST_CHANCE
    }
}

/// Compares a set with its source. It reads the source twice: for the ids that exist, and for the
/// absent ids that the filter contains. If ids are refused, it waits for up to
/// [`patience`](AuditOptions::patience) and reads the source again.
///
/// The state, the policies and the lists of the set do not count, but the negative cache does: it
/// must not refuse an id that exists. The audit keeps all absent integers in memory, and at most
/// 100 000 refused ids. Further ones are only counted.
///
/// # Errors
///
/// The error of the source.
pub fn audit(
    ids: &IdSet,
    source: &mut dyn AuditSource,
    options: AuditOptions,
) -> Result<AuditReport, SourceError> {
    let mut present = Present::default();
    let id_type = &ids.options().id;
    source.each_row(&mut |row| {
        match canonical_row(id_type, row) {
            Some(id) => present.check(ids, &id),
            None => present.invalid += 1,
        }
        Ok(())
    })?;
    present.check_again(ids, source, options.patience)?;

    let generation = ids.generation();
    let (mut checked, mut passed) = (0, HashSet::new());
    for id in AbsentIds::new(id_type, options.seed, options.absent) {
        checked += 1;
        if generation.contains(&id) {
            passed.insert(id);
        }
    }
    let existing = if passed.is_empty() { 0 } else { source.existing(id_type, &passed)?.len() };
    let absent_checked = checked - existing as u64;
    let absent_passed = (passed.len() - existing) as u64;
    Ok(AuditReport {
        state: ids.state(),
        present_checked: present.checked,
        invalid_rows: present.invalid,
        present_refused: present.refused.len() as u64 + present.forgotten,
        refused_examples: present.examples(),
        absent_checked,
        absent_passed,
        planned_rate: generation.rate(),
        estimated_rate: generation.estimate_rate(),
        chance: binomial::upper_tail(absent_checked, generation.rate(), absent_passed),
    })
}

/// The ids of the source.
#[derive(Debug, Default)]
struct Present {
    checked: u64,
    invalid: u64,
    refused: HashSet<Vec<u8>>,
    /// The number of refused ids that are too many to remember.
    forgotten: u64,
}

impl Present {
    fn check(&mut self, ids: &IdSet, id: &[u8]) {
        self.checked += 1;
        if ids.knows(id) {
            return;
        }
        if self.refused.len() < MAX_REFUSED {
            self.refused.insert(id.to_vec());
        } else {
            self.forgotten += 1;
        }
    }

    /// Drops the refused ids that pass after a while, and those that were deleted meanwhile.
    fn check_again(
        &mut self,
        ids: &IdSet,
        source: &mut dyn AuditSource,
        patience: Duration,
    ) -> Result<(), SourceError> {
        let end = Instant::now() + patience;
        loop {
            self.refused.retain(|id| !ids.knows(id));
            if self.refused.is_empty() || Instant::now() >= end {
                break;
            }
            std::thread::sleep(PAUSE.min(patience));
        }
        if !self.refused.is_empty() {
            self.refused = source.existing(&ids.options().id, &self.refused)?;
        }
        Ok(())
    }

    fn examples(&self) -> Vec<Vec<u8>> {
        let mut refused: Vec<_> = self.refused.iter().cloned().collect();
        refused.sort_unstable();
        refused.truncate(MAX_EXAMPLES);
        refused
    }
}
