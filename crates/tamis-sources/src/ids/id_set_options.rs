//! The settings of a set of ids.

use std::time::Duration;

use crate::ids::id::IdType;
use crate::ids::state::Policies;

/// The settings of an [`IdSet`](crate::IdSet).
#[derive(Clone, Debug)]
pub struct IdSetOptions {
    /// The type of the ids.
    pub id: IdType,
    /// The planned number of ids of the first generation. The generation grows if the source has more ids than planned.
    pub items: u64,
    /// The false positive rate, a probability between 0 and 1.
    pub rate: f64,
    /// The policy for unknown ids in each state.
    pub policies: Policies,
    /// The maximum number of requests in the negative cache. The value 0 turns the cache off. The guard refuses a
    /// request if the upstream service recently responded with 404 to the same request. A request takes at most 44
    /// bytes, so a million requests take at most 44 MB. The cache has at most 16 requests per id. A full cache replaces
    /// random requests.
    pub negative_requests: u64,
    /// The time for which a request stays in the negative cache. A change of the id, a response with a status from 200
    /// to 299 for the id, and a new generation remove the request earlier. If the source does not report the changes of
    /// rows whose id stays the same, a long time refuses requests for a row that becomes visible.
    pub negative_for: Duration,
    /// The time during which a new id counts as recent. A recent id passes, even if the source still reports an older
    /// deletion. The negative cache does not store a 404 for an id that was changed within this time. The time must
    /// exceed the lag of the replicas and caches from which the upstream service reads.
    pub recent_for: Duration,
    /// An integer id may pass if the id exceeds the highest id in the set by at most this value.
    pub next_ids: u64,
    /// The maximum number of ids per second that pass because of `next_ids`.
    pub next_per_second: u32,
    /// True if the guard trusts its decoding of the source filter without a proof. If the field is true, responses of
    /// the upstream service never make the set stale.
    pub is_trusted: bool,
}

/// Returns the default settings for ids of a type.
impl From<IdType> for IdSetOptions {
    fn from(id: IdType) -> Self {
        Self::new(id)
    }
}

impl IdSetOptions {
    /// Returns the default settings for ids of a type.
    #[must_use]
    pub fn new(id: IdType) -> Self {
        Self {
            id,
            items: 1_000_000,
            rate: 0.001,
            policies: Policies::default(),
            negative_requests: 1_000_000,
            negative_for: Duration::from_secs(10),
            recent_for: Duration::from_secs(60),
            next_ids: 0,
            next_per_second: 100,
            is_trusted: false,
        }
    }
}
