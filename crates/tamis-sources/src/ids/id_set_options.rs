//! The settings of a set of ids.

use std::time::Duration;

use crate::ids::id::IdType;
use crate::ids::state::Policies;

/// The settings of an [`IdSet`](crate::IdSet).
#[derive(Clone, Debug)]
pub struct IdSetOptions {
    /// What the ids look like.
    pub id: IdType,
    /// How many ids the first generation is planned for. It grows beyond them.
    pub items: u64,
    /// The false positive rate, a probability.
    pub rate: f64,
    /// What happens to unknown ids in each state.
    pub policies: Policies,
    /// How many ids of the negative cache are kept. 0 turns it off. A request that the service
    /// answered with 404 is refused when the same request comes again.
    pub negative_ids: u64,
    /// How long an id stays in the negative cache.
    pub negative_for: Duration,
    /// How long a new id passes although a deletion of it may still be on its way, and how long the
    /// negative cache does not keep the answer 404 for it.
    pub recent_for: Duration,
    /// Integer ids at most this far above the highest known one may pass.
    pub next_ids: u64,
    /// How many such ids pass each second.
    pub next_per_second: u32,
    /// True if the guard refuses ids without a proof that it reads the filter of a source as the
    /// program writes it, and if no answer of the program makes the set stale.
    pub is_trusted: bool,
}

impl IdSetOptions {
    /// Returns the usual settings for ids of a type.
    #[must_use]
    pub fn new(id: IdType) -> Self {
        Self {
            id,
            items: 1_000_000,
            rate: 0.001,
            policies: Policies::default(),
            negative_ids: 100_000,
            negative_for: Duration::from_secs(10),
            recent_for: Duration::from_secs(60),
            next_ids: 0,
            next_per_second: 100,
            is_trusted: false,
        }
    }
}
