//! The signals that a guard handles.

use std::path::PathBuf;

#[cfg(unix)]
use tamis_guard::Config;
use tamis_guard::GuardHandle;

use crate::exit::Failure;

/// The signals that stop the guard or reload its configuration.
#[cfg(unix)]
pub struct Signals {
    hangup: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};

        let wait =
            |kind| signal(kind).map_err(|error| Failure::io("cannot wait for signals", &error));
        Ok(Self {
            hangup: wait(SignalKind::hangup())?,
            interrupt: wait(SignalKind::interrupt())?,
            terminate: wait(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal that stops the process.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for a signal that stops the process. A second signal ends the process at once.
    pub async fn wait_for_stop(mut self, handle: GuardHandle, config: Option<PathBuf>) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => reload(&handle, config.as_ref()).await,
                _ = self.interrupt.recv() => break,
                _ = self.terminate.recv() => break,
            }
        }
        tracing::info!(
            "the guard finishes the requests in progress; a second signal ends it at once"
        );
        tokio::spawn(async move {
            self.stop().await;
            std::process::exit(2);
        });
    }
}

#[cfg(unix)]
async fn reload(handle: &GuardHandle, config: Option<&PathBuf>) {
    let Some(path) = config.cloned() else {
        tracing::warn!("nothing is reloaded: the guard has no --config file");
        return;
    };
    let handle = handle.clone();
    // The reload runs on a blocking thread, because stopping old sources may take some time.
    let reloaded = tokio::task::spawn_blocking(move || {
        let config = Config::read(path).map_err(|error| error.to_string())?;
        handle.reload(config).map_err(|error| error.to_string())
    });
    match reloaded.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(note) => {
            tracing::info!("the configuration is reloaded");
            if let Some(note) = note {
                tracing::warn!("{note}");
            }
        }
        Err(error) => {
            tracing::error!(%error, "the configuration cannot be reloaded: the old one stays in use");
        }
    }
}

#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    pub async fn stop(&mut self) {
        _ = tokio::signal::ctrl_c().await;
    }

    pub async fn wait_for_stop(mut self, _: GuardHandle, _: Option<PathBuf>) {
        self.stop().await;
    }
}
