//! The decision about a request.

#[cfg(feature = "proxy")]
pub(crate) mod authorize;
pub(crate) mod body;
pub(crate) mod body_text;
pub(crate) mod cors;
pub(crate) mod counters;
pub(crate) mod decide;
pub(crate) mod decision;
pub(crate) mod form;
pub(crate) mod guard_future;
pub(crate) mod json;
pub(crate) mod layer;
pub(crate) mod learn;
pub(crate) mod path;
pub(crate) mod place;
pub(crate) mod refusal;
pub(crate) mod route;
pub(crate) mod route_error;
pub(crate) mod route_id;
pub(crate) mod routes;
#[cfg(feature = "layer")]
pub(crate) mod single_flight;
#[cfg(feature = "layer")]
pub(crate) mod turn;
#[cfg(feature = "proxy")]
pub(crate) mod verdict_slot;
