//! Follows a leader: another guard that publishes its ids over HTTP.
//!
//! The source downloads a snapshot once, and then waits for changes. A response delivers changes within milliseconds.
//! Each response also reports up to which commit time the set of the leader is complete.
//!
//! # Why a synced follower has all ids
//!
//! A response of the leader contains all changes up to a position, and the lag `a` of the leader. Let `A` be the time
//! of the response. At the position of the response, the leader's set contains all ids that were committed before `K =
//! A - a`. The follower cannot use `A`, because the clocks of two machines differ. The follower measures the time `S`
//! before it sends the request. The leader receives the request at `R >= S` and responds at `A = R + h`. The leader
//! measures `h`, the time for which it holds the request. Because of `S <= R`, `S + h - a <= K`. After the follower has
//! applied the changes, it claims that its set contains all ids that were committed before `S + h - a`.
//!
//! Only durations cross the network. The clocks of the follower and the leader may run at different speeds, so the
//! follower decreases `h` by 1/1000 and increases `a` by 1/1000.
//!
//! A snapshot makes no claim about completeness. After a snapshot, the follower first claims completeness when it has
//! applied a delta.
//!
//! Within one epoch, the leader guarantees the completeness of each new generation. The follower applies all changes
//! after a snapshot before it publishes the snapshot. In another epoch, the follower has no guarantee, because the new
//! leader process may lag. After a change of the epoch, the set is stale until the first claim of completeness.

mod error;
mod exchange;
mod options;
mod pace;

use std::io::BufReader;
use std::time::{Duration, Instant};

use tamis::PlanError;
use tamis_sources::{
    AuditSource, ChangeKind, Event, Follow, Generation, IdType, Reader, Rows, Run, Snapshot,
    SnapshotError, SourceError, SourceKind, SourceOptions,
};

use crate::fleet::delta::{Delta, Knowledge};
use crate::fleet::position::FeedPosition;
pub use error::LeaderError;
use exchange::{Changes, Exchange};
pub use options::LeaderOptions;
use pace::Pace;

/// The maximum time for which the leader holds a request. If `interval` is shorter, the follower uses `interval`.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The minimum time between two requests for changes. Several changes within `MIN_PERIOD` arrive in one response. The
/// minimum time also limits the CPU load if a leader responds immediately without changes.
const MIN_PERIOD: Duration = Duration::from_millis(10);

/// The maximum relative speed difference between the clocks of two machines.
const CLOCK_ERROR: f64 = 1e-3;

impl SourceKind for LeaderOptions {
    fn reader(&self, _: &SourceOptions) -> Box<dyn Reader> {
        Box::new(LeaderReader::new(self.clone()))
    }

    /// Returns an error, because a leader cannot list its ids.
    fn audit(&self, _: &IdType) -> Result<Box<dyn AuditSource>, SourceError> {
        Err(LeaderError::NoList.into())
    }
}

/// Follows a leader.
struct LeaderReader {
    options: LeaderOptions,
    exchange: Option<Exchange>,
    /// The sync state. Each response contains all changes up to its time, so the sync state needs no log positions.
    follow: Follow<(), Instant>,
    /// The position up to which all changes are applied.
    position: Option<FeedPosition>,
    changes_pace: Pace,
    snapshot_pace: Pace,
}

impl Reader for LeaderReader {
    fn read(&mut self, run: &Run) -> Result<(), SourceError> {
        let mut has_succeeded = false;
        loop {
            let result = self.advance(run);
            if run.is_stopped() {
                return Err(SourceError::Stopped);
            }
            if result.is_err() {
                self.step(run, Event::ReadFailed);
            }
            match result {
                Ok(()) => has_succeeded = true,
                // If an earlier request of this call has succeeded, the method returns `Ok`, so that the pause after
                // the failure is the minimum pause.
                Err(error) if has_succeeded => {
                    run.abandon_generation();
                    run.report(&error.into());
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl LeaderReader {
    fn new(options: LeaderOptions) -> Self {
        Self {
            options,
            exchange: None,
            follow: Follow::default(),
            position: None,
            changes_pace: Pace::new(),
            snapshot_pace: Pace::new(),
        }
    }

    fn step(&mut self, run: &Run, event: Event<(), Instant>) {
        run.step(&mut self.follow, event, &());
    }

    /// Requests the next changes, or a snapshot.
    fn advance(&mut self, run: &Run) -> Result<(), LeaderError> {
        if self.exchange.is_none() {
            self.exchange = Some(Exchange::new(&self.options, run.stop_signal())?);
        }
        if run.is_rebuild_asked() {
            self.step(run, Event::RebuildDue);
        }
        let Some(since) = self.position.filter(|_| !self.follow.is_read_due()) else {
            return self.load_snapshot(run);
        };
        let wait = run.options().interval.min(MAX_WAIT);
        self.changes_pace.keep(run, MIN_PERIOD);
        let asked = Instant::now();
        let exchange = self.exchange.as_mut().expect("created above");
        match exchange.changes(since, wait)? {
            Changes::Gone => {
                self.step(run, Event::Connected { continues: false });
                self.load_snapshot(run)
            }
            Changes::After(delta) => self.apply(run, &delta, asked),
        }
    }

    /// Downloads a snapshot and the changes after the snapshot, and publishes the resulting generation.
    fn load_snapshot(&mut self, run: &Run) -> Result<(), LeaderError> {
        // A leader may offer a new snapshot after each download, so the code waits for a minimum time between two
        // downloads.
        self.snapshot_pace.keep(run, run.options().interval.min(MAX_WAIT));
        self.step(run, Event::ReadBegun);
        let exchange = self.exchange.as_mut().expect("created before");
        let mut answer = exchange.snapshot()?;
        let max_bytes = self.options.max_bytes;
        if answer.len_bytes().is_some_and(|len| len > max_bytes) {
            return Err(SnapshotError::TooLarge { max_bytes }.into());
        }
        let stream = BufReader::new(&mut answer);
        let Snapshot { head, generation, .. } = Generation::read_snapshot(stream, max_bytes)?;
        drop(answer);
        let ids = run.ids().options().id.to_string();
        if head.ids != ids {
            return Err(LeaderError::OtherIds { found: head.ids, expected: ids });
        }
        let position = std::str::from_utf8(&head.position).ok().and_then(|it| it.parse().ok());
        let position: FeedPosition = position.ok_or(LeaderError::Position)?;
        run.count(Rows { ids: generation.items(), invalid: 0 });
        let generation = run.start_generation_from(generation);
        // Because the snapshot may be older than the current set, the code applies all changes only to the new
        // generation before it publishes the generation.
        let mut at = position;
        let (delta, asked) = loop {
            self.changes_pace.keep(run, MIN_PERIOD);
            let asked = Instant::now();
            let Changes::After(delta) = exchange.changes(at, Duration::ZERO)? else {
                return Err(LeaderError::Replaced);
            };
            each_change(run, &delta, |kind, id| match kind {
                ChangeKind::Insert | ChangeKind::InsertRecent => {
                    generation.insert_key(id, run.ids().options().id.value_of(id))
                }
                ChangeKind::Delete => {
                    generation.delete_key(id);
                    Ok(())
                }
                // The publication of the generation removes all 404 responses.
                ChangeKind::DeleteRow => Ok(()),
            })?;
            at = delta.position();
            if delta.knowledge != Knowledge::More {
                break (delta, asked);
            }
        };
        if self.position.is_none_or(|before| before.epoch != at.epoch) {
            // The epoch has changed, so the set has no guarantee (see the proof in the module documentation).
            self.step(run, Event::Lost);
            self.step(run, Event::ReadBegun);
        }
        self.step(run, Event::ReadEnded(()));
        self.position = Some(at);
        self.report(run, &delta, asked);
        Ok(())
    }

    /// Applies changes, and claims the completeness that the leader reports. `asked` is a time before the request was
    /// sent.
    fn apply(&mut self, run: &Run, delta: &Delta, asked: Instant) -> Result<(), LeaderError> {
        each_change(run, delta, |kind, id| run.apply_change(kind, id))?;
        self.position = Some(delta.position());
        self.report(run, delta, asked);
        Ok(())
    }

    /// Claims the completeness that the leader reports for the time after the changes.
    fn report(&mut self, run: &Run, delta: &Delta, asked: Instant) {
        match delta.knowledge {
            Knowledge::More => {}
            Knowledge::Unknown => run.lost(),
            Knowledge::Age(age) => match claim(asked, delta.held, age) {
                Some(moment) => self.step(run, Event::LogEnd(moment, ())),
                // The lag is so long that the clock cannot represent the claimed time.
                None => run.lost(),
            },
        }
    }
}

/// Passes each change to `apply`. Returns an error at the first change whose id is invalid.
fn each_change(
    run: &Run,
    delta: &Delta,
    mut apply: impl FnMut(ChangeKind, &[u8]) -> Result<(), PlanError>,
) -> Result<(), LeaderError> {
    let mut rows = Rows::default();
    for change in delta.changes() {
        if !is_key(&run.ids().options().id, change.id) {
            return Err(LeaderError::not_an_id(change.id));
        }
        apply(change.kind, change.id)?;
        rows.add(true);
    }
    run.count(rows);
    Ok(())
}

/// Tests whether a leader may send a text as an id. For text ids, a leader sends the folded text (the key). The key of
/// a blank id is empty, and a key may exceed the maximum length of an id. The format of the delta limits the length.
fn is_key(id_type: &IdType, text: &[u8]) -> bool {
    match id_type {
        IdType::Text { .. } => true,
        IdType::Integer { .. } | IdType::Uuid => {
            id_type.canonical(text).is_ok_and(|id| *id == *text)
        }
    }
}

/// Returns the time for which the follower may claim completeness. The module documentation proves the formula.
fn claim(asked: Instant, held: Duration, age: Duration) -> Option<Instant> {
    // A leader that reports a longer hold time than the duration of the request is wrong.
    let held = held.min(asked.elapsed()).mul_f64(1.0 - CLOCK_ERROR);
    let age = age.checked_add(age.div_f64(1.0 / CLOCK_ERROR))?;
    (asked + held).checked_sub(age)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_leader_sends_canonical_ids_and_any_key_of_a_text() {
        let integers =
            IdType::Integer { min: 1, max: 100, form: tamis_sources::IntegerForm::default() };
        for (text, is_integer) in [("7", true), ("007", false), ("", false), ("101", false)] {
            assert_eq!(is_key(&integers, text.as_bytes()), is_integer, "{text}");
        }
        let uuid = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert!(is_key(&IdType::Uuid, uuid.as_bytes()));
        assert!(!is_key(&IdType::Uuid, uuid.to_uppercase().as_bytes()));
        for text in ["", "abc", "a key that is longer than each id"] {
            assert!(is_key(&IdType::Text { max_bytes: 3 }, text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_claim_is_never_after_the_moment_that_the_leader_proved() {
        let asked = Instant::now() - 20 * SECOND;
        // The leader held the request for 10 s, and its lag is 3 s.
        let moment = claim(asked, 10 * SECOND, 3 * SECOND).unwrap();
        let proved = asked + 7 * SECOND;
        assert!(moment <= proved && proved - moment < SECOND / 50);
        // `claim` limits the hold time that the leader reports to the duration of the request.
        let asked = Instant::now();
        assert!(claim(asked, 100 * SECOND, Duration::ZERO).unwrap() <= Instant::now());
        assert_eq!(claim(asked, SECOND, Duration::MAX), None);
        let before = claim(asked, Duration::ZERO, SECOND).unwrap();
        assert!(before <= asked - SECOND);
    }
}
