//! The state of a source that follows a table: a pure state machine, without sockets and clocks.
//!
//! ```text
//!          a read begins            the read ends              the log has reached its end
//!   Lost ─────────────────▶ Snapshot ────────────▶ CatchingUp ─────────────────────────────▶ Current
//!    │  a snapshot was loaded from the disk                    the log has reached its end     ▲
//!    └───────────────────────────────────────────▶ Resuming ───────────────────────────────────┘
//!
//!   each phase ── changes are lost ──▶ Lost
//! ```
//!
//! In the phase `Current`, the source may do another full read into a second generation (a [`Renewal`]). The reason for
//! a second full read is that many ids are deleted, or that a caller requested a new generation. The current generation
//! stays valid during the second full read.
//!
//! The driver of a source does all input and output. The driver reports each [`Event`] and executes each [`Effect`].
//! The driver begins a full read while [`Follow::is_read_due`] is true. A generation receives all changes that the log
//! delivers after the begin of its full read.

/// A position in the change log.
pub trait LogPosition: Clone {
    /// Tests whether this position is at or after `other`.
    fn has_reached(&self, other: &Self) -> bool;
}

/// A polling source has no change log, because each poll returns all changes.
impl LogPosition for () {
    fn has_reached(&self, (): &Self) -> bool {
        true
    }
}

/// How well the current generation agrees with the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase<P> {
    /// The current generation lacks changes, or no generation was published. A full read is required.
    #[default]
    Lost,
    /// A full read is running.
    Snapshot,
    /// The full read has ended. The new generation contains changes up to this position, but may lack some changes
    /// before this position.
    CatchingUp(P),
    /// The current generation was loaded from disk. The generation contains changes up to this position, but may lack
    /// some changes before this position.
    Resuming(P),
    /// The current generation contains all changes up to the position of the log.
    Current(Renewal<P>),
}

/// The state of a full read into a second generation, while the current generation stays in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Renewal<P> {
    None,
    /// The driver must begin the full read.
    Due,
    Reading,
    /// The full read has ended. The driver publishes the generation when the log has reached this position.
    CatchingUp(P),
}

/// An event that the driver reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<P, M> {
    /// A connection begins. If the log does not continue where the last connection ended, the current generation lacks
    /// the changes since the last connection. The last [`Effect::KnownUntil`] remains valid.
    Connected {
        /// True if the log continues at the position where the last connection ended.
        continues: bool,
    },
    /// The driver has loaded a generation from disk and published it. The generation contains no change after this
    /// position.
    Loaded(P),
    /// The driver has applied all changes before the position of the log.
    Reached,
    /// The current generation lacks changes from now on.
    Lost,
    /// The current generation, or the generation of the running full read, contains ids that no longer exist.
    ReadRequired,
    /// The current generation lacks no change, but a full read would make the generation smaller or newer.
    RebuildDue,
    /// The driver has started a generation and a full read.
    ReadBegun,
    /// The full read has ended. Each row was read before the log reached this position.
    ReadEnded(P),
    /// The full read has ended with an error.
    ReadFailed,
    /// The log ended at the position `P`. The driver queried this end after the time `M`.
    LogEnd(M, P),
}

/// An action that the driver must execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<M> {
    /// Publish the generation of the full read.
    Publish,
    /// Set the state to stale until the next [`KnownUntil`](Self::KnownUntil).
    MakeStale,
    /// Record that the set contains all ids that were committed before the given time.
    KnownUntil(M),
}

/// The state of a source that follows a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Follow<P, M> {
    phase: Phase<P>,
    /// The pending query: a time T, and the end of the log that the driver queried after T.
    asked: Option<(M, P)>,
    /// Whether the current generation contains ids that no longer exist.
    excess: Excess,
}

/// Whether the current generation contains ids that no longer exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Excess {
    #[default]
    None,
    /// The current generation contains deleted ids, but the next generation will not contain deleted ids.
    Once,
    /// The current generation and the generation of the running full read contain deleted ids.
    Twice,
}

impl<P, M> Default for Follow<P, M> {
    fn default() -> Self {
        Self { phase: Phase::Lost, asked: None, excess: Excess::None }
    }
}

impl<P: LogPosition, M> Follow<P, M> {
    /// Tests whether the driver must begin a full read. The driver drops a full read that is still running, because the
    /// generation of that read lacks changes.
    pub fn is_read_due(&self) -> bool {
        matches!(self.phase, Phase::Lost | Phase::Current(Renewal::Due))
    }

    /// Tests whether the current generation contains all changes up to the position of the log.
    pub fn is_current(&self) -> bool {
        matches!(self.phase, Phase::Current(_))
    }

    /// Tests whether the driver may write the current generation to disk.
    pub fn is_saveable(&self) -> bool {
        self.is_current() && self.excess == Excess::None
    }

    /// Tests whether the current generation lacks changes and no full read is running.
    pub fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost)
    }

    /// Returns the position up to which the generation from disk contains changes. Returns `None` after the log has
    /// reached this position.
    pub fn resumes_to(&self) -> Option<&P> {
        if let Phase::Resuming(to) = &self.phase { Some(to) } else { None }
    }

    /// Returns the pending [`Event::LogEnd`]: the log has not reached the position of this event yet.
    pub fn asked(&self) -> Option<&(M, P)> {
        self.asked.as_ref()
    }

    /// Applies an event. `position` is the current position of the log. Returns the new state, and the effects that the
    /// driver must execute.
    pub fn step(mut self, event: Event<P, M>, position: &P) -> (Self, Vec<Effect<M>>) {
        let mut effects = Vec::new();
        self.phase = match (event, self.phase) {
            (Event::Connected { continues }, phase) => {
                self.asked = None;
                // The connections of the running full read are closed.
                if continues { phase.without_read() } else { Phase::Lost }
            }
            (Event::Loaded(to), _) => Phase::Resuming(to),
            (Event::Lost, _) => {
                self.excess = Excess::None;
                effects.push(Effect::MakeStale);
                Phase::Lost
            }
            (Event::ReadRequired, phase) => {
                // After `ReadRequired`, a running full read continues. If each `ReadRequired` restarted the full read,
                // a full read might never end.
                self.excess = if phase.has_read() { Excess::Twice } else { Excess::Once };
                phase.with_due_read()
            }
            (Event::RebuildDue, phase) => phase.with_due_read(),
            (Event::ReadBegun, phase) => {
                if self.excess == Excess::Twice {
                    self.excess = Excess::Once;
                }
                match phase {
                    Phase::Current(_) => Phase::Current(Renewal::Reading),
                    _ => Phase::Snapshot,
                }
            }
            (Event::ReadEnded(to), Phase::Snapshot) => Phase::CatchingUp(to),
            (Event::ReadEnded(to), Phase::Current(Renewal::Reading)) => {
                Phase::Current(Renewal::CatchingUp(to))
            }
            (Event::ReadFailed, phase) => phase.without_read(),
            (Event::LogEnd(moment, end), phase) => {
                self.asked.get_or_insert((moment, end));
                phase
            }
            (Event::Reached | Event::ReadEnded(_), phase) => phase,
        };
        self.advance(position, &mut effects);
        (self, effects)
    }

    /// If the log has reached the awaited position, publishes the generation of the full read. If the log has reached
    /// the pending end of the log, reports the time of that end.
    fn advance(&mut self, position: &P, effects: &mut Vec<Effect<M>>) {
        match &self.phase {
            Phase::CatchingUp(to) | Phase::Current(Renewal::CatchingUp(to))
                if position.has_reached(to) =>
            {
                effects.push(Effect::Publish);
                self.excess = match self.excess {
                    Excess::Twice => Excess::Once,
                    _ => Excess::None,
                };
                self.become_current();
            }
            Phase::Resuming(to) if position.has_reached(to) => self.become_current(),
            _ => {}
        }
        let asked = self.asked.take_if(|(_, end)| position.has_reached(end));
        if let Some((moment, _)) = asked.filter(|_| self.is_current()) {
            effects.push(Effect::KnownUntil(moment));
        }
    }

    fn become_current(&mut self) {
        let is_due = self.excess != Excess::None;
        self.phase = Phase::Current(if is_due { Renewal::Due } else { Renewal::None });
    }
}

impl<P> Phase<P> {
    /// Tests whether a full read is running, or has ended without a publication.
    fn has_read(&self) -> bool {
        match self {
            Self::Snapshot | Self::CatchingUp(_) => true,
            Self::Current(renewal) => {
                matches!(renewal, Renewal::Reading | Renewal::CatchingUp(_))
            }
            Self::Lost | Self::Resuming(_) => false,
        }
    }

    /// Returns the phase in which a full read is due, unless a full read is running.
    fn with_due_read(self) -> Self {
        match self {
            Self::Current(Renewal::None) => Self::Current(Renewal::Due),
            phase => phase,
        }
    }

    /// Returns the phase after a full read that failed or was dropped.
    fn without_read(self) -> Self {
        match self {
            Self::Snapshot | Self::CatchingUp(_) => Self::Lost,
            Self::Current(Renewal::Reading | Renewal::CatchingUp(_)) => Self::Current(Renewal::Due),
            phase => phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    impl LogPosition for u8 {
        fn has_reached(&self, other: &Self) -> bool {
            self >= other
        }
    }

    /// A transaction of the simulated database.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Commit {
        Insert(u8),
        Delete(u8),
        /// Updates the row of an id, so that the row satisfies the condition of the source.
        Enter(u8),
        /// Updates the row of an id, so that the row does not satisfy the condition of the source any more.
        Leave(u8),
        /// Inserts an id with a statement from which the log cannot derive the ids.
        Unexplained(u8),
        /// Deletes an id. The log reports only that ids were deleted, but not which ids.
        Truncate(u8),
    }

    /// A simulated generation.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    struct Ids {
        present: [bool; 2],
        deleted: [bool; 2],
        /// The generation contains no change after this position.
        newest: u8,
        /// True if the generation contains deleted ids, so that another full read is necessary.
        has_too_many: bool,
    }

    impl Ids {
        fn apply(&mut self, commit: Commit, at: u8) {
            match commit {
                Commit::Insert(id) | Commit::Enter(id) => {
                    (self.present[usize::from(id)], self.deleted[usize::from(id)]) = (true, false);
                }
                Commit::Delete(id) | Commit::Leave(id) => self.deleted[usize::from(id)] = true,
                Commit::Truncate(_) => self.has_too_many = true,
                Commit::Unexplained(_) => {}
            }
            self.newest = self.newest.max(at);
        }

        fn contains(&self, id: usize) -> bool {
            self.present[id] && !self.deleted[id]
        }
    }

    /// A copy of the current generation, which is written while changes continue.
    #[derive(Clone, PartialEq, Eq, Hash)]
    enum Saved {
        Nothing,
        /// The write has begun. The copy contains all changes before this position.
        Begun(u8),
        /// The write is complete. The copy contains all changes before this position.
        Complete(u8, Ids),
    }

    /// The database, the driver and the state machine.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        commits: &'static [Commit],
        /// The number of commits so far. The number of commits is also the clock of the simulation.
        committed: u8,
        position: u8,
        follow: Follow<u8, u8>,
        current: Ids,
        building: Option<Ids>,
        /// The clock at the begin of the running full read.
        read_begun: Option<u8>,
        /// The pending reply to the query for the end of the log.
        answer: Option<(u8, u8)>,
        known: Option<u8>,
        saved: Saved,
        /// The number of reconnects, rebuilds, failed reads and restarts that the model may still generate.
        rare: u8,
    }

    impl World {
        fn new(commits: &'static [Commit]) -> Self {
            Self {
                commits,
                committed: 0,
                position: 0,
                follow: Follow::default(),
                current: Ids::default(),
                building: None,
                read_begun: None,
                answer: None,
                known: None,
                saved: Saved::Nothing,
                rare: 2,
            }
        }

        /// Returns which ids a query finds after the first `at` commits: the ids whose row satisfies the condition.
        fn rows(&self, at: u8) -> [bool; 2] {
            let mut rows = [false; 2];
            for commit in &self.commits[..at.into()] {
                match *commit {
                    Commit::Insert(id) | Commit::Enter(id) | Commit::Unexplained(id) => {
                        rows[usize::from(id)] = true;
                    }
                    Commit::Delete(id) | Commit::Leave(id) | Commit::Truncate(id) => {
                        rows[usize::from(id)] = false;
                    }
                }
            }
            rows
        }

        fn report(&mut self, event: Event<u8, u8>) {
            let (follow, effects) = self.follow.step(event, &self.position);
            self.follow = follow;
            for effect in effects {
                match effect {
                    Effect::Publish => {
                        assert!(self.read_begun.is_none(), "published before all is read");
                        self.current = self.building.take().expect("a generation");
                        // The copy that was begun belongs to the old generation, so the copy is dropped.
                        if let Saved::Begun(_) = self.saved {
                            self.saved = Saved::Nothing;
                        }
                    }
                    Effect::KnownUntil(moment) => self.known = Some(moment),
                    Effect::MakeStale => self.known = None,
                }
            }
        }

        fn begin_read(&mut self) {
            self.building = Some(Ids::default());
            self.read_begun = Some(self.committed);
            self.report(Event::ReadBegun);
        }

        /// Ends the full read. Each row was read either at the begin or at the end. `late` contains this choice for
        /// each id.
        fn end_read(&mut self, late: [bool; 2]) {
            let begun = self.read_begun.take().unwrap();
            let (before, after) = (self.rows(begun), self.rows(self.committed));
            let building = self.building.as_mut().unwrap();
            for (id, is_late) in late.into_iter().enumerate() {
                // An id that was deleted during the read stays deleted.
                building.present[id] |= if is_late { after[id] } else { before[id] };
            }
            building.newest = building.newest.max(self.committed);
            self.report(Event::ReadEnded(self.committed));
        }

        /// Delivers the next transaction from the log.
        fn deliver(&mut self) {
            let commit = self.commits[usize::from(self.position)];
            for ids in std::iter::once(&mut self.current).chain(&mut self.building) {
                ids.apply(commit, self.position + 1);
            }
            match commit {
                Commit::Unexplained(_) => self.report(Event::Lost),
                Commit::Truncate(_) => self.report(Event::ReadRequired),
                Commit::Insert(_) | Commit::Delete(_) | Commit::Enter(_) | Commit::Leave(_) => {}
            }
            self.position += 1;
            self.report(Event::Reached);
        }

        /// Connects again. If the log does not continue, the position jumps to the end of the log.
        fn reconnect(&mut self, continues: bool) {
            (self.answer, self.read_begun, self.building) = (None, None, None);
            if !continues {
                self.position = self.committed;
            }
            self.report(Event::Connected { continues });
        }

        fn restart(&mut self, at: u8, ids: Ids) {
            (self.position, self.known, self.follow) = (at, None, Follow::default());
            let to = ids.newest;
            self.current = ids;
            self.report(Event::Loaded(to));
            self.reconnect(true);
        }

        fn check(&self) -> Result<(), String> {
            if let Some(known) = self.known {
                let rows: Vec<_> = (known..=self.committed).map(|at| self.rows(at)).collect();
                for id in 0..2 {
                    if rows.iter().all(|rows| rows[id]) && !self.current.contains(id) {
                        return Err(format!("id {id} is refused, and all are known until {known}"));
                    }
                }
            }
            // If another log continued from the position, the changes after the position in the generation would be
            // wrong.
            if self.follow.is_current() && self.current.newest > self.position {
                return Err("the generation has changes after the position".to_owned());
            }
            let has_read = self.read_begun.is_some() || self.building.is_some();
            let needs_none = self.follow.is_saveable() || self.follow.resumes_to().is_some();
            if !has_read && !needs_none && !self.follow.is_read_due() {
                return Err("no read of all ids ever begins".to_owned());
            }
            if self.follow.is_saveable() && self.current.has_too_many {
                return Err("a restart would forget that a read is required".to_owned());
            }
            Ok(())
        }

        /// Returns the possible next events.
        fn next(&self) -> Vec<(&'static str, World)> {
            let mut all = Vec::new();
            let mut add = |name, change: &dyn Fn(&mut World)| {
                let mut world = self.clone();
                change(&mut world);
                all.push((name, world));
            };
            if usize::from(self.committed) < self.commits.len() {
                add("commit", &|it| it.committed += 1);
            }
            if self.position < self.committed {
                add("deliver", &Self::deliver);
            }
            if self.follow.is_read_due() {
                add("begin", &Self::begin_read);
            }
            if self.read_begun.is_some() {
                for late in [[false, false], [false, true], [true, false], [true, true]] {
                    add("read", &|it| it.end_read(late));
                }
            }
            match self.answer {
                None => add("ask", &|it| it.answer = Some((it.committed, it.committed))),
                Some((moment, end)) => add("answer", &|it| {
                    it.answer = None;
                    it.report(Event::LogEnd(moment, end));
                }),
            }
            match &self.saved {
                Saved::Begun(at) => {
                    add("saved", &|it| it.saved = Saved::Complete(*at, it.current.clone()));
                }
                _ if self.follow.is_saveable() => {
                    add("save", &|it| it.saved = Saved::Begun(it.position));
                }
                _ => {}
            }
            if self.rare == 0 {
                return all;
            }
            let mut add_rare = |name, change: &dyn Fn(&mut World)| {
                let mut world = self.clone();
                world.rare -= 1;
                change(&mut world);
                all.push((name, world));
            };
            add_rare("continue", &|it| it.reconnect(true));
            add_rare("reconnect", &|it| it.reconnect(false));
            add_rare("rebuild", &|it| it.report(Event::RebuildDue));
            if self.read_begun.is_some() {
                add_rare("fail", &|it| {
                    (it.read_begun, it.building) = (None, None);
                    it.report(Event::ReadFailed);
                });
            }
            if let Saved::Complete(at, ids) = &self.saved {
                add_rare("restart", &|it| it.restart(*at, ids.clone()));
            }
            all
        }
    }

    /// Runs every order of commits, deliveries, full reads, queries, failures and restarts.
    #[test]
    fn no_order_of_events_refuses_an_id_that_is_known() {
        use Commit::{Delete, Enter, Insert, Leave, Truncate, Unexplained};
        let logs: [&[Commit]; 6] = [
            &[Insert(0), Delete(0), Insert(0)],
            &[Insert(0), Insert(1), Delete(0)],
            &[Insert(0), Unexplained(1), Insert(0)],
            &[Insert(0), Truncate(0), Insert(1)],
            &[Enter(0), Leave(0), Enter(0)],
            &[Insert(0), Leave(0), Delete(0)],
        ];
        let mut worlds = 0;
        for commits in logs {
            let mut seen = HashSet::new();
            let mut stack = vec![(World::new(commits), Vec::new())];
            while let Some((world, path)) = stack.pop() {
                if let Err(why) = world.check() {
                    panic!("{why}: {commits:?} after {path:?}");
                }
                for (name, next) in world.next() {
                    if seen.insert(next.clone()) {
                        let mut path = path.clone();
                        path.push(name);
                        stack.push((next, path));
                    }
                }
            }
            worlds += seen.len();
        }
        assert!(worlds > 100_000, "{worlds}");
    }

    /// Returns the state after events at the position 0.
    fn after<const N: usize>(follow: Follow<u8, u8>, events: [Event<u8, u8>; N]) -> Follow<u8, u8> {
        events.into_iter().fold(follow, |follow, event| follow.step(event, &0).0)
    }

    #[test]
    fn changes_that_require_a_read_do_not_keep_a_read_from_its_end() {
        let follow = Follow::default();
        let follow = after(follow, [Event::ReadBegun, Event::ReadRequired, Event::ReadEnded(0)]);
        assert!(follow.is_current() && follow.is_read_due() && !follow.is_saveable());
        let follow = after(follow, [Event::ReadBegun, Event::ReadEnded(0)]);
        assert!(follow.is_current() && !follow.is_read_due() && follow.is_saveable());
        // A rebuild is due until a full read succeeds. After a failed full read, the next full read contains no deleted
        // ids.
        let follow = after(follow, [Event::RebuildDue]);
        assert!(follow.is_read_due() && follow.is_saveable());
        let follow = after(follow, [Event::ReadBegun, Event::ReadRequired, Event::ReadFailed]);
        assert!(follow.is_read_due());
        let follow = after(follow, [Event::ReadBegun, Event::ReadEnded(0)]);
        assert!(!follow.is_read_due() && follow.is_saveable());
    }

    #[test]
    fn a_lost_change_makes_the_set_stale_at_once_and_a_late_read_has_no_effect() {
        let follow = Follow::<u8, u8>::default().step(Event::ReadBegun, &0).0;
        let asked = follow.step(Event::LogEnd(1, 1), &0).0;
        assert_eq!(asked.asked(), Some(&(1, 1)));
        let reconnected = asked.step(Event::Connected { continues: true }, &0).0;
        assert_eq!(reconnected.asked(), None, "the position may be on another server");
        let (follow, effects) = follow.step(Event::Lost, &0);
        assert_eq!((effects, follow.is_read_due()), (vec![Effect::MakeStale], true));
        let (follow, effects) = follow.step(Event::ReadEnded(0), &0);
        assert_eq!((effects, follow.is_read_due()), (vec![], true));
    }
}
