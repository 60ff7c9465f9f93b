//! Refuses requests for ids that do not exist before they reach the database.
//!
//! An [`IdSet`] knows which ids exist. A [`source`] keeps it up to date. A [`Route`] says where
//! requests have their ids. The [`GuardLayer`] decides about each request before a service gets it.
//! With the feature `proxy`, `Proxy` is such a service in front of any program.
#![forbid(unsafe_code)]

#[cfg(feature = "config")]
mod admin;
mod audit;
mod base;
mod body;
#[cfg(feature = "config")]
mod config;
mod counters;
mod generation;
#[cfg(feature = "config")]
mod guard;
#[cfg(feature = "config")]
mod guard_error;
mod guard_future;
#[cfg(feature = "config")]
mod guard_handle;
#[cfg(feature = "config")]
mod guard_sets;
mod id;
mod id_set;
mod json;
mod layer;
mod learn;
mod limiter;
mod part;
mod path;
mod place;
mod plain_io;
#[cfg(feature = "proxy")]
mod proxy;
mod refusal;
mod route;
#[cfg(feature = "single-flight")]
mod single_flight;
mod snapshot;
pub mod source;
mod state;
mod tombstones;
#[cfg(feature = "single-flight")]
mod turn;
mod verdict;

pub use audit::{AuditOptions, AuditReport, audit};
pub use body::GuardedBody;
#[cfg(feature = "config")]
pub use config::{Config, ConfigError, OneRoute};
pub use counters::RouteCounters;
pub use generation::Generation;
#[cfg(feature = "config")]
pub use guard::Guard;
#[cfg(feature = "config")]
pub use guard_error::GuardError;
pub use guard_future::{AnswerBody, GuardFuture};
#[cfg(feature = "config")]
pub use guard_handle::GuardHandle;
#[cfg(feature = "config")]
pub use guard_sets::{GuardSet, GuardSets};
pub use id::{IdType, IntegerForm, NotAnId};
pub use id_set::{IdSet, IdSetOptions, Passed};
pub use layer::{GuardLayer, GuardService};
pub use learn::{LearnBody, LearnCounters, LearnPlace, LearnPlaceError, LearnRule, NotLearnt};
pub use path::{PathTemplate, TemplateError};
pub use place::{IdPlace, PlaceError};
#[cfg(feature = "proxy")]
pub use proxy::{Proxy, ProxyError, ProxyHandle, ProxyOptions, TlsFiles};
pub use refusal::Refusal;
pub use route::{Required, Route, RouteId};
#[cfg(feature = "single-flight")]
pub use single_flight::SingleFlight;
pub use snapshot::{SnapshotError, SnapshotHead, SnapshotOptions, SnapshotStore};
pub use state::{Policies, Policy, SyncState};
pub use tamis::PlanError;
pub use verdict::{PassReason, RefuseReason, Verdict};
