//! Refuses requests for nonexistent ids before the requests reach the database.
//!
//! An [`IdSet`] contains the ids that exist. A [`source`] keeps the set up to date. A [`Route`] defines the places of
//! the ids in requests. The [`GuardLayer`] decides about each request before the inner service receives it. With the
//! feature `proxy`, the inner service can be `Proxy`, which forwards requests to any upstream service.
#![forbid(unsafe_code)]

#[cfg(feature = "proxy")]
mod admin;
#[cfg(feature = "proxy")]
mod config;
#[cfg(feature = "proxy")]
mod fleet;
#[cfg(feature = "proxy")]
mod guard;
#[cfg(feature = "proxy")]
mod guard_error;
#[cfg(feature = "proxy")]
mod guard_handle;
#[cfg(feature = "proxy")]
mod guard_sets;
mod http;
mod request;

#[cfg(feature = "proxy")]
pub use config::{Config, ConfigError, OneRoute};
#[cfg(feature = "proxy")]
pub use fleet::{
    Change, Delta, DeltaError, FeedPosition, Knowledge, Publication, PublicationBody,
    PublicationOptions,
};
#[cfg(feature = "proxy")]
pub use guard::Guard;
#[cfg(feature = "proxy")]
pub use guard_error::GuardError;
#[cfg(feature = "proxy")]
pub use guard_handle::GuardHandle;
#[cfg(feature = "proxy")]
pub use guard_sets::{GuardSet, GuardSets, GuardSource};
#[cfg(feature = "proxy")]
pub use http::bearer_token::{BearerToken, EmptyToken};
#[cfg(feature = "proxy")]
pub use http::client::{HttpAnswer, HttpClient, HttpClientError};
#[cfg(feature = "proxy")]
pub use http::entity_tag::EntityTag;
#[cfg(feature = "proxy")]
pub use http::proxy::{Proxy, ProxyError, ProxyHandle, ProxyOptions, TlsFiles};
#[cfg(feature = "proxy")]
pub use http::server::HttpServer;
pub use request::body::GuardedBody;
pub use request::cors::Cors;
pub use request::counters::RouteCounters;
pub use request::guard_future::{AnswerBody, GuardFuture};
pub use request::layer::{GuardLayer, GuardService};
pub use request::learn::{
    LearnBody, LearnCounters, LearnPlace, LearnPlaceError, LearnRule, NotLearnt,
};
pub use request::path::{PathTemplate, TemplateError};
pub use request::place::{IdPlace, PlaceError};
pub use request::refusal::Refusal;
pub use request::route::{Required, Route};
pub use request::route_error::RouteError;
pub use request::route_id::RouteId;
#[cfg(feature = "layer")]
pub use request::single_flight::SingleFlight;
pub use tamis_sources::{
    AuditOptions, AuditReport, ChangeKind, Generation, Generations, IdError, IdSet, IdSetOptions,
    IdType, IntegerForm, NotAnId, PassReason, Passed, PlanError, Policies, Policy, RefuseReason,
    RequestKey, Snapshot, SnapshotError, SnapshotHead, SnapshotOptions, SnapshotStore, SyncState,
    ToId, Verdict, audit,
};

/// The sources of ids: the crate `tamis-sources`, and the leader source.
pub mod source {
    #[cfg(feature = "proxy")]
    pub use crate::fleet::{LeaderError, LeaderOptions};
    pub use tamis_sources::*;
}
