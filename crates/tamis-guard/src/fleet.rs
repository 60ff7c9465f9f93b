//! One guard leads, others follow: the leader publishes a set of ids over HTTP, and followers keep
//! a copy of it.
//!
//! ```text
//! source ──▶ IdSet ──▶ feed.rs (recent changes) ──▶ delta.rs ──▶ GET /filters/NAME?since=POSITION
//!              └─────▶ snapshot ─────────────────────────────▶ GET /filters/NAME
//! ```
//!
//! `docs/formats/delta.md` has the bytes and the proof that a synced follower has all ids.

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
