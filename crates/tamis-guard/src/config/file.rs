//! The tables and fields of a configuration file, as they appear in TOML.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tamis_sources::Policy;

use crate::config::sources::SourceTables;
use crate::config::units::{OneOrMany, Secret, Size, Text};
use crate::http::authorize::OtherProxy;

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) proxy: Option<Proxy>,
    pub(super) authorize: Option<Authorize>,
    #[serde(default)]
    pub(super) ids: BTreeMap<String, Ids>,
    #[serde(default)]
    pub(super) route: Vec<Route>,
    #[serde(default)]
    pub(super) learn: Vec<Learn>,
    pub(super) admin: Option<Admin>,
    pub(super) snapshots: Option<Snapshots>,
}

/// The table `[snapshots]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshots {
    pub(super) folder: PathBuf,
    pub(super) every: Option<Text<Duration>>,
}

/// The table `[admin]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Admin {
    pub(super) listen: String,
    pub(super) token: Option<Secret>,
}

/// The table `[[learn]]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Learn {
    pub(super) name: Option<String>,
    pub(super) path: String,
    pub(super) methods: Option<Vec<String>>,
    pub(super) places: OneOrMany<String>,
    pub(super) ids: String,
    pub(super) max_body: Option<Text<Size>>,
}

/// The table `[proxy]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Proxy {
    pub(super) listen: Option<OneOrMany<String>>,
    pub(super) upstream: String,
    pub(super) tls: Option<Tls>,
    pub(super) upstream_ca: Option<PathBuf>,
    pub(super) connect_timeout: Option<Text<Duration>>,
    pub(super) response_timeout: Option<Text<Duration>>,
    pub(super) header_timeout: Option<Text<Duration>>,
    pub(super) body_timeout: Option<Text<Duration>>,
    pub(super) idle_timeout: Option<Text<Duration>>,
    pub(super) upstream_idle_timeout: Option<Text<Duration>>,
    pub(super) shutdown_timeout: Option<Text<Duration>>,
    pub(super) max_connections: Option<u32>,
    pub(super) max_head: Option<Text<Size>>,
    #[serde(default)]
    pub(super) trust_forwarded: bool,
    #[serde(default)]
    pub(super) log_requests: bool,
    #[serde(default)]
    pub(super) request_ids: bool,
}

/// The table `[authorize]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Authorize {
    pub(super) listen: Option<OneOrMany<String>>,
    pub(super) proxy: OtherProxy,
    #[serde(default)]
    pub(super) bodies: bool,
    pub(super) max_connections: Option<u32>,
    pub(super) max_head: Option<Text<Size>>,
}

/// The table `[proxy.tls]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// The table `[ids.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ids {
    #[serde(rename = "type")]
    pub(super) id_type: Option<IdKind>,
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) padded: Option<bool>,
    pub(super) spaced: Option<bool>,
    pub(super) max_length: Option<Text<Size>>,
    pub(super) items: Option<u64>,
    pub(super) rate: Option<f64>,
    #[serde(default)]
    pub(super) policy: Policies,
    #[serde(default)]
    pub(super) negative: Negative,
    pub(super) recent: Option<Text<Duration>>,
    #[serde(default)]
    pub(super) next: Next,
    #[serde(default)]
    pub(super) allow: Vec<String>,
    pub(super) allow_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) deny: Vec<String>,
    pub(super) deny_file: Option<PathBuf>,
    pub(super) source: Option<SourceTables>,
    #[serde(default)]
    pub(super) trust: bool,
    pub(super) push: Option<Push>,
    pub(super) publish: Option<Publish>,
    pub(super) interval: Option<Text<Duration>>,
    pub(super) stale_after: Option<Text<Duration>>,
    pub(super) rebuild_after: Option<Text<Duration>>,
    pub(super) max_deleted: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IdKind {
    Integer,
    Uuid,
    Text,
}

/// The field `policy = { warming = "pass", synced = "reject", stale = "limit 100/s" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policies {
    pub(super) warming: Option<Text<Policy>>,
    pub(super) synced: Option<Text<Policy>>,
    pub(super) stale: Option<Text<Policy>>,
    pub(super) unproven: Option<Text<Policy>>,
}

/// The field `negative = { requests = 1000000, ttl = "60s" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Negative {
    pub(super) requests: Option<u64>,
    pub(super) ttl: Option<Text<Duration>>,
}

/// The field `next = { ids = 1000, per_second = 100 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Next {
    pub(super) ids: Option<u64>,
    pub(super) per_second: Option<u32>,
}

/// The field `push = { token = "${TOKEN}" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Push {
    pub(super) token: Secret,
}

/// The field `publish = { token = "${TOKEN}" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Publish {
    pub(super) token: Secret,
    pub(super) history: Option<Text<Size>>,
}

/// The table `[[route]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    pub(super) name: Option<String>,
    pub(super) path: String,
    #[serde(default)]
    pub(super) methods: Vec<String>,
    /// The place of each id in the request, and the name of its set. Only an exempt route has no ids.
    #[serde(default)]
    pub(super) ids: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) exempt: bool,
    pub(super) list: Option<char>,
    pub(super) required: Option<Required>,
    pub(super) missing: Option<Missing>,
    #[serde(default)]
    pub(super) shadow: bool,
    #[serde(default)]
    pub(super) single_flight: bool,
    pub(super) max_body: Option<Text<Size>>,
    #[serde(default)]
    pub(super) refusal: Refusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Required {
    All,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Missing {
    Pass,
    Refuse,
}

/// The field `refusal = { status = 404, code = 404, message = "产品不存在!" }`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    pub(super) status: Option<u16>,
    pub(super) code: Option<i64>,
    pub(super) message: Option<String>,
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) retry_after: Option<u32>,
    pub(super) cors: Option<Cors>,
}

/// The field `cors = { origins = ["https://shop.example.com"], credentials = true }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cors {
    pub(super) origins: OneOrMany<String>,
    #[serde(default)]
    pub(super) credentials: bool,
}
