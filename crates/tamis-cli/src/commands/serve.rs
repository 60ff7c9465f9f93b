//! `tamis serve`: runs the filter server.

mod config_flags;

use std::path::PathBuf;

use config_flags::{ConfigFlags, unknown_variables};
use tamis_server::{Config, DurabilityError, HttpPort, Server, ServerError};

use crate::daemon::{LogArgs, tell_systemd};
use crate::exit::{CommandResult, Exit, Failure};

/// Run a server with RedisBloom's commands for any Redis client
///
/// The server speaks RESP2 and RESP3 and replies to BF.* and CF.* as RedisBloom does. Options have
/// the same names as in Redis. A flag overrides an environment variable. An environment variable
/// overrides the file of --config.
///
/// The server writes changes to a log in the folder --dir and syncs the log once a second. A crash
/// of the machine may lose the last second. A crash of the server loses no acknowledged write. With
/// --appendfsync always, a crash of the machine loses no acknowledged write either.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis serve
  tamis serve --port 7000 --requirepass secret --bind 0.0.0.0
  redis-cli BF.RESERVE seen 0.01 1000000
  redis-cli BF.ADD seen user:1
  redis-cli BF.EXISTS seen user:2

The server stops on Ctrl-C, a TERM signal or the command SHUTDOWN. A HUP signal reloads the TLS files.")]
pub struct Args {
    /// Read options from a TOML file, such as port = 6379 and maxmemory = "2gb"
    #[arg(long, value_name = "FILE", env = "TAMIS_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    flags: ConfigFlags,

    #[command(flatten)]
    log: LogArgs,
}

pub fn run(args: &Args) -> CommandResult {
    let config = configure(args)?;
    args.log.start();
    for name in unknown_variables(std::env::vars_os().map(|(name, _)| name)) {
        tracing::warn!(%name, "an environment variable begins with TAMIS_ and sets no option");
    }
    let is_kept = config.append_only;
    let server = Server::start(config).map_err(|error| match error {
        ServerError::Durability(error) => {
            let dir = args.flags.given.iter().find(|given| given.option.name == "dir");
            let source = match (dir, &error) {
                (Some(given), _) => format!("{}: ", given.source()),
                // In a container, the default folder is often in a file system that is read-only.
                (None, DurabilityError::Io { .. }) if args.config.is_none() => {
                    "--dir is not set: ".to_owned()
                }
                // The user recognises another folder by its path.
                (None, _) => String::new(),
            };
            Failure::new(format!("{source}{error}"))
        }
        error => Failure::new(error),
    })?;
    // The signal handlers start before the server reports that it is ready, because a supervisor
    // may stop a ready server at once.
    heed_signals(&server)?;
    for address in server.addresses() {
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "tamis is ready for Redis clients");
    }
    for address in server.tls_addresses() {
        tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "tamis is ready for Redis clients over TLS");
    }
    if let Some(address) = server.http_address() {
        tracing::info!(url = %format_args!("http://{address}/"), "the console is available");
    }
    if !is_kept {
        tracing::warn!("persistence is off: all filters are lost when the server stops");
    }
    tell_systemd();
    server.wait().map_err(Failure::new)?;
    tracing::info!("the server has stopped");
    Ok(Exit::Yes)
}

fn configure(args: &Args) -> Result<Config, Failure> {
    let mut config = Config { http_port: HttpPort::Auto, ..Config::default() };
    if let Some(path) = &args.config {
        config.read_file(path).map_err(Failure::new)?;
    }
    for given in &args.flags.given {
        let set = config.set(given.option.name, &given.value);
        set.map_err(|error| Failure::new(format!("{}: {error}", given.shown())))?;
    }
    Ok(config)
}

#[cfg(unix)]
fn heed_signals(server: &Server) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| Failure::io("cannot wait for signals", &error))?;
    let server = server.handle();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                return server.stop();
            }
            match server.reload_tls() {
                Ok(true) => tracing::info!("the TLS files are reloaded"),
                Ok(false) => tracing::info!("nothing is reloaded: TLS is off"),
                Err(error) => {
                    tracing::error!(%error, "the TLS files cannot be reloaded: the old \
                        certificates stay in use");
                }
            }
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn heed_signals(_: &Server) -> Result<(), Failure> {
    Ok(())
}
