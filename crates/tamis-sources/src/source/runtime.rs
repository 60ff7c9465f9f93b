//! Creates the tokio runtime of a source, and limits the wait for a response.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::errors::source_error::SourceError;

/// The maximum wait for the next row of a read. After this time, the read fails.
pub(crate) const ROW_TIMEOUT: Duration = Duration::from_secs(300);

/// Creates a runtime that runs on the calling thread.
pub(crate) fn runtime() -> Result<Runtime, SourceError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| SourceError::Connect(error.to_string()))
}

/// Waits for a response of the server, for at most `limit`.
pub(crate) async fn with_timeout<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, SourceError>>,
) -> Result<T, SourceError> {
    timeout(limit, answer).await.unwrap_or_else(|_| Err(no_answer()))
}

/// Returns the error for a server that does not respond in time.
pub(crate) fn no_answer() -> SourceError {
    SourceError::Connect("the server does not answer".to_owned())
}

/// Returns the error for a read that exceeded [`ROW_TIMEOUT`].
pub(crate) fn row_timeout_error() -> SourceError {
    SourceError::Connect("the server sends no more rows".to_owned())
}
