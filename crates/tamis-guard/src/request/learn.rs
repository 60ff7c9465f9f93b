//! Read after write: the answers of the service teach ids that it has just created.
//!
//! ```text
//! POST /products ──▶ service ──▶ 201 {"data":{"id":7}} ──▶ client
//!                                      │
//!                                      └─▶ IdSet::insert_recent("7")   before the client has the id
//! ```
//!
//! The client may ask for the id at once, before the source has seen the new row. A
//! [`LearnRule`] names the requests that create rows, and the places where the id is. An id is
//! learnt from an answer with a status from 200 to 299. An id that is learnt wrongly only reaches
//! the service, so the rules never cause a wrong refusal.
//!
//! The guard does not learn deletions from answers. The answer to a `DELETE` may come before the
//! commit, the deletion may be undone, or a trash may keep the row. Then the guard would refuse an
//! id that exists. Only the source reports deletions.

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
