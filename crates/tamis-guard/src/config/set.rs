//! The settings of a set of ids, and of the admin server.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tamis_sources::{IdSetOptions, SourceKind, SourceOptions};

use crate::config::units::Secret;
use crate::fleet::PublicationOptions;

/// The settings of one set of ids.
#[derive(Clone, Debug)]
pub(crate) struct SetConfig {
    pub(crate) options: IdSetOptions,
    pub(crate) sources: Vec<Arc<dyn SourceKind>>,
    pub(crate) source_options: SourceOptions,
    pub(crate) token: Option<Secret>,
    pub(crate) publish: Option<PublicationOptions>,
    pub(crate) allowed: HashSet<Box<[u8]>>,
    pub(crate) denied: HashSet<Box<[u8]>>,
}

/// The settings of the admin server.
#[derive(Clone, Debug)]
pub(crate) struct AdminConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) token: Option<Secret>,
}

/// The folder and the interval of the snapshots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SnapshotsConfig {
    pub(crate) folder: PathBuf,
    pub(crate) every: Duration,
}
