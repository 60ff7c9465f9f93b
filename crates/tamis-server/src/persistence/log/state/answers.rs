//! Decides when a reply may be sent.
//!
//! An insert under shared access sets bits before the insert appends its frame. From the first bit
//! until the frame is appended, the insert holds a ticket (a number). A reply waits for all inserts
//! that held a ticket when the reply was computed. After the wait for these inserts, every change
//! that the reply depends on has a position. The reply is sent after the stream is written up to
//! the highest position of these changes. With [`FsyncPolicy::Always`], the reply is sent only
//! after the stream is durable up to that position.

use crate::persistence::log::state::{FsyncPolicy, LogState, SYNC_EVERY_MILLIS};

/// The condition that a reply waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All inserts with tickets below this number must have ended.
    Tickets(u64),
    /// All frames up to this position must be written.
    Position(u64),
}

/// The state of a reply that waits for the log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    Waits,
    /// The changes that the reply depends on cannot be written. The text contains the reason for
    /// the failure of the write.
    Failed(String),
}

/// The maximum time that written bytes wait for a sync, in milliseconds. After this time, the
/// replies to changes wait for the sync.
const MAX_UNSYNCED_MILLIS: u64 = SYNC_EVERY_MILLIS + 2000;

impl LogState {
    /// Records that an insert under shared access begins. Returns the ticket of the insert.
    pub fn begin_insert(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.tickets.insert(ticket);
        ticket
    }

    /// Records that the insert with this ticket has appended its frame or has changed nothing.
    pub fn end_insert(&mut self, ticket: u64) {
        self.tickets.remove(&ticket);
    }

    /// Returns the condition that a newly computed reply must wait for.
    pub fn needs(&self) -> Needs {
        if self.tickets.is_empty() {
            Needs::Position(self.end)
        } else {
            Needs::Tickets(self.next_ticket)
        }
    }

    /// Returns whether a reply may be sent. `is_change` is true if the command of the reply may
    /// have changed a value.
    ///
    /// While the log cannot be written, the server sends replies to read-only commands. A reply to
    /// a read-only command may contain changes that exist only in memory. A client whose change
    /// exists only in memory got an error.
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

    /// Tests whether written bytes have waited for a sync longer than the maximum time.
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
