//! `tamis publish`: serves filter files to programs that keep a copy of the files.

mod answer;
mod catalog;
mod file_body;
mod index;
mod published_file;

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;

use tamis_guard::HttpServer;

use crate::arguments::token_file;
use crate::daemon::{LogArgs, tell_systemd};
use crate::exit::{CommandResult, Exit, Failure};
use catalog::Catalog;

/// Serve filter files over HTTP to clients that keep a copy
///
/// Each file is at /filters/NAME, with its checksum as ETag. A client such as 'tamis pull'
/// downloads a file only after the file has changed. The page / lists all files.
///
/// Replace a file with 'mv', and clients get the new file at once. A file that is written in place
/// is served again after it has stayed the same for two seconds.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis publish malicious.tamis
  tamis publish *.tamis --listen 0.0.0.0:8380 --token-file token.txt
  curl -O http://127.0.0.1:8380/filters/malicious.tamis
  tamis pull http://127.0.0.1:8380/filters/malicious.tamis -o malicious.tamis --every 30s

The server stops on Ctrl-C or a TERM signal.")]
pub struct Args {
    /// Filters to serve, in any format that 'tamis info' recognises
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Listen on an address
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8380", value_parser = address)]
    listen: SocketAddr,

    /// Serve only clients that send the token in this file: Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    log: LogArgs,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("'{text}' is not an address: write HOST:PORT such as 0.0.0.0:8380"))
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let token = args.token_file.as_deref().map(token_file::read).transpose()?;
    let catalog = Arc::new(Catalog::open(&args.files)?);
    args.log.start();
    if token.is_none() && !args.listen.ip().is_loopback() {
        for name in catalog.secret_names() {
            tracing::warn!(%name, "any client can download the secret hash key; set --token-file");
        }
    }
    let token = Arc::new(token);
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| Failure::io("cannot start threads", &error))?;
    let served = runtime.block_on(async {
        let place = || format!("cannot listen on {}", args.listen);
        let server = HttpServer::bind(args.listen).await;
        let server = server.map_err(|error| Failure::io(place(), &error))?;
        let stop = stop_signal().map_err(|error| Failure::io("cannot wait for signals", &error))?;
        let (address, files) = (server.address(), args.files.len());
        let version = env!("CARGO_PKG_VERSION");
        tracing::info!(%address, files, version, "the filters are available");
        tell_systemd();
        let serve = server.run(move |request| {
            let (catalog, token) = (Arc::clone(&catalog), Arc::clone(&token));
            async move { answer::answer(&request, &catalog, token.as_ref().as_ref()).await }
        });
        tokio::select! {
            () = serve => {}
            () = stop => {}
        }
        Ok(())
    });
    // A task that is reading a file must not delay the end of the process.
    runtime.shutdown_background();
    served?;
    tracing::info!("the server has stopped");
    Ok(Exit::Yes)
}

/// Returns a future that completes when a stop signal arrives. The function installs the signal
/// handlers before it returns.
#[cfg(unix)]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async { _ = tokio::signal::ctrl_c().await })
}
