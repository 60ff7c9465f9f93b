//! A tokio runtime for polls.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::errors::source_error::SourceError;
use crate::source::run::Run;
use crate::source::runtime::{no_answer, runtime};
use crate::source::status::Rows;

/// The time between two tests of the stop flag, and the length of one turn of `alternate`.
const TICK: Duration = Duration::from_millis(100);

/// A tokio runtime for polls. A call blocks the thread until the server responds, the source is stopped, or the server
/// sends nothing for longer than `limit`.
#[derive(Debug)]
pub(crate) struct PollRuntime {
    /// The runtime. The value is `None` only while the `PollRuntime` is dropped.
    runtime: Option<Runtime>,
    is_stopped: Arc<AtomicBool>,
    /// The maximum time without data from the server.
    pub(crate) limit: Duration,
    /// The time at which the last data arrived.
    heard: Cell<Instant>,
}

impl PollRuntime {
    pub(crate) fn new(run: &Run) -> Result<Self, SourceError> {
        Ok(Self {
            runtime: Some(runtime()?),
            is_stopped: Arc::clone(&run.is_stopped),
            limit: run.options.stale_after.max(Duration::from_secs(1)),
            heard: Cell::new(Instant::now()),
        })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the drop")
    }

    /// Waits for a response of the server.
    pub(crate) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(SourceError::Stopped);
        }
        self.note_progress();
        self.runtime().block_on(async {
            tokio::select! {
                result = answer => result,
                error = self.stopped_or_silent() => Err(error),
            }
        })
    }

    /// Waits for the end of `work`, for at most `limit`. The method ignores the result of `work`.
    pub(crate) fn finish(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<(), SourceError>>,
    ) {
        _ = self.runtime().block_on(async { timeout(limit, work).await });
    }

    /// Records that data has arrived.
    pub(crate) fn note_progress(&self) {
        self.heard.set(Instant::now());
    }

    async fn stopped_or_silent(&self) -> SourceError {
        loop {
            sleep(TICK).await;
            if self.is_stopped.load(Ordering::Acquire) {
                return SourceError::Stopped;
            }
            if self.heard.get().elapsed() > self.limit {
                return no_answer();
            }
        }
    }

    /// Runs `read` and `pause` in turns, until the read ends or `pause` returns false. If the read ends, the method
    /// counts its rows. The method may drop a call of `read`; the next call must continue the read.
    pub(crate) fn alternate(
        &self,
        run: &Run,
        mut read: impl AsyncFnMut() -> Result<Rows, SourceError>,
        pause: &mut dyn FnMut() -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        loop {
            match self.runtime().block_on(async { timeout(TICK, read()).await }) {
                Ok(rows) => {
                    run.count(rows?);
                    return Ok(());
                }
                Err(_) if pause()? => {}
                Err(_) => return Ok(()),
            }
        }
    }
}

impl Drop for PollRuntime {
    fn drop(&mut self) {
        // The name lookup of a host may block for a long time, so the runtime shuts down in the background.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
