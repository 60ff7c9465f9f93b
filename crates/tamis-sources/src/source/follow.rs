//! What a source knows about the table that it follows: a pure state machine, without sockets and clocks.
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
//! In the phase `Current`, the source may read all ids again into a second generation (a [`Renewal`]),
//! because many ids are deleted, or because a caller asks for it. The generation in use stays right
//! meanwhile.
//!
//! The driver of a source does all input and output. It reports each [`Event`], carries out each
//! [`Effect`], and begins a read while [`Follow::is_read_due`] is true. A generation gets all changes that the
//! log delivers after the begin of its read.

/// A place in the log of changes.
pub trait LogPosition: Clone {
    /// Tests whether this place is at or after another one.
    fn has_reached(&self, other: &Self) -> bool;
}

/// A source that polls has no log: each poll has all changes.
impl LogPosition for () {
    fn has_reached(&self, (): &Self) -> bool {
        true
    }
}

/// How well the generation in use agrees with the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase<P> {
    /// The generation in use lacks changes, or there is none. All ids must be read.
    #[default]
    Lost,
    /// All ids are being read.
    Snapshot,
    /// The generation that was read has changes up to this place, and not all changes before it.
    CatchingUp(P),
    /// The generation that was loaded from the disk, and is in use, has changes up to this place, and not
    /// all changes before it.
    Resuming(P),
    /// The generation in use has all changes up to the position of the log.
    Current(Renewal<P>),
}

/// A read of all ids into a second generation, while the first one is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Renewal<P> {
    None,
    /// The driver must begin the read.
    Due,
    Reading,
    /// All ids are read. The generation is published when the log has reached this place.
    CatchingUp(P),
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<P, M> {
    /// A connection begins. Without continuation, the generation in use lacks what was committed since the last
    /// connection; what was known before still holds.
    Connected {
        /// True if the log goes on where the last connection has ended.
        continues: bool,
    },
    /// A generation was loaded from the disk and published. It has no change after this place.
    Loaded(P),
    /// All changes before the position are applied.
    Reached,
    /// The generation in use lacks changes from now on.
    Lost,
    /// The generation in use, or the one that is being read, has ids that no longer exist.
    ReadRequired,
    /// The generation in use lacks nothing. A read of all ids would make it smaller or newer.
    RebuildDue,
    /// The driver has started a generation, and reads all ids.
    ReadBegun,
    /// All ids are read. Each row was read before the log reached this place.
    ReadEnded(P),
    /// The read has ended with an error.
    ReadFailed,
    /// The log ended at this place, at some time after this moment.
    LogEnd(M, P),
}

/// What the driver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<M> {
    /// Publishes the generation that was read.
    Publish,
    /// Lets all ids pass until the next [`KnownUntil`](Self::KnownUntil).
    MakeStale,
    /// The set has all ids that were committed before this moment.
    KnownUntil(M),
}

/// What a source knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Follow<P, M> {
    phase: Phase<P>,
    /// A moment, and the end of the log after it.
    asked: Option<(M, P)>,
    /// Whether the generation in use has ids that no longer exist.
    excess: Excess,
}

/// Whether the generation in use has ids that no longer exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Excess {
    #[default]
    None,
    /// Until the next generation is published.
    Once,
    /// The generation that is being read has such ids, too.
    Twice,
}

impl<P, M> Default for Follow<P, M> {
    fn default() -> Self {
        Self { phase: Phase::Lost, asked: None, excess: Excess::None }
    }
}

impl<P: LogPosition, M> Follow<P, M> {
    /// Tests whether the driver must begin a read of all ids. The driver drops a read that still goes on: the
    /// generation of that read lacks changes.
    pub fn is_read_due(&self) -> bool {
        matches!(self.phase, Phase::Lost | Phase::Current(Renewal::Due))
    }

    /// Tests whether the generation in use has all changes up to the position of the log.
    pub fn is_current(&self) -> bool {
        matches!(self.phase, Phase::Current(_))
    }

    /// Tests whether the driver may write the generation in use to the disk.
    pub fn is_saveable(&self) -> bool {
        self.is_current() && self.excess == Excess::None
    }

    /// Tests whether the generation in use lacks changes, and no read of all ids goes on.
    pub fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost)
    }

    /// Returns the place up to which a generation from the disk has changes, until the log has reached this place.
    pub fn resumes_to(&self) -> Option<&P> {
        if let Phase::Resuming(to) = &self.phase { Some(to) } else { None }
    }

    /// Returns the last [`Event::LogEnd`] that the log has not reached yet.
    pub fn asked(&self) -> Option<&(M, P)> {
        self.asked.as_ref()
    }

    /// Applies an event. The log is at `position` now. Returns the new state, and what the driver does.
    pub fn step(mut self, event: Event<P, M>, position: &P) -> (Self, Vec<Effect<M>>) {
        let mut effects = Vec::new();
        self.phase = match (event, self.phase) {
            (Event::Connected { continues }, phase) => {
                self.asked = None;
                // The connections of a read are gone.
                if continues { phase.without_read() } else { Phase::Lost }
            }
            (Event::Loaded(to), _) => Phase::Resuming(to),
            (Event::Lost, _) => {
                self.excess = Excess::None;
                effects.push(Effect::MakeStale);
                Phase::Lost
            }
            (Event::ReadRequired, phase) => {
                // The read goes on: a log with many such changes would never let a read end.
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

    /// Publishes the generation, and answers the question for the end of the log, if the log has reached the
    /// places for which they wait.
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
    /// Tests whether a read goes on, or has ended and is not published yet.
    fn has_read(&self) -> bool {
        match self {
            Self::Snapshot | Self::CatchingUp(_) => true,
            Self::Current(renewal) => {
                matches!(renewal, Renewal::Reading | Renewal::CatchingUp(_))
            }
            Self::Lost | Self::Resuming(_) => false,
        }
    }

    /// Returns the phase in which a read is due, unless one goes on.
    fn with_due_read(self) -> Self {
        match self {
            Self::Current(Renewal::None) => Self::Current(Renewal::Due),
            phase => phase,
        }
    }

    /// Returns the phase after a read that has no result.
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
        /// Inserts an id by a statement that the log does not explain.
        Unexplained(u8),
        /// Deletes an id, and the log says only that ids are deleted.
        Truncate(u8),
    }

    /// A generation.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    struct Ids {
        present: [bool; 2],
        deleted: [bool; 2],
        /// No change after this place is in it.
        newest: u8,
        /// The ids that it has, and should not have, make another read necessary.
        has_too_many: bool,
    }

    impl Ids {
        fn apply(&mut self, commit: Commit, at: u8) {
            match commit {
                Commit::Insert(id) => {
                    (self.present[usize::from(id)], self.deleted[usize::from(id)]) = (true, false);
                }
                Commit::Delete(id) => self.deleted[usize::from(id)] = true,
                Commit::Truncate(_) => self.has_too_many = true,
                Commit::Unexplained(_) => {}
            }
            self.newest = self.newest.max(at);
        }

        fn contains(&self, id: usize) -> bool {
            self.present[id] && !self.deleted[id]
        }
    }

    /// A copy of the generation in use, which is written while changes go on.
    #[derive(Clone, PartialEq, Eq, Hash)]
    enum Saved {
        Nothing,
        /// It has all changes before this place.
        Begun(u8),
        /// It has all changes before this place.
        Complete(u8, Ids),
    }

    /// The database, the driver and the state machine.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        commits: &'static [Commit],
        /// How many of them are committed. It is the clock, too.
        committed: u8,
        position: u8,
        follow: Follow<u8, u8>,
        current: Ids,
        building: Option<Ids>,
        /// The clock at the begin of the read that goes on.
        read_begun: Option<u8>,
        /// The answer about the end of the log that is on its way.
        answer: Option<(u8, u8)>,
        known: Option<u8>,
        saved: Saved,
        /// How many rare events may still happen.
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

        /// Returns the rows after some commits.
        fn rows(&self, at: u8) -> [bool; 2] {
            let mut rows = [false; 2];
            for commit in &self.commits[..at.into()] {
                match *commit {
                    Commit::Insert(id) | Commit::Unexplained(id) => rows[usize::from(id)] = true,
                    Commit::Delete(id) | Commit::Truncate(id) => rows[usize::from(id)] = false,
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
                        // A copy of another generation is not the one that was begun.
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

        /// Ends the read. Each row was read at the begin or at the end: `late` says which.
        fn end_read(&mut self, late: [bool; 2]) {
            let begun = self.read_begun.take().unwrap();
            let (before, after) = (self.rows(begun), self.rows(self.committed));
            let building = self.building.as_mut().unwrap();
            for (id, is_late) in late.into_iter().enumerate() {
                // A row that was deleted meanwhile stays deleted.
                building.present[id] |= if is_late { after[id] } else { before[id] };
            }
            building.newest = building.newest.max(self.committed);
            self.report(Event::ReadEnded(self.committed));
        }

        /// Delivers the next transaction of the log.
        fn deliver(&mut self) {
            let commit = self.commits[usize::from(self.position)];
            for ids in std::iter::once(&mut self.current).chain(&mut self.building) {
                ids.apply(commit, self.position + 1);
            }
            match commit {
                Commit::Unexplained(_) => self.report(Event::Lost),
                Commit::Truncate(_) => self.report(Event::ReadRequired),
                Commit::Insert(_) | Commit::Delete(_) => {}
            }
            self.position += 1;
            self.report(Event::Reached);
        }

        /// Connects again. Without a continuation, the log begins at its end.
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
            // It would be wrong on another log that goes on from the position.
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

        /// Returns what may happen next.
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

    /// Runs every order of commits, deliveries, reads, questions, failures and restarts.
    #[test]
    fn no_order_of_events_refuses_an_id_that_is_known() {
        use Commit::{Delete, Insert, Truncate, Unexplained};
        let logs: [&[Commit]; 4] = [
            &[Insert(0), Delete(0), Insert(0)],
            &[Insert(0), Insert(1), Delete(0)],
            &[Insert(0), Unexplained(1), Insert(0)],
            &[Insert(0), Truncate(0), Insert(1)],
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

    #[test]
    fn changes_that_require_a_read_do_not_keep_a_read_from_its_end() {
        let mut follow = Follow::<u8, u8>::default();
        for event in [Event::ReadBegun, Event::ReadRequired, Event::ReadEnded(0)] {
            follow = follow.step(event, &0).0;
        }
        assert!(follow.is_current() && follow.is_read_due() && !follow.is_saveable());
        for event in [Event::ReadBegun, Event::ReadEnded(0)] {
            follow = follow.step(event, &0).0;
        }
        assert!(follow.is_current() && !follow.is_read_due() && follow.is_saveable());
        // A rebuild is due until a read has a result. The read after a failed one has no ids too many.
        follow = follow.step(Event::RebuildDue, &0).0;
        assert!(follow.is_read_due() && follow.is_saveable());
        for event in [Event::ReadBegun, Event::ReadRequired, Event::ReadFailed] {
            follow = follow.step(event, &0).0;
        }
        assert!(follow.is_read_due());
        for event in [Event::ReadBegun, Event::ReadEnded(0)] {
            follow = follow.step(event, &0).0;
        }
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
