//! When an answer may be sent.
//!
//! An insert under shared access sets bits before it appends its frame. It holds a ticket during
//! that time. An answer waits for all tickets that were open when it was computed. After that wait,
//! every change that the answer saw has a position. The answer is sent once the stream is written
//! up to that position, or durable with [`FsyncPolicy::Always`].

use crate::persistence::log::state::{FsyncPolicy, LogState, SYNC_EVERY_MILLIS};

/// What an answer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All tickets below this one.
    Tickets(u64),
    /// All frames of the log up to this position.
    Position(u64),
}

/// Whether an answer may be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    Waits,
    /// The changes that the answer depends on cannot be written, for this reason.
    Failed(String),
}

/// How long bytes may wait for a sync before writers wait for it, in milliseconds.
const MAX_UNSYNCED_MILLIS: u64 = SYNC_EVERY_MILLIS + 2000;

impl LogState {
    /// Records that an insert under shared access begins; returns its ticket.
    pub fn begin_insert(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.tickets.insert(ticket);
        ticket
    }

    /// Records that the insert with this ticket has appended its frame or changed nothing.
    pub fn end_insert(&mut self, ticket: u64) {
        self.tickets.remove(&ticket);
    }

    /// Returns what an answer that has just been computed waits for.
    pub fn needs(&self) -> Needs {
        if self.tickets.is_empty() {
            Needs::Position(self.end)
        } else {
            Needs::Tickets(self.next_ticket)
        }
    }

    /// Returns whether an answer may be sent. `is_change` means that its command may have changed a
    /// value.
    ///
    /// While the log cannot be written, answers to commands that only read are sent. They may show
    /// changes that exist only in memory. The clients that made these changes got an error.
    pub fn readiness(&self, needs: &mut Needs, is_change: bool, now_millis: u64) -> Readiness {
        if let Needs::Tickets(below) = *needs
            && self.tickets.first().is_none_or(|first| *first >= below)
        {
            *needs = Needs::Position(self.end);
        }
        let kept = if self.sync == FsyncPolicy::Always { self.synced } else { self.written };
        let is_kept = matches!(*needs, Needs::Position(position) if position <= kept);
        match self.failure() {
            Some(error) if is_change && (!is_kept || self.gone.is_some()) => {
                Readiness::Failed(error.to_owned())
            }
            None if !is_kept || is_change && self.is_sync_late(now_millis) => Readiness::Waits,
            _ => Readiness::Ready,
        }
    }

    /// Tests whether bytes wait for a sync for too long.
    fn is_sync_late(&self, now_millis: u64) -> bool {
        let mut since = self.unsynced_since.iter().chain(&self.uncovered_since);
        self.sync == FsyncPolicy::EverySecond
            && since.any(|since| now_millis.saturating_sub(*since) > MAX_UNSYNCED_MILLIS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::write;
    use super::*;

    #[test]
    fn an_answer_waits_for_inserts_that_it_may_have_seen() {
        let mut state = LogState::new(0, FsyncPolicy::Always);
        let other = state.begin_insert();
        let mut needs = state.needs();
        let later = state.begin_insert();
        state.append(|out| out.extend(b"later"));
        state.end_insert(later);
        assert_eq!(state.readiness(&mut needs, true, 0), Readiness::Waits);
        state.append(|out| out.extend(b"other"));
        state.end_insert(other);
        assert_eq!(state.readiness(&mut needs, true, 0), Readiness::Waits, "not durable");
        write(&mut state);
        assert_eq!(state.next_sync(0), Some((state.end, false)));
        assert_eq!(state.readiness(&mut needs, true, 0), Readiness::Waits);
        state.sync_ended(Ok(()), true);
        assert_eq!(state.readiness(&mut needs, true, 0), Readiness::Ready);
    }

    #[test]
    fn writers_wait_for_a_late_sync_and_readers_do_not() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.append(|out| out.extend(b"one"));
        write(&mut state);
        assert!(state.next_sync(1000).is_some());
        state.append(|out| out.extend(b"two"));
        write(&mut state);
        let readiness = |state: &LogState, is_change, now| {
            let mut needs = state.needs();
            state.readiness(&mut needs, is_change, now)
        };
        assert_eq!(readiness(&state, true, 3000), Readiness::Ready);
        assert_eq!(readiness(&state, true, 3001), Readiness::Waits);
        assert_eq!(readiness(&state, false, 3001), Readiness::Ready);
        state.sync_ended(Ok(()), true);
        assert_eq!(
            readiness(&state, true, 3000),
            Readiness::Ready,
            "the second write is at 0 + 3000"
        );
    }
}
