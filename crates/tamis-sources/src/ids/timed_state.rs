//! The state of a set with a deadline. After the deadline, the state synced counts as stale.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use crate::ids::state::SyncState;

/// The state of a set, and the deadline of the state synced.
///
/// A thread of the source sets the state to stale. The thread may run late, or the operating system may suspend the
/// process. A decision about an unknown id therefore also compares the deadline with the clock.
#[derive(Debug)]
pub(crate) struct TimedState {
    state: AtomicU8,
    /// The deadline of the state synced, in nanoseconds after `created`.
    deadline: AtomicU64,
    created: Instant,
}

/// A state and its deadline, which were read before the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadState {
    state: SyncState,
    deadline: u64,
}

impl ReadState {
    /// The state synced without a deadline.
    pub(crate) const BEST: Self = Self { state: SyncState::Synced, deadline: u64::MAX };

    /// Returns the state of a set with two sources in these states: the worse state, with the earlier deadline. Both
    /// sources must have the same `created`.
    pub(crate) fn worse(self, other: Self) -> Self {
        Self { state: self.state.worse(other.state), deadline: self.deadline.min(other.deadline) }
    }
}

impl TimedState {
    /// Creates the state with the value warming. Deadlines count from `created`.
    pub(crate) fn new(created: Instant) -> Self {
        Self {
            state: AtomicU8::new(SyncState::Warming as u8),
            deadline: AtomicU64::new(u64::MAX),
            created,
        }
    }

    /// Returns the state that was set.
    pub(crate) fn get(&self) -> SyncState {
        // Acquire: a reader that sees `Synced` also sees the generation that was published before the state was set.
        SyncState::ALL[usize::from(self.state.load(Ordering::Acquire))]
    }

    /// Sets a state without a deadline.
    pub(crate) fn set(&self, state: SyncState) {
        // If the new state is not synced, the deadline stays unchanged. A concurrent decision may have read `Synced`,
        // and may read the deadline afterwards.
        if state == SyncState::Synced {
            self.deadline.store(u64::MAX, Ordering::Release);
        }
        self.state.store(state as u8, Ordering::Release);
    }

    /// Sets the state to synced until `end`.
    pub(crate) fn set_synced_until(&self, end: Instant) {
        let nanos = end.saturating_duration_since(self.created).as_nanos();
        // Release: a reader that sees the deadline also sees the ids that the source inserted before this call.
        self.deadline.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
        self.state.store(SyncState::Synced as u8, Ordering::Release);
    }

    /// Reads the state and the deadline without reading the clock.
    pub(crate) fn read(&self) -> ReadState {
        ReadState { state: self.get(), deadline: self.deadline.load(Ordering::Acquire) }
    }

    /// Returns the state for a decision now. The result is stale if `read` was synced and its deadline has passed.
    pub(crate) fn at_now(&self, read: ReadState) -> SyncState {
        let is_over = || self.created.elapsed().as_nanos() >= u128::from(read.deadline);
        if read.state == SyncState::Synced && is_over() { SyncState::Stale } else { read.state }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_state_synced_ends_without_a_timer() {
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let state = TimedState::new(now);
        let present = || state.at_now(state.read());
        assert_eq!(present(), SyncState::Warming);
        state.set_synced_until(now + minute);
        assert_eq!(present(), SyncState::Synced);
        // After a suspension of the process, the deadline may have passed before a thread sets the state to stale.
        state.set_synced_until(now);
        assert_eq!((state.get(), present()), (SyncState::Synced, SyncState::Stale));
        // A program sets the state itself after its source has ended.
        state.set(SyncState::Stale);
        state.set(SyncState::Synced);
        assert_eq!(present(), SyncState::Synced);
    }

    #[test]
    fn two_sources_are_synced_until_the_earlier_deadline() {
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let [one, two] = [TimedState::new(now), TimedState::new(now)];
        let present = || one.at_now(ReadState::BEST.worse(one.read()).worse(two.read()));
        assert_eq!(present(), SyncState::Warming);
        one.set_synced_until(now + minute);
        assert_eq!(present(), SyncState::Warming);
        two.set_synced_until(now + minute);
        assert_eq!(present(), SyncState::Synced);
        two.set_synced_until(now);
        assert_eq!(present(), SyncState::Stale);
        one.set(SyncState::Warming);
        assert_eq!(present(), SyncState::Warming);
    }
}
