//! Configures the log on stderr and notifies systemd, for `tamis serve` and `tamis guard`.

use std::io::IsTerminal as _;
#[cfg(unix)]
use std::path::Path;

use crate::io::messages;

/// The options of the log.
#[derive(clap::Args)]
pub struct LogArgs {
    /// Set the level of messages on stderr: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "TAMIS_LOGLEVEL")]
    loglevel: tracing::Level,

    /// Write each event to stderr as text, or as a line of JSON
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "TAMIS_LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl LogArgs {
    /// Starts the log of the process.
    pub fn start(&self) {
        let level = if messages::is_quiet() { tracing::Level::ERROR } else { self.loglevel };
        let log = tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            // A failed write to the log must not end the server, and the server cannot report this
            // failure.
            .log_internal_errors(false)
            .with_max_level(level)
            .with_target(false);
        match self.log_format {
            LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
            LogFormat::Json => {
                log.json()
                    .flatten_event(true)
                    .with_current_span(false)
                    .with_span_list(false)
                    .init();
            }
        }
    }
}

/// Notifies systemd that the process is ready. The function does nothing unless systemd started the
/// process with `Type=notify`.
#[cfg(unix)]
pub fn tell_systemd() {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = std::os::unix::net::UnixDatagram::unbound()
        .and_then(|datagram| datagram.send_to(b"READY=1", Path::new(&socket)));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify systemd that the server is ready");
    }
}

#[cfg(not(unix))]
pub fn tell_systemd() {}
