//! The errors of starting or reloading a guard.

use std::fmt;

use tamis::PlanError;

use crate::http::proxy::ProxyError;

/// The reason why a guard cannot start or cannot load a new configuration.
#[derive(Debug)]
pub enum GuardError {
    /// The proxy cannot start.
    Proxy(ProxyError),
    /// The system has no memory for a filter.
    Plan {
        /// The name of the set of ids.
        set: String,
        /// The error of the filter.
        error: PlanError,
    },
    /// The token of a set is empty.
    NoToken(String),
    /// The folder of the snapshots cannot be used.
    Snapshots(String),
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proxy(error) => error.fmt(f),
            Self::Plan { set, error } => write!(f, "ids.{set}: {error}"),
            Self::NoToken(set) => write!(f, "ids.{set}.push.token: must not be empty"),
            Self::Snapshots(error) => write!(f, "snapshots.folder: {error}"),
        }
    }
}

impl std::error::Error for GuardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Proxy(error) => Some(error),
            Self::Plan { error, .. } => Some(error),
            Self::NoToken(_) | Self::Snapshots(_) => None,
        }
    }
}

impl From<ProxyError> for GuardError {
    fn from(error: ProxyError) -> Self {
        Self::Proxy(error)
    }
}
