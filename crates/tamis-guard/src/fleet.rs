//! Replication between guards: a leader publishes a set of ids over HTTP, and followers keep a copy of the set.
//!
//! ```text
//! source ──▶ IdSet ──▶ feed.rs (recent changes) ──▶ delta.rs ──▶ GET /filters/NAME?since=POSITION
//!              └─────▶ snapshot ─────────────────────────────▶ GET /filters/NAME
//! ```
//!
//! `docs/formats/delta.md` defines the bytes of a delta, and proves that a synced follower contains all ids.

mod delta;
mod feed;
mod leader;
mod position;
mod publication;
mod shared_snapshot;

pub use delta::{Change, Delta, DeltaError, Knowledge};
pub use leader::{LeaderError, LeaderOptions};
pub use position::FeedPosition;
pub(crate) use publication::unauthorized;
pub use publication::{Publication, PublicationOptions};
pub use shared_snapshot::PublicationBody;
