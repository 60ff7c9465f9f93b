//! Compares a set of ids with its source. Each id in the source must pass. Absent ids may pass only at the planned
//! false positive rate.
//!
//! The audit reads the source itself, so the audit also finds ids that the set has missed. The audit generates random
//! absent ids from a seed. If the filter contains a generated id, the audit looks up the id in the source. If the id
//! exists in the source, the audit does not count the id as absent.

mod absent;
pub(crate) mod binomial;

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
    /// The number of absent ids to test.
    pub absent: u64,
    /// The seed of the absent ids. The same seed generates the same ids.
    pub seed: u64,
    /// How long the audit waits until the set contains the refused ids. The value should be the `stale_after` of the
    /// source.
    pub patience: Duration,
}

impl Default for AuditOptions {
    /// Returns settings with 100 000 absent ids, the seed 1 and a patience of 10 seconds.
    fn default() -> Self {
        Self { absent: 100_000, seed: 1, patience: Duration::from_secs(10) }
    }
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditReport {
    /// The sync state of the set at the end of the audit.
    pub state: SyncState,
    /// The number of ids of the source that were tested.
    pub present_checked: u64,
    /// The number of rows in the source whose values are not ids of the type.
    pub invalid_rows: u64,
    /// The number of ids of the source that the set refuses.
    pub present_refused: u64,
    /// A few of the refused ids in their canonical text.
    pub refused_examples: Vec<Vec<u8>>,
    /// The number of absent ids that were tested.
    pub absent_checked: u64,
    /// The number of absent ids that the filter contains.
    pub absent_passed: u64,
    /// The planned rate of the filter, a probability.
    pub planned_rate: f64,
    /// The estimated current false positive rate of the filter, computed from its bits.
    pub estimated_rate: f64,
    /// The probability that at least `absent_passed` absent ids pass at the planned rate. The value is 1 if
    /// `absent_passed` is at most the expected number.
    pub chance: f64,
}

/// If the chance is below this value, the measured rate is too high. The value corresponds to 4.8 standard deviations
/// of the normal distribution.
const LEAST_CHANCE: f64 = 1e-6;

/// The maximum number of refused ids that the audit keeps for a second check.
const MAX_REFUSED: usize = 100_000;

/// The maximum number of refused ids in a report.
const MAX_EXAMPLES: usize = 10;

/// The time between two checks of the refused ids.
const PAUSE: Duration = Duration::from_millis(50);

impl AuditReport {
    /// Returns the measured rate: the share of absent ids that the filter contains. Returns 0 if no absent id was
    /// tested.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.absent_passed as f64 / self.absent_checked.max(1) as f64
    }

    /// Tests whether the set accepts every id of the source.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.present_refused == 0
    }

    /// Tests whether the number of passed absent ids is plausible at the planned rate.
    #[must_use]
    pub fn is_rate_kept(&self) -> bool {
        self.chance >= LEAST_CHANCE
    }
}

/// Compares a set with its source.
///
/// The audit reads the source twice. The first read checks all existing ids. The second read looks up the absent ids
/// that the filter contains. If the set refuses existing ids, the audit waits for up to
/// [`patience`](AuditOptions::patience) and then reads the source again.
///
/// The audit ignores the state, the policies, the allow list and the deny list of the set. The audit respects the
/// negative cache, because the cache must not refuse an existing id. The audit keeps all absent integers and at most
/// 100 000 refused ids in memory. The audit only counts refused ids beyond this number.
///
/// # Errors
///
/// Returns the error of the source.
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

    let generations = ids.generations();
    let (mut checked, mut passed) = (0, HashSet::new());
    for id in AbsentIds::new(id_type, options.seed, options.absent) {
        checked += 1;
        if generations.contains(&id) {
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
        planned_rate: generations.rate(),
        estimated_rate: generations.estimate_rate(),
        chance: binomial::upper_tail(absent_checked, generations.rate(), absent_passed),
    })
}

/// The ids of the source that the audit has checked.
#[derive(Debug, Default)]
struct Present {
    checked: u64,
    invalid: u64,
    refused: HashSet<Vec<u8>>,
    /// The number of refused ids beyond the limit of the memory.
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

    /// Removes the refused ids that the set accepts later, and the refused ids that are no longer in the source.
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
