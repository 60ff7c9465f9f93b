//! The sync states of a set, and the policy for unknown ids in each state.

use std::fmt;

/// How complete and current the ids of the guard are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncState {
    /// The first full read of the source is not complete.
    #[default]
    Warming,
    /// The guard contains all ids of the source, except ids that were committed within the last `stale_after`.
    Synced,
    /// The guard contained all ids at an earlier time, but changes after this time may be missing. The guard may not
    /// know new ids.
    Stale,
    /// The guard has read a whole filter. The responses of the upstream service have not yet proven that the guard
    /// decodes the filter correctly.
    Unproven,
}

impl SyncState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Warming, Self::Synced, Self::Stale, Self::Unproven];

    /// Returns the name of the state in the configuration and the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warming => "warming",
            Self::Synced => "synced",
            Self::Stale => "stale",
            Self::Unproven => "unproven",
        }
    }

    /// Returns the rank of the state: a worse state has a higher rank.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Synced => 0,
            Self::Unproven => 1,
            Self::Stale => 2,
            Self::Warming => 3,
        }
    }

    /// Returns the state of a set with two sources in these states: the worse state.
    pub(crate) fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    /// Tests whether the set is complete: its state is synced or unproven.
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

/// The policy for a request whose id is not in the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The request passes.
    #[default]
    Pass,
    /// The guard refuses the request.
    Reject,
    /// At most this number of requests pass per second. The guard refuses requests beyond this number.
    Limit(u32),
}

/// The policy for each state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The policy while the first full read of the source runs.
    pub warming: Policy,
    /// The policy while the guard contains all ids.
    pub synced: Policy,
    /// The policy while the set may lack changes.
    pub stale: Policy,
    /// The policy while the filter of the source is not proven.
    pub unproven: Policy,
}

impl Default for Policies {
    /// Returns policies that refuse unknown ids only in the state synced.
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
