//! The errors of following a leader.

use std::fmt;

use http::StatusCode;
use tamis::PlanError;
use tamis_sources::{SnapshotError, SourceError};

use crate::fleet::delta::DeltaError;
use crate::http::client::HttpClientError;

/// The reason why a leader cannot be followed. After an error, the set keeps its present ids.
#[derive(Debug)]
#[non_exhaustive]
pub enum LeaderError {
    /// The leader does not respond.
    Http(HttpClientError),
    /// The leader rejects the token, or does not publish the set.
    Unauthorized,
    /// The leader returned an unexpected status.
    Status(StatusCode),
    /// The leader has not read its source yet.
    Warming,
    /// The response is larger than the maximum size of a delta.
    TooLarge,
    /// The response does not contain a valid delta.
    Delta(DeltaError),
    /// The changes start at another position than the requested position.
    Position,
    /// The leader has published a new generation during the download of the snapshot.
    Replaced,
    /// The snapshot cannot be used.
    Snapshot(SnapshotError),
    /// The type of the leader's ids differs from the type of the follower's ids.
    OtherIds {
        /// The type of the leader's ids.
        found: String,
        /// The type in the settings of the follower.
        expected: String,
    },
    /// The text of a change is not an id of the configured type.
    NotAnId(String),
    /// The system has no memory for a filter.
    Plan(PlanError),
    /// A leader cannot list its ids for an audit.
    NoList,
}

impl LeaderError {
    pub(super) fn not_an_id(text: &[u8]) -> Self {
        let text = text.get(..40).unwrap_or(text);
        Self::NotAnId(text.escape_ascii().to_string())
    }
}

impl fmt::Display for LeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::NoList = self {
            return f.write_str(
                "a leader sends no list of its ids; audit the set with the leader's configuration, or \
                 with ids that exist: tamis guard audit --ids FILE",
            );
        }
        f.write_str("the leader: ")?;
        match self {
            Self::NoList => Ok(()),
            Self::Http(error) => error.fmt(f),
            Self::Unauthorized => {
                f.write_str("refuses the token, or its configuration has no `publish` for this set")
            }
            Self::Status(status) => {
                write!(f, "answers {status}; check the URL, which is http://HOST:PORT/filters/NAME")
            }
            Self::Warming => f.write_str("has not read its source yet"),
            Self::TooLarge => f.write_str("its list of changes is larger than 4 MiB"),
            Self::Delta(error) => error.fmt(f),
            Self::Position => f.write_str("its changes begin at another position"),
            Self::Replaced => f.write_str("its snapshot was replaced during the download"),
            Self::Snapshot(error) => error.fmt(f),
            Self::OtherIds { found, expected } => {
                write!(f, "its ids are {found:?}, and not {expected:?}; give the set the same type")
            }
            Self::NotAnId(text) => write!(f, "its change of \"{text}\" is no id of this type"),
            Self::Plan(error) => write!(f, "cannot create a filter: {error}"),
        }
    }
}

impl std::error::Error for LeaderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Http(error) => Some(error),
            Self::Delta(error) => Some(error),
            Self::Snapshot(error) => Some(error),
            Self::Plan(error) => Some(error),
            _ => None,
        }
    }
}

impl From<HttpClientError> for LeaderError {
    fn from(error: HttpClientError) -> Self {
        Self::Http(error)
    }
}

impl From<SnapshotError> for LeaderError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

impl From<LeaderError> for SourceError {
    fn from(error: LeaderError) -> Self {
        Self::Other(Box::new(error))
    }
}

impl From<PlanError> for LeaderError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
