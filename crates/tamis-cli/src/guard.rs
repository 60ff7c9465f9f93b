//! `tamis guard`: refuses requests for ids that do not exist before they reach the database.

mod audit;
mod check;

use std::num::NonZero;
use std::path::PathBuf;

use tamis_guard::{Config, Guard, GuardHandle, OneRoute, SyncState};

use crate::daemon::{LogArgs, tell_systemd};
use crate::exit::{CommandResult, Exit, Failure};

/// Refuse requests for ids that do not exist before they reach the database
///
/// The guard is an HTTP proxy in front of a program. It knows all ids that exist, from a file, a
/// filter or a database, and answers requests for other ids itself, with 404 and JSON. It passes all
/// other requests. While it does not know all ids, it passes every request.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true,
    after_long_help = "\
Examples:
  tamis guard --upstream http://127.0.0.1:9000 --path '/pms/productInfo/{id}' --ids ids.txt
  tamis guard example > guard.toml
  tamis guard check --config guard.toml
  tamis guard --config guard.toml

The guard stops on Ctrl-C or a TERM signal, after it has finished the requests in progress. A HUP
signal reloads the configuration and the TLS files."
)]
pub struct Args {
    #[command(subcommand)]
    job: Option<Job>,

    #[command(flatten)]
    settings: Settings,

    /// Set the number of threads that serve requests [default: one a core]
    #[arg(long, value_name = "N", value_parser = crate::numbers::threads)]
    threads: Option<NonZero<usize>>,

    #[command(flatten)]
    log: LogArgs,
}

#[derive(clap::Subcommand)]
enum Job {
    /// Test a configuration and its sources, and print them
    ///
    /// Reads all ids once. The exit status is 0 if every source was read.
    Check(check::Args),
    /// Compare the filters with their sources: no id is refused, and the rate is kept
    ///
    /// Reads all ids of each source, builds the filters as a guard does, reads the sources again,
    /// and asks for each id and for absent ones. The exit status is 1 if an id is refused, and 3 if
    /// more absent ids pass than the rate explains.
    Audit(audit::Args),
    /// Print a configuration file with comments
    Example,
}

/// A configuration file, or the flags of one route.
#[derive(clap::Args)]
struct Settings {
    /// Read the configuration from a TOML file; 'tamis guard example' prints one
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    route: OneRouteArgs,
}

#[derive(clap::Args)]
struct OneRouteArgs {
    /// Listen on an address [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Vec<String>,

    /// Send requests that pass to this address, such as http://127.0.0.1:9000
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Guard this path, such as '/pms/productInfo/{id}'
    #[arg(long, value_name = "TEMPLATE")]
    path: Option<String>,

    /// Look for the id at a place: path:NAME, query:NAME, header:NAME, cookie:NAME or json:/FIELD
    /// [default: the names in the path]
    #[arg(long = "id", value_name = "PLACE")]
    places: Vec<String>,

    /// Read the ids that exist from a file with one a line, or from a filter of 'tamis build'
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,

    /// Set the type of the ids: integer, uuid or text [default: integer]
    #[arg(long = "type", value_name = "TYPE")]
    id_type: Option<String>,

    /// Set the false positive rate, such as 0.1% or 1e-3 [default: 0.1%]
    #[arg(long, value_name = "RATE", value_parser = crate::key::rate)]
    rate: Option<f64>,

    /// Set the message in the answer to a refused request [default: not found]
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,

    /// Refuse nothing, and count what would be refused
    #[arg(long)]
    shadow: bool,
}

impl OneRouteArgs {
    /// Returns an option that the user gave.
    fn given(&self) -> Option<&'static str> {
        [
            ("--listen", !self.listen.is_empty()),
            ("--upstream", self.upstream.is_some()),
            ("--path", self.path.is_some()),
            ("--id", !self.places.is_empty()),
            ("--ids", self.ids.is_some()),
            ("--type", self.id_type.is_some()),
            ("--rate", self.rate.is_some()),
            ("--message", self.message.is_some()),
            ("--shadow", self.shadow),
        ]
        .iter()
        .find_map(|&(option, is_given)| is_given.then_some(option))
    }
}

impl Settings {
    /// Reads the configuration that the user means.
    fn read(&self) -> Result<Config, Failure> {
        let route = &self.route;
        if let Some(path) = &self.config {
            if let Some(option) = route.given() {
                let path = path.display();
                let message = format!("{option} has no effect with --config: write it into {path}");
                return Err(Failure::new(message));
            }
            return Config::read(path).map_err(Failure::new);
        }
        let missing = |option: &str| {
            Failure::new(format!(
                "{option} is missing; give --config FILE, or --upstream, --path and --ids"
            ))
        };
        let text = |value: &Option<String>, option| value.clone().ok_or_else(|| missing(option));
        Config::one_route(OneRoute {
            listen: route.listen.clone(),
            upstream: text(&route.upstream, "--upstream")?,
            path: text(&route.path, "--path")?,
            places: route.places.clone(),
            ids: route.ids.clone().ok_or_else(|| missing("--ids"))?,
            id_type: route.id_type.clone(),
            rate: route.rate,
            message: route.message.clone(),
            is_shadow: route.shadow,
        })
        .map_err(Failure::new)
    }
}

pub fn run(args: &Args) -> CommandResult {
    match &args.job {
        Some(Job::Check(args)) => check::run(args),
        Some(Job::Audit(args)) => audit::run(args),
        Some(Job::Example) => example(),
        None => serve(args),
    }
}

fn example() -> CommandResult {
    use std::io::Write as _;

    let text = include_str!("guard/example.toml");
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::io("standard output", &error))?;
    Ok(Exit::Yes)
}

fn serve(args: &Args) -> CommandResult {
    let config = args.settings.read()?;
    args.log.start();
    let threads = args.threads.map_or_else(cores, NonZero::get);
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io("cannot start threads", &error))?;
    runtime.block_on(async {
        let guard = Guard::start(config).await.map_err(Failure::new)?;
        let handle = guard.handle();
        let signals = Signals::new()?;
        for address in guard.addresses() {
            let version = env!("CARGO_PKG_VERSION");
            tracing::info!(%address, version, "the guard is ready for requests");
        }
        if let Some(address) = guard.admin_address() {
            tracing::info!(%address, "the metrics are available");
        }
        let report = tokio::spawn(report_states(handle.clone()));
        tell_systemd();
        let stop = signals.wait_for_stop(handle, args.settings.config.clone());
        let cut = guard.run(stop).await;
        report.abort();
        if cut > 0 {
            tracing::warn!(connections = cut, "connections were cut at the end of the time");
        }
        tracing::info!("the guard has stopped");
        Ok(Exit::Yes)
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Writes to the log when a set of ids changes its state, and when a source fails.
async fn report_states(handle: GuardHandle) {
    let mut known = std::collections::HashMap::new();
    loop {
        for set in handle.sets() {
            let Some(status) = set.status else { continue };
            let now = (status.state, status.last_error.clone());
            let before = known.insert(set.name.clone(), now.clone());
            if before.as_ref() == Some(&now) {
                continue;
            }
            let (name, items) = (&set.name, set.ids.generation().items());
            if let Some(error) = &now.1 {
                tracing::warn!(ids = %name, %error, "the source of ids failed");
            }
            match now.0 {
                _ if before.is_some_and(|before| before.0 == now.0) => {}
                SyncState::Warming => tracing::info!(ids = %name, "all ids are being read"),
                SyncState::Synced => tracing::info!(ids = %name, items, "the ids are synced"),
                SyncState::Stale => tracing::warn!(ids = %name, items, "the ids are stale"),
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// The signals that stop the guard or reload its configuration.
#[cfg(unix)]
struct Signals {
    hangup: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};

        let wait =
            |kind| signal(kind).map_err(|error| Failure::io("cannot wait for signals", &error));
        Ok(Self {
            hangup: wait(SignalKind::hangup())?,
            interrupt: wait(SignalKind::interrupt())?,
            terminate: wait(SignalKind::terminate())?,
        })
    }

    /// Returns after a signal to stop. A second one ends the process at once.
    async fn wait_for_stop(mut self, handle: GuardHandle, config: Option<PathBuf>) {
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
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
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
    // Sources that end may take a while.
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
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn wait_for_stop(self, _: GuardHandle, _: Option<PathBuf>) {
        _ = tokio::signal::ctrl_c().await;
    }
}
