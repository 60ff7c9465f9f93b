//! The runtime of a source, and waits with a limit.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::source::error::SourceError;

/// Returns a runtime that runs in the calling thread.
pub(super) fn runtime() -> Result<Runtime, SourceError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| SourceError::Connect(error.to_string()))
}

/// Waits for an answer of the server, but not longer than `limit`.
pub(super) async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    timeout(limit, answer).await.unwrap_or_else(|_| Err(silent()))
}

/// Returns the error of a server that is silent for too long.
pub(super) fn silent() -> SourceError {
    SourceError::Connect("the server does not answer".to_owned())
}
