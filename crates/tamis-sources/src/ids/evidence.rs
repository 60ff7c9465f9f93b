//! Tests whether the responses of the upstream service agree with a set of ids.
//!
//! A filter reveals neither its ids nor the encoding that a program used for the ids. With a wrong charset, funnel or
//! plan, the guard reads the filter without an error, but does not find the existing ids. Therefore a set whose ids
//! come from a filter is *unproven* at first: unknown ids pass. If the upstream service responds with 2xx to a request
//! for an id, the id exists. For an existing id, two cases are possible:
//!
//! * The set contains the id. If the set contains enough existing ids, the set is *proven*.
//! * The set does not contain the id, which may be new. The guard waits until the source has read everything up to the
//!   time of the response. If the set does not contain the id after the wait, the id is *missing*. A set with several
//!   missing ids is *refuted*: the guard would refuse existing ids.
//!
//! ```text
//! unproven ──▶ proven        enough ids were found, and few are unexplained
//! any      ──▶ refuted       several ids are missing
//! refuted  ──▶ any           the source has the missing ids now
//! ```
//!
//! A set whose ids do not come from a filter is proven from the start. The responses on a shadow route can refute a set
//! that was proven from the start.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::ids::fold::Fold;

/// The minimum and the maximum number of found ids that prove a set. For a set of fewer than 200 ids, the number is
/// half of the ids, but at least the minimum.
const LEAST_FOUND: u64 = 10;
const MOST_FOUND: u64 = 100;

/// The number of additional found ids that a proof needs for each unexplained or missing id.
const FOUND_PER_UNEXPLAINED: usize = 20;

/// The maximum number of unexplained ids, and of missing ids, that the record keeps. A set that exceeds the maximum
/// cannot become proven.
const MAX_MISSED: usize = 64;

/// The maximum number of found ids that the record keeps.
const MAX_FOUND: usize = MOST_FOUND as usize + FOUND_PER_UNEXPLAINED * MAX_MISSED;

/// The number of missing ids that refutes a set. A single missing id may have been deleted between the response and the
/// next read.
const REFUTING: usize = 3;

/// Whether the responses of the upstream service agree with a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Proven,
    Unproven,
    Refuted,
}

/// Tests whether the set contains an id: whether the generation of any source contains the id.
type Contains<'a> = &'a dyn Fn(&[u8]) -> bool;

/// The evidence about a set from the responses of the upstream service.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// True if responses never change the finding.
    is_trusted: bool,
    /// The maximum time until a source reports a new id.
    recent: Duration,
    finding: AtomicU8,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    /// True if the ids come from a filter.
    needs_proof: bool,
    /// The number of found ids that proves the set.
    needed: usize,
    /// Ids of the set for which the upstream service responded with 2xx. The record also tests each later generation
    /// with the found ids.
    found: HashSet<Box<[u8]>>,
    /// Ids outside the set for which the upstream service responded with 2xx, with the time of the response.
    unexplained: Vec<(Box<[u8]>, Instant)>,
    missing: Vec<Box<[u8]>>,
}

impl Evidence {
    /// Creates the record of an empty set. `recent` is the maximum time until a source reports a new id.
    pub(crate) fn new(is_trusted: bool, recent: Duration) -> Self {
        Self {
            is_trusted,
            recent,
            finding: AtomicU8::new(Finding::Proven as u8),
            record: Mutex::default(),
        }
    }

    pub(crate) fn finding(&self) -> Finding {
        // Acquire: a reader of a new generation also sees whether the generation needs a proof.
        match self.finding.load(Ordering::Acquire) {
            0 => Finding::Proven,
            1 => Finding::Unproven,
            _ => Finding::Refuted,
        }
    }

    /// Tests whether the set still needs ids for which the upstream service responds with 2xx.
    pub(crate) fn is_open(&self) -> bool {
        self.finding() == Finding::Unproven
    }

    /// Prepares the record for a generation that is about to be published. `contains` tests the ids of the set after
    /// the publication, and `items` is their number. `needs_proof` is true if the ids come from a filter. The set must
    /// also contain the ids that proved the set before the publication.
    pub(crate) fn start(&self, needs_proof: bool, items: u64, contains: Contains<'_>) {
        if self.is_trusted {
            return;
        }
        let mut record = self.record.lock();
        record.needs_proof = needs_proof;
        record.needed = (items / 2).clamp(LEAST_FOUND, MOST_FOUND) as usize;
        let before = record.found.len();
        record.found.retain(|id| contains(id));
        // Up to 10 % of the found ids may be missing, because ids may be deleted.
        if record.found.len() < before - before / 10 {
            record.found.clear();
        }
        self.decide(&mut record, contains);
    }

    /// Records that the upstream service responded with 2xx for an id of the set. `key` is the key of the id.
    pub(crate) fn found(&self, key: &[u8], contains: Contains<'_>) {
        if self.is_open() {
            let mut record = self.record.lock();
            if record.found.len() < MAX_FOUND {
                record.found.insert(key.into());
            }
            self.decide(&mut record, contains);
        }
    }

    /// Records that the upstream service responded with 2xx for an id that is not in the set.
    pub(crate) fn missed(&self, id: &[u8]) {
        let mut record = self.record.lock();
        let Record { unexplained, missing, .. } = &*record;
        // Several spellings of one id count once, because the upstream service may ignore case.
        let key = Fold::Uca.key(id);
        let mut missed = unexplained.iter().map(|(id, _)| id).chain(missing);
        let is_known = missed.any(|other| Fold::Uca.key(other) == key);
        if !self.is_trusted && !is_known && record.unexplained.len() < MAX_MISSED {
            record.unexplained.push((id.into(), Instant::now()));
        }
    }

    /// Decides about the unexplained ids. The caller guarantees that the set contains all ids that were committed
    /// before `moment`.
    pub(crate) fn settle(&self, moment: Instant, contains: Contains<'_>) {
        let mut record = self.record.lock();
        if record.unexplained.is_empty() && record.missing.is_empty() {
            return;
        }
        let Record { unexplained, missing, .. } = &mut *record;
        unexplained.retain(|(id, answered)| {
            let is_late = moment.saturating_duration_since(*answered) <= self.recent;
            if !is_late && missing.len() < MAX_MISSED {
                missing.push(id.clone());
            }
            is_late
        });
        self.decide(&mut record, contains);
    }

    /// Returns the reason why the set is refuted.
    pub(crate) fn reason(&self) -> Option<String> {
        (self.finding() == Finding::Refuted).then(|| {
            let missing = self.record.lock().missing.len();
            format!(
                "the program answered {missing} ids with 2xx that the source does not have: check \
                 the settings of the source, such as `funnel`, `charset` and the plan of its \
                 filter, with tamis guard audit --ids FILE; if the program answers absent ids \
                 with 2xx, set `trust = true`"
            )
        })
    }

    fn decide(&self, record: &mut Record, contains: Contains<'_>) {
        record.missing.retain(|id| !contains(id));
        let missed = record.unexplained.len() + record.missing.len();
        let needed = record.needed + FOUND_PER_UNEXPLAINED * missed;
        let was_proven = self.finding() == Finding::Proven && !record.found.is_empty();
        let is_proven = was_proven || missed < MAX_MISSED && record.found.len() >= needed;
        let finding = if record.missing.len() >= REFUTING {
            Finding::Refuted
        } else if record.needs_proof && !is_proven {
            Finding::Unproven
        } else {
            Finding::Proven
        };
        self.finding.store(finding as u8, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use tamis::{AnyFilter, Hasher, Plan};

    use super::*;
    use crate::ids::generation::Generation;

    fn id(number: u32) -> Vec<u8> {
        number.to_string().into_bytes()
    }

    /// Returns a generation over a filter of the ids 0 to `items` - 1.
    fn filter(items: u32) -> Generation {
        let plan = Plan::new(10_000, 1e-9).unwrap();
        let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
        for number in 0..items {
            filter.try_insert(&id(number)).unwrap();
        }
        Generation::with_base(filter, 1e-9).unwrap()
    }

    const RECENT: Duration = Duration::from_secs(60);

    fn started(generation: Generation) -> (Generation, Evidence) {
        let evidence = Evidence::new(false, RECENT);
        start(&evidence, &generation);
        (generation, evidence)
    }

    /// Starts the evidence for a set whose only source publishes `generation`.
    fn start(evidence: &Evidence, generation: &Generation) {
        let needs_proof = generation.base().is_some();
        evidence.start(needs_proof, generation.items(), &|id| generation.contains(id));
    }

    fn found(evidence: &Evidence, number: u32, generation: &Generation) {
        evidence.found(&id(number), &|id| generation.contains(id));
    }

    /// Settles the evidence at the time `after` from now, and returns the finding.
    fn settled(evidence: &Evidence, after: Duration, generation: &Generation) -> Finding {
        evidence.settle(Instant::now() + after, &|id| generation.contains(id));
        evidence.finding()
    }

    #[test]
    fn different_ids_that_are_found_prove_a_filter() {
        let (generation, evidence) = started(filter(1000));
        for _ in 0..1000 {
            found(&evidence, 5, &generation);
        }
        for number in 0..99 {
            assert_eq!(evidence.finding(), Finding::Unproven, "{number}");
            found(&evidence, number, &generation);
        }
        found(&evidence, 99, &generation);
        assert_eq!(evidence.finding(), Finding::Proven);
        // The found ids prove an equal filter. A filter without the found ids stays unproven.
        start(&evidence, &filter(1000));
        assert_eq!(evidence.finding(), Finding::Proven);
        start(&evidence, &filter(20));
        assert_eq!(evidence.finding(), Finding::Unproven);
    }

    #[test]
    fn a_list_of_ids_needs_no_proof() {
        let (_, evidence) = started(Generation::new(10, 0.01).unwrap());
        assert_eq!(evidence.finding(), Finding::Proven);
    }

    #[test]
    fn a_filter_of_few_ids_is_proven_by_fewer() {
        let (generation, evidence) = started(filter(40));
        for number in 0..25 {
            found(&evidence, number, &generation);
        }
        assert_eq!(evidence.finding(), Finding::Proven);
    }

    #[test]
    fn half_of_the_ids_prove_nothing() {
        let (generation, evidence) = started(filter(10_000));
        for number in 0..10_000 {
            found(&evidence, number, &generation);
            evidence.missed(&id(10_000 + number));
        }
        assert_eq!(evidence.finding(), Finding::Unproven);
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Refuted);
    }

    #[test]
    fn new_ids_refute_a_set_only_if_the_source_never_reports_them() {
        let (generation, evidence) = started(Generation::new(10, 0.001).unwrap());
        for number in [1, 2, 2, 2, 2] {
            evidence.missed(&id(number));
        }
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Proven);
        assert_eq!(evidence.reason(), None);
        evidence.missed(&id(3));
        assert_eq!(settled(&evidence, Duration::ZERO, &generation), Finding::Proven);
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Refuted);
        assert!(evidence.reason().unwrap().contains("3 ids"));
        generation.insert_key(&id(2), None).unwrap();
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Proven);
    }

    #[test]
    fn spellings_of_one_id_count_once() {
        let (generation, evidence) = started(Generation::new(10, 0.001).unwrap());
        for spelling in ["Café", "café", "CAFE", "cafe ", "CAFÉ"] {
            evidence.missed(spelling.as_bytes());
        }
        evidence.missed(b"tea");
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Proven);
        assert_eq!(evidence.reason(), None);
        evidence.missed(b"Cocoa");
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Refuted);
    }

    #[test]
    fn no_answer_refutes_a_trusted_set() {
        let generation = filter(10);
        let evidence = Evidence::new(true, RECENT);
        start(&evidence, &generation);
        assert_eq!(evidence.finding(), Finding::Proven);
        for number in 100..200 {
            evidence.missed(&id(number));
        }
        assert_eq!(settled(&evidence, 2 * RECENT, &generation), Finding::Proven);
    }
}
