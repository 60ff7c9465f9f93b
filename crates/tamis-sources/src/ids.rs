//! The set of ids: which ids exist, and how current this data is.

pub(crate) mod base;
pub(crate) mod batch;
pub(crate) mod change_kind;
pub(crate) mod change_listener;
pub(crate) mod evidence;
pub(crate) mod fold;
pub(crate) mod folds;
pub(crate) mod full_read;
pub(crate) mod generation;
pub(crate) mod generations;
pub(crate) mod id;
pub(crate) mod id_error;
pub(crate) mod id_set;
pub(crate) mod id_set_options;
pub(crate) mod limiter;
pub(crate) mod negative_cache;
pub(crate) mod part;
pub(crate) mod snapshot;
pub(crate) mod source_ids;
pub(crate) mod state;
pub(crate) mod timed_state;
pub(crate) mod to_id;
pub(crate) mod tombstones;
pub(crate) mod verdict;
