//! The command `tamis guard --demo` shows a shop under attack, with and without the guard. The demo
//! needs no installed program.
//!
//! ```text
//! customers, attacker ──▶ guard ──▶ product service ──▶ cache ──▶ SQLite, 4 connections
//! customers, attacker ────────────▶ product service ──▶ cache ──▶ SQLite, 4 connections
//! ```
//!
//! The clients send the same requests to the guard and to the second product service at the same
//! time. The two product services read the same database file. Each product service has its own
//! pool of connections, which counts its queries. A query takes 5 ms, as on a busy database on
//! another machine: see `demo/database.rs`.

mod client;
mod database;
mod latencies;
mod product_service;
mod recorder;
mod screen;
mod shop;
mod side;
mod traffic;

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use tamis_guard::{Config, Guard, GuardHandle, SyncState};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::commands::guard::signals::Signals;
use crate::exit::{CommandResult, Exit, Failure, plain};
use client::Client;
use database::Database;
use product_service::{PATH, ProductService};
use recorder::{Created, Recorder};
use screen::Screen;
use side::Side;

/// The time between two newly created products.
const CREATE_PERIOD: Duration = Duration::from_secs(3);

/// The maximum time for the guard to read all ids, and for the last requests.
const PATIENCE: Duration = Duration::from_secs(60);

/// The options of the demo.
#[derive(clap::Args)]
pub struct DemoArgs {
    /// Show the guard in front of a shop under attack; the demo needs no installed program
    #[arg(long, conflicts_with_all = [
        "config", "upstream", "path", "places", "ids", "id_type", "rate", "message", "shadow",
    ])]
    pub demo: bool,

    /// End the demo after this time, and print a summary [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", requires = "demo",
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    demo_seconds: Option<u64>,

    /// Print only the summary of the demo, as JSON
    #[arg(long, requires = "demo")]
    json: bool,
}

/// Runs the demo until a signal or the end of its time.
pub async fn run(args: &DemoArgs, listen: &[String]) -> CommandResult {
    // The signal handlers are installed before the folder is created, so that a signal never leaves
    // the folder behind.
    let signals = Signals::new()?;
    let folder = tempfile::Builder::new().prefix("tamis-demo-").tempdir();
    let folder = folder.map_err(|error| {
        let (parent, why) = (std::env::temp_dir(), plain(&error));
        let parent = parent.display();
        Failure::new(format!(
            "{parent}: a temporary folder: {why}; name another folder with TMPDIR"
        ))
    })?;
    let result = run_in(folder.path(), args, listen, signals).await;
    folder.close().map_err(|error| Failure::io("cannot remove the folder of the demo", &error))?;
    result
}

/// Runs the demo with its files in a folder. After this function returns, no part of the demo uses
/// the folder.
async fn run_in(
    folder: &Path,
    args: &DemoArgs,
    listen: &[String],
    mut signals: Signals,
) -> CommandResult {
    let database = folder.join("shop.db");
    if !create_shop(&database, &mut signals).await? {
        return Ok(Exit::Yes);
    }
    let (bare, guarded) = (service(&database).await?, service(&database).await?);
    let config = config(folder, listen, guarded.address)?;
    let guard = Guard::start(config).await.map_err(Failure::new)?;
    let (handle, address) = (guard.handle(), reachable(guard.addresses()[0]));

    let without = Arc::new(Side::new(bare.address, Arc::clone(&bare.database)));
    let with = Arc::new(Side::new(address, Arc::clone(&guarded.database)));
    let recorder = Recorder::new(Arc::clone(&without), Arc::clone(&with));
    let recorder = Arc::new(Mutex::new(recorder));
    let numbers = Arc::clone(&recorder);
    let guard = guard.with_status("demo", move || numbers.lock().status());
    if let Some(console) = guard.admin_address() {
        let url = format!("http://{console}/");
        let shop = format!("http://{address}{PATH}/1");
        tracing::info!(%url, "the console of the demo is available");
        tracing::info!(url = %shop, "the shop behind the guard is available");
    }
    let (end, ended) = oneshot::channel::<()>();
    let serving = tokio::spawn(guard.run(async { _ = ended.await }));
    let demo = Demo { handle, address, without, with, recorder };
    let planned_rate = demo.attack(args, signals).await;
    drop(end);
    // Wait here, because the sources of the guard use the folder.
    _ = serving.await;
    if let Some(planned_rate) = planned_rate? {
        print_summary(&demo.recorder.lock(), planned_rate, args.json)
            .map_err(|error| output(&error))?;
    }
    Ok(Exit::Yes)
}

/// Creates the database of the shop. Returns false if a signal arrived before the end.
async fn create_shop(path: &Path, signals: &mut Signals) -> Result<bool, Failure> {
    let (path, is_stopped) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&is_stopped);
    let mut creation =
        tokio::task::spawn_blocking(move || shop::create(&path, shop::PRODUCTS, &is_stopped));
    let (created, is_complete) = tokio::select! {
        created = &mut creation => (created, true),
        () = signals.stop() => {
            stop.store(true, Ordering::Relaxed);
            (creation.await, false)
        }
    };
    created.map_err(Failure::new)?.map_err(|error| failed(&error))?;
    Ok(is_complete)
}

/// A running guard, and the two copies of the shop: with and without the guard.
struct Demo {
    handle: GuardHandle,
    /// The address on which the guard listens.
    address: SocketAddr,
    without: Arc<Side>,
    with: Arc<Side>,
    recorder: Arc<Mutex<Recorder>>,
}

impl Demo {
    /// Sends the requests of customers and of the attacker until a signal or the end of the time.
    /// Returns the planned rate of the guard, or `None` if a signal arrived before the first
    /// request.
    async fn attack(&self, args: &DemoArgs, signals: Signals) -> Result<Option<f64>, Failure> {
        let Self { handle, address, without, with, recorder } = self;
        let mut signalled = std::pin::pin!(signals.wait_for_stop(handle.clone(), None));
        let planned_rate = tokio::select! {
            synced = synced(handle) => synced?,
            () = &mut signalled => return Ok(None),
        };
        // The time of the demo begins with the first request.
        *recorder.lock() = Recorder::new(Arc::clone(without), Arc::clone(with));
        let (stopped, is_stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        traffic::start(without, &mut clients, &is_stopped);
        traffic::start(with, &mut clients, &is_stopped);
        clients.spawn(create_products(*address, Arc::clone(recorder), is_stopped));
        let shown = tokio::select! {
            shown = show(recorder, args.json) => shown,
            () = signalled => Ok(()),
            () = time_is_over(args.demo_seconds) => Ok(()),
        };
        stopped.send_replace(true);
        let all_answered = async { while clients.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, all_answered).await.is_err() {
            tracing::warn!("some requests of the demo got no answer");
        }
        recorder.lock().sample();
        shown.map_err(|error| output(&error))?;
        Ok(Some(planned_rate))
    }
}

/// Starts a product service with its own connections.
async fn service(database: &Path) -> Result<ProductService, Failure> {
    let database = Database::open(database).map_err(|error| failed(&error))?;
    let service = ProductService::start(database).await;
    service.map_err(|error| Failure::io("cannot start the product service of the demo", &error))
}

fn failed(error: &rusqlite::Error) -> Failure {
    Failure::new(format!("cannot create the database of the demo: {error}"))
}

fn output(error: &std::io::Error) -> Failure {
    Failure::io("standard output", error)
}

/// Returns the configuration of the guard. The configuration of the demo has the same form as the
/// configuration file of a user.
fn config(folder: &Path, listen: &[String], upstream: SocketAddr) -> Result<Config, Failure> {
    let listen = match listen {
        [] => "[\"127.0.0.1:0\"]".to_owned(),
        addresses => format!("{addresses:?}"),
    };
    let text = format!(
        r#"
        proxy = {{ listen = {listen}, upstream = "http://{upstream}" }}
        admin = {{ listen = "127.0.0.1:0" }}

        [ids.products]
        source = {{ kind = "sqlite", path = "shop.db", table = "products", column = "id", changed = "id", overlap = "100ms" }}
        interval = "200ms"
        items = 110_000

        [[route]]
        name = "product"
        path = "{PATH}/{{id}}"
        ids = {{ "path:id" = "products" }}
        refusal = {{ message = "产品不存在!" }}

        [[learn]]
        path = "{PATH}"
        places = "answer json:/data/id"
        ids = "products"
        "#
    );
    Config::parse(&text, folder.join("guard.toml")).map_err(Failure::new)
}

/// Returns the address at which clients on this machine reach a server.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}

/// Waits until the guard has read all ids. Returns the planned rate of the guard.
async fn synced(handle: &GuardHandle) -> Result<f64, Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let sets = handle.sets();
        if sets.iter().all(|set| set.ids.state() == SyncState::Synced) {
            return Ok(sets.iter().map(|set| set.ids.generations().rate()).sum());
        }
        if Instant::now() > end {
            let error = sets.into_iter().find_map(|set| set.status.and_then(|it| it.last_error));
            let error = error.unwrap_or_else(|| "it takes too long".to_owned());
            return Err(Failure::new(format!(
                "the guard cannot read the ids of the shop: {error}"
            )));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns after the time that the user set. If the user set no time, the function never returns.
async fn time_is_over(seconds: Option<u64>) {
    match seconds {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

/// Records and shows the numbers of each second.
async fn show(recorder: &Mutex<Recorder>, is_json: bool) -> std::io::Result<()> {
    let mut screen = Screen::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        recorder.lock().sample();
        if !is_json {
            screen.show(&recorder.lock())?;
        }
    }
}

/// Creates a product at regular intervals, and requests each new product at once, to test a read
/// after a write.
async fn create_products(
    guard: SocketAddr,
    recorder: Arc<Mutex<Recorder>>,
    mut is_stopped: watch::Receiver<bool>,
) {
    let mut client = Client::new(guard);
    loop {
        tokio::select! {
            _ = is_stopped.wait_for(|&is_stopped| is_stopped) => return,
            () = tokio::time::sleep(CREATE_PERIOD) => {}
        }
        let Some((StatusCode::CREATED, body)) = client.send(Method::POST, PATH).await else {
            tracing::warn!("a product of the demo could not be created");
            continue;
        };
        let start = Instant::now();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(id) = answer["data"]["id"].as_u64() else { continue };
        let status = client.get(&format!("{PATH}/{id}")).await;
        let created =
            Created { id, has_passed: status == Some(StatusCode::OK), time: start.elapsed() };
        recorder.lock().record_created(created);
    }
}

fn print_summary(recorder: &Recorder, planned_rate: f64, is_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        serde_json::to_writer_pretty(&mut out, &recorder.summary(planned_rate))?;
        return writeln!(out);
    }
    out.write_all(screen::summary(recorder).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_the_demo_is_valid() {
        let upstream = SocketAddr::from(([127, 0, 0, 1], 9));
        let listen = ["127.0.0.1:1".to_owned(), "[::1]:2".to_owned()];
        let config = config(Path::new("/tmp"), &listen, upstream).ok().unwrap();
        assert_eq!(config.proxy().unwrap().listen.len(), 2);
    }

    #[test]
    fn clients_reach_a_server_that_listens_on_all_addresses() {
        let reach = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(reach("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(reach("192.0.2.1:80"), "192.0.2.1:80");
    }
}
