//! The command `tamis guard` refuses requests for ids that do not exist before the requests reach
//! the database.

mod audit;
mod check;
mod demo;
mod signals;

use std::collections::HashMap;
use std::num::NonZero;
use std::path::PathBuf;

use tamis_guard::source::SourceStatus;
use tamis_guard::{Config, Guard, GuardHandle, OneRoute, SyncState};
use tokio::runtime::Runtime;

use crate::daemon::{LogArgs, tell_systemd};
use crate::exit::{CommandResult, Exit, Failure};
use crate::io::output::write_whole;
use signals::Signals;

/// Refuse requests for ids that do not exist before the requests reach the database
///
/// The guard is an HTTP proxy in front of a program, or answers the questions of another proxy such
/// as nginx ([authorize] in the configuration). The guard reads all ids that exist from a
/// file, a filter or a database. If a request has an id that does not exist, the guard itself sends
/// a 404 response with JSON. A request passes to the program if its id exists, or if no route
/// matches the request. Until the guard has read all ids, requests for unknown ids pass too, unless
/// the policy refuses these requests. Malformed ids and ids on the deny list are refused in every
/// state.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true,
    after_long_help = "\
Examples:
  tamis guard --demo
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

    #[command(flatten)]
    demo: demo::DemoArgs,

    /// Set the number of threads that serve requests [default: one per core]
    #[arg(long, value_name = "N", value_parser = crate::arguments::numbers::threads)]
    threads: Option<NonZero<usize>>,

    #[command(flatten)]
    log: LogArgs,
}

#[derive(clap::Subcommand)]
enum Job {
    /// Test a configuration and its sources, and print the result
    ///
    /// The command reads all ids once. The exit status is 0 if every source was read.
    Check(check::Args),
    /// Compare the filters with their sources: no id is refused, and the rate is kept
    ///
    /// The command reads all ids of each source, builds the filters as a guard does, and reads the
    /// sources again. The command tests each id against the filters, and also tests absent ids. The
    /// exit status is 1 if an id is refused, and 3 if more absent ids pass than the rate explains.
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

    /// Send the accepted requests to this address, such as http://127.0.0.1:9000
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,

    /// Guard this path, such as '/pms/productInfo/{id}'
    #[arg(long, value_name = "TEMPLATE")]
    path: Option<String>,

    /// Read the id from a place: path:NAME, query:NAME, header:NAME, cookie:NAME, form:NAME or
    /// json:/FIELD [default: the names in the path]
    #[arg(long = "id", value_name = "PLACE")]
    places: Vec<String>,

    /// Read the ids that exist from a file with one id per line, or from a filter of 'tamis build'
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,

    /// Set the type of the ids: integer, uuid or text [default: integer]
    #[arg(long = "type", value_name = "TYPE")]
    id_type: Option<String>,

    /// Set the false positive rate, such as 0.1% or 1e-3 [default: 0.1%]
    #[arg(long, value_name = "RATE", value_parser = crate::records::key::rate)]
    rate: Option<f64>,

    /// Refuse unknown ids at once, without a proof that the filter stores ids in the form that
    /// requests use
    #[arg(long)]
    trust: bool,

    /// Set the message in the response to a refused request [default: not found]
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,

    /// Refuse no request, and count the requests that would be refused
    #[arg(long)]
    shadow: bool,
}

impl OneRouteArgs {
    /// Returns the name of one option that the user gave, or `None` if the user gave no option.
    fn given(&self) -> Option<&'static str> {
        [
            ("--listen", !self.listen.is_empty()),
            ("--upstream", self.upstream.is_some()),
            ("--path", self.path.is_some()),
            ("--id", !self.places.is_empty()),
            ("--ids", self.ids.is_some()),
            ("--type", self.id_type.is_some()),
            ("--rate", self.rate.is_some()),
            ("--trust", self.trust),
            ("--message", self.message.is_some()),
            ("--shadow", self.shadow),
        ]
        .iter()
        .find_map(|&(option, is_given)| is_given.then_some(option))
    }
}

impl Settings {
    /// Reads the configuration from the file of `--config`, or from the options of one route.
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
            is_trusted: route.trust,
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
        None if args.demo.demo => show(args),
        None => serve(args),
    }
}

fn example() -> CommandResult {
    write_whole(None, include_bytes!("guard/example.toml"))?;
    Ok(Exit::Yes)
}

fn serve(args: &Args) -> CommandResult {
    let config = args.settings.read()?;
    args.log.start();
    runtime(args)?.block_on(async {
        let guard = Guard::start(config).await.map_err(Failure::new)?;
        let handle = guard.handle();
        let signals = Signals::new()?;
        for address in guard.addresses() {
            let version = env!("CARGO_PKG_VERSION");
            tracing::info!(%address, version, "the guard is ready for requests");
        }
        for address in guard.authorize_addresses() {
            let version = env!("CARGO_PKG_VERSION");
            tracing::info!(%address, version, "the guard is ready for the questions of the other proxy");
        }
        if let Some(address) = guard.admin_address() {
            let url = format!("http://{address}/");
            tracing::info!(%url, "the console and the metrics are available");
        }
        let report = tokio::spawn(report_states(handle.clone()));
        tell_systemd();
        let stop = signals.wait_for_stop(handle.clone(), args.settings.config.clone());
        let cut = guard.run(stop).await;
        report.abort();
        for set in handle.sets() {
            if let Some(error) = set.status.and_then(|status| status.snapshots.last_error) {
                tracing::warn!(ids = %set.name, %error, "the last snapshot was not written");
            }
        }
        if cut > 0 {
            tracing::warn!(connections = cut, "connections were cut at the end of the time");
        }
        tracing::info!("the guard has stopped");
        Ok(Exit::Yes)
    })
}

/// Runs the demo.
fn show(args: &Args) -> CommandResult {
    args.log.start();
    runtime(args)?.block_on(demo::run(&args.demo, &args.settings.route.listen))
}

fn runtime(args: &Args) -> Result<Runtime, Failure> {
    let threads = args.threads.map_or_else(cores, NonZero::get);
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(threads).enable_all().build();
    runtime.map_err(|error| Failure::io("cannot start threads", &error))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The state and the errors of a set or of a source that the log contains.
#[derive(Clone, Default, PartialEq)]
struct Reported {
    state: Option<SyncState>,
    errors: [Option<String>; 3],
}

/// Writes to the log when a set of ids or one of several sources changes its state, and when a source or a snapshot
/// fails.
async fn report_states(handle: GuardHandle) {
    // The key is the name of the set, and the name of the source if the set has several sources.
    let mut known: HashMap<(String, Option<String>), Reported> = HashMap::new();
    let mut report = |set: &str, source: Option<&str>, items, status: &SourceStatus| {
        let reported = known.entry((set.to_owned(), source.map(str::to_owned))).or_default();
        let now = Reported { state: Some(status.state), errors: errors_of(status) };
        report_change(set, source, items, reported, &now);
        *reported = now;
    };
    loop {
        for set in handle.sets() {
            let Some(mut status) = set.status else { continue };
            for source in &set.sources {
                report(&set.name, Some(&source.name), source.items, &source.status);
            }
            // The log already has the errors of the sources.
            if set.sources.iter().any(|it| errors_of(&it.status).iter().any(Option::is_some)) {
                (status.last_error, status.snapshots) = Default::default();
            }
            report(&set.name, None, set.ids.generations().items(), &status);
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

fn errors_of(status: &SourceStatus) -> [Option<String>; 3] {
    let SourceStatus { last_error, snapshots, .. } = status;
    [last_error.clone(), snapshots.unused.clone(), snapshots.last_error.clone()]
}

/// Writes to the log how a set or a source has changed since the last report.
fn report_change(ids: &str, source: Option<&str>, items: u64, reported: &Reported, now: &Reported) {
    let messages = [
        "the source of ids failed",
        "the snapshot is not used: all ids are read",
        "the snapshot is not written",
    ];
    for ((error, reported), message) in now.errors.iter().zip(&reported.errors).zip(messages) {
        if let Some(error) = error.as_ref().filter(|it| reported.as_ref() != Some(it)) {
            tracing::warn!(%ids, source, %error, "{message}");
        }
    }
    match now.state {
        state if state == reported.state => {}
        None => {}
        Some(SyncState::Warming) => tracing::info!(%ids, source, "the source is being read"),
        Some(SyncState::Synced) => tracing::info!(%ids, source, items, "the ids are synced"),
        Some(SyncState::Unproven) => tracing::info!(
            %ids,
            source,
            items,
            "the filter is read; unknown ids pass until answers of the program prove it"
        ),
        Some(SyncState::Stale) => tracing::warn!(%ids, source, items, "the ids are stale"),
    }
}
