//! Stops the threads of a full read that is no longer needed.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::errors::source_error::SourceError;

/// The time between two checks of the flag.
const TICK: Duration = Duration::from_millis(100);

/// A flag that requests the threads of a full read to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Requests the threads to stop.
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Waits for the result of `work`. Returns an error when a stop is requested.
    pub(crate) async fn until_requested<T>(
        &self,
        work: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        let requested = async {
            while !self.is_requested() {
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::select! {
            result = work => result,
            () = requested => Err(SourceError::Stopped),
        }
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
