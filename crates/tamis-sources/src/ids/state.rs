//! How well the guard knows the source, and what it does in each case.

use std::fmt;

/// How well a guard knows which ids exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncState {
    /// The first read of the source is not complete.
    #[default]
    Warming,
    /// The guard has all ids of the source, except those of the last moments.
    Synced,
    /// The guard had all ids, and has lost the changes since. New ids may be unknown.
    Stale,
    /// The guard has read a whole filter, and no answers of the program have shown yet that it reads
    /// the filter as the program writes it.
    Unproven,
}

impl SyncState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Warming, Self::Synced, Self::Stale, Self::Unproven];

    /// Returns the name of the state, as the configuration and the metrics write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warming => "warming",
            Self::Synced => "synced",
            Self::Stale => "stale",
            Self::Unproven => "unproven",
        }
    }

    /// Tests whether the guard has read all that the source has.
    #[must_use]
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Synced | Self::Unproven)
    }
}

impl fmt::Display for SyncState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What happens to a request for an id that the filter does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It passes.
    #[default]
    Pass,
    /// It is refused.
    Reject,
    /// So many of them pass each second. Further ones are refused.
    Limit(u32),
}

/// The policy for each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// While the first read of the source runs.
    pub warming: Policy,
    /// While the guard has all ids.
    pub synced: Policy,
    /// While changes are missing.
    pub stale: Policy,
    /// While the filter of a source is not proven.
    pub unproven: Policy,
}

impl Default for Policies {
    /// Refuses unknown ids only while the guard has all ids.
    fn default() -> Self {
        Self {
            warming: Policy::Pass,
            synced: Policy::Reject,
            stale: Policy::Pass,
            unproven: Policy::Pass,
        }
    }
}

impl Policies {
    /// Returns the policy for a state.
    #[must_use]
    pub fn of(&self, state: SyncState) -> Policy {
        match state {
            SyncState::Warming => self.warming,
            SyncState::Synced => self.synced,
            SyncState::Stale => self.stale,
            SyncState::Unproven => self.unproven,
        }
    }
}
