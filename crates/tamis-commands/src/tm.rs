//! Implements `TM.*`, the commands that exist only in Tamis, for every kind of filter.

mod advance;
mod clear;
mod delete;
mod file;
mod info;
mod merge;
mod options;
mod plan;
mod reserve;

pub(crate) use advance::advance;
pub(crate) use clear::clear;
pub(crate) use delete::{count, delete, remove_each};
pub use file::{decode_file, load_decoded, load_refusal};
pub(crate) use file::{dump, load};
pub(crate) use info::info;
pub use info::info_reply;
pub use merge::merge;
pub use plan::{PlanCurve, plan, plan_curves};
pub(crate) use reserve::reserve;
pub use reserve::{made_like, reserve_like};
