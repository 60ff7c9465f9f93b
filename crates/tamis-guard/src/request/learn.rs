//! Read after write: the guard learns new ids from the responses of the upstream service.
//!
//! ```text
//! POST /products ──▶ service ──▶ 201 {"data":{"id":7}} ──▶ client
//!                                      │
//!                                      └─▶ IdSet::insert_recent("7")   before the client has the id
//! ```
//!
//! The client may request the new id immediately, before the source has seen the new row. A [`LearnRule`] selects the
//! requests that create rows, and the places that contain the new id. The guard learns an id only from a response with
//! a status from 200 to 299. If the guard learns a wrong id, the only effect is that requests for the wrong id reach
//! the upstream service. A learn rule never causes a wrong refusal.
//!
//! The guard does not learn deletions from responses. The response to a `DELETE` may precede the commit, the deletion
//! may be undone, or a soft delete may keep the row. After learning a wrong deletion, the guard would refuse an
//! existing id. Only the source reports deletions.

mod body;
mod counters;
mod json_end;
mod lessons;
mod location;
mod place;
mod rule;

pub use body::LearnBody;
pub use counters::{LearnCounters, NotLearnt};
pub(crate) use lessons::Lessons;
pub use place::{LearnPlace, LearnPlaceError};
pub use rule::LearnRule;
