//! Refuses requests for ids that do not exist before they reach the database.
//!
//! An [`IdSet`] knows which ids exist. A [`source`] keeps it up to date. A [`Route`] says where
//! requests have their ids. The [`GuardLayer`] decides about each request before a service gets it.
//! With the feature `proxy`, `Proxy` is such a service in front of any program.
#![forbid(unsafe_code)]

#[cfg(feature = "proxy")]
mod admin;
mod audit;
mod base;
#[cfg(feature = "proxy")]
mod bearer_token;
mod body;
mod cache_control;
#[cfg(any(feature = "sources", feature = "proxy"))]
mod certificates;
mod change_kind;
mod change_log;
#[cfg(feature = "proxy")]
mod config;
mod cors;
mod counters;
#[cfg(feature = "proxy")]
mod entity_tag;
mod escaped;
mod evidence;
#[cfg(feature = "proxy")]
mod fleet;
mod fold;
mod generation;
#[cfg(feature = "proxy")]
mod guard;
#[cfg(feature = "proxy")]
mod guard_error;
mod guard_future;
#[cfg(feature = "proxy")]
mod guard_handle;
#[cfg(feature = "proxy")]
mod guard_sets;
#[cfg(feature = "proxy")]
mod http_answer;
#[cfg(feature = "proxy")]
mod http_client;
#[cfg(feature = "proxy")]
mod http_server;
mod id;
mod id_set;
mod id_set_options;
mod json;
mod layer;
mod learn;
mod limiter;
mod negative_cache;
mod part;
mod path;
#[cfg(feature = "proxy")]
mod patient_stream;
mod place;
mod plain_io;
#[cfg(feature = "proxy")]
mod proxy;
mod refusal;
mod route;
#[cfg(feature = "layer")]
mod single_flight;
mod snapshot;
pub mod source;
mod state;
mod timed_state;
mod tombstones;
#[cfg(feature = "layer")]
mod turn;
mod verdict;
#[cfg(feature = "proxy")]
mod verdict_slot;

pub use audit::{AuditOptions, AuditReport, audit};
#[cfg(feature = "proxy")]
pub use bearer_token::{BearerToken, EmptyToken};
pub use body::GuardedBody;
pub use change_kind::ChangeKind;
#[cfg(feature = "proxy")]
pub use config::{Config, ConfigError, OneRoute};
pub use cors::Cors;
pub use counters::RouteCounters;
#[cfg(feature = "proxy")]
pub use entity_tag::EntityTag;
#[cfg(feature = "proxy")]
pub use fleet::{
    Change, Delta, DeltaError, FeedPosition, Knowledge, Publication, PublicationBody,
    PublicationOptions,
};
pub use generation::Generation;
#[cfg(feature = "proxy")]
pub use guard::Guard;
#[cfg(feature = "proxy")]
pub use guard_error::GuardError;
pub use guard_future::{AnswerBody, GuardFuture};
#[cfg(feature = "proxy")]
pub use guard_handle::GuardHandle;
#[cfg(feature = "proxy")]
pub use guard_sets::{GuardSet, GuardSets};
#[cfg(feature = "proxy")]
pub use http_client::{HttpAnswer, HttpClient, HttpClientError};
#[cfg(feature = "proxy")]
pub use http_server::HttpServer;
pub use id::{IdType, IntegerForm, NotAnId};
pub use id_set::IdSet;
pub use id_set_options::IdSetOptions;
pub use layer::{GuardLayer, GuardService};
pub use learn::{LearnBody, LearnCounters, LearnPlace, LearnPlaceError, LearnRule, NotLearnt};
pub use negative_cache::{Passed, RequestKey};
pub use path::{PathTemplate, TemplateError};
pub use place::{IdPlace, PlaceError};
#[cfg(feature = "proxy")]
pub use proxy::{Proxy, ProxyError, ProxyHandle, ProxyOptions, TlsFiles};
pub use refusal::Refusal;
pub use route::{Required, Route, RouteId};
#[cfg(feature = "layer")]
pub use single_flight::SingleFlight;
pub use snapshot::{Snapshot, SnapshotError, SnapshotHead, SnapshotOptions, SnapshotStore};
pub use state::{Policies, Policy, SyncState};
pub use tamis::PlanError;
pub use verdict::{PassReason, RefuseReason, Verdict};
