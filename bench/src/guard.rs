//! Compares `tamis guard` with nginx and HAProxy. Each program runs alone on core 0. `wrk` and the
//! upstream run on core 1.
//!
//! The ids are the even numbers up to twenty million. The configuration of nginx contains no ids:
//! nginx only responds with `return 404`, the floor for a refusal. HAProxy reads the ids from a
//! list (`-f FILE`).

pub mod attack;
pub mod beside;
mod commits;
mod database;
mod folder;
mod reads;
pub mod rebuild;
mod service;
pub mod shop;
mod wrk;

use crate::process::is_here;
use crate::run::{Bench, Row};
use database::{Database, Kind};
use folder::Folder;
use service::{Guard, Service};
use wrk::Load;

pub const ABSENT: &str = "guard, one core, absent ids, 10 M known";
pub const PRESENT: &str = "guard, one core, present ids, 10 M known";
pub const ABSENT_P99: &str = "guard, one core, absent ids, 99th percentile";
pub const AUTHORIZE: &str = "guard, one core, authorize, present ids, 10 M known";
pub const AUTHORIZE_P99: &str = "guard, one core, authorize, present ids, 99th percentile";
pub const PRESENT_P99: &str = "guard, one core, present ids, 99th percentile";
pub const BESIDE_ABSENT: &str = "guard beside nginx, whole site on one core, absent ids";
pub const BESIDE_ATTACK: &str =
    "guard beside nginx, whole site on one core, 99th percentile of customers";
pub const REBUILD: &str = "guard, one core, 99th percentile during rebuilds of 10 M ids";
pub const ATTACK: &str = "guard, one core, 99th percentile of customers during an attack";

pub const READ_MARIADB: &str = "guard, first read of 3 M ids from MariaDB";
pub const READ_POSTGRES: &str = "guard, first read of 3 M ids from PostgreSQL";
pub const RESTART_MARIADB: &str = "guard, restart from a snapshot of 3 M ids, MariaDB";
pub const RESTART_POSTGRES: &str = "guard, restart from a snapshot of 3 M ids, PostgreSQL";
pub const COMMIT_MARIADB: &str = "guard, 99th percentile from commit to passing, MariaDB";
pub const COMMIT_POSTGRES: &str = "guard, 99th percentile from commit to passing, PostgreSQL";

pub const TAMIS: &str = "tamis guard";
pub const NGINX: &str = "nginx, return 404";
pub const NGINX_204: &str = "nginx, return 204";
pub const HAPROXY: &str = "haproxy, list of ids";

/// The cases whose source is a list of ids.
const LIST_CASES: [&str; 8] =
    [ABSENT, PRESENT, ABSENT_P99, PRESENT_P99, AUTHORIZE, AUTHORIZE_P99, REBUILD, ATTACK];
/// The cases whose source is a database.
const DATABASE_CASES: [(Kind, [&str; 3]); 2] = [
    (Kind::MariaDb, [READ_MARIADB, RESTART_MARIADB, COMMIT_MARIADB]),
    (Kind::Postgres, [READ_POSTGRES, RESTART_POSTGRES, COMMIT_POSTGRES]),
];
const IDS: u64 = 10_000_000;

/// The source of the guard, in TOML.
const LIST: &str = "source = { kind = \"lines\", path = \"ids.txt\", quiet = \"10ms\" }\n\
    interval = \"20ms\"\nstale_after = \"60s\"";

/// Runs the selected cases of the guard.
pub fn run(bench: &mut Bench) {
    let lists = wants(bench, &LIST_CASES);
    let databases = DATABASE_CASES.iter().any(|(_, cases)| wants(bench, cases));
    let beside = wants(bench, &[BESIDE_ABSENT, BESIDE_ATTACK]);
    if !lists && !databases && !beside {
        return;
    }
    for name in ["wrk", "nginx", "taskset"] {
        if !is_here(name) {
            println!("  {name} is not installed: the cases of the guard are left out");
            return;
        }
    }
    let measured = measure(bench, lists, databases).and_then(|()| match beside {
        true => beside::measure(bench, &Folder::new()?),
        false => Ok(()),
    });
    if let Err(why) = measured {
        bench.wrong.push(format!("guard: {why}"));
    }
}

/// Tests whether the user selected one of the cases.
fn wants(bench: &Bench, cases: &[&str]) -> bool {
    cases.iter().any(|case| bench.wants(case))
}

fn measure(bench: &mut Bench, lists: bool, databases: bool) -> Result<(), String> {
    if !lists && !databases {
        return Ok(());
    }
    let folder = Folder::new()?;
    let upstream = Service::nginx(&folder, "1", "return 200 '{\"code\":200,\"data\":{\"id\":1}}'")?;
    if lists {
        with_list(bench, &folder, upstream.port)?;
    }
    if databases {
        with_databases(bench, &folder, upstream.port)?;
    }
    Ok(())
}

fn with_databases(bench: &mut Bench, folder: &Folder, upstream: u16) -> Result<(), String> {
    let ids = if bench.quick { 100_000 } else { 3_000_000 };
    for (kind, cases) in DATABASE_CASES {
        if !wants(bench, &cases) {
            continue;
        }
        let Some(database) = Database::start(kind, "1", folder, ids)? else { continue };
        let [first_read, restart, commit] = cases;
        if bench.wants(first_read) {
            reads::first_read(bench, folder, first_read, &database, ids)?;
        }
        if bench.wants(restart) {
            reads::restart(bench, folder, restart, &database, upstream)?;
        }
        if bench.wants(commit) {
            commits::measure(bench, folder, commit, &database, upstream)?;
        }
    }
    Ok(())
}

fn with_list(bench: &mut Bench, folder: &Folder, upstream: u16) -> Result<(), String> {
    let ids = if bench.quick { IDS / 100 } else { IDS };
    folder.write_ids(ids)?;
    let guard = Service::tamis(folder, upstream, LIST)?;
    if wants(bench, &[ABSENT, PRESENT, ABSENT_P99, PRESENT_P99]) {
        beside_rivals(bench, folder, &guard.service, upstream, ids)?;
    }
    if wants(bench, &[AUTHORIZE, AUTHORIZE_P99]) {
        authorize(bench, folder, &guard, ids)?;
    }
    if bench.wants(REBUILD) {
        rebuild::measure(bench, folder, &guard, ids)?;
    }
    if bench.wants(ATTACK) {
        attack::measure(bench, folder, &guard.service, ids)?;
    }
    Ok(())
}

fn beside_rivals(
    bench: &mut Bench,
    folder: &Folder,
    guard: &Service,
    upstream: u16,
    ids: u64,
) -> Result<(), String> {
    let floor = Service::nginx(folder, "0", "return 404 '{\"code\":404,\"message\":\"absent\"}'")?;
    let mut contenders = vec![(TAMIS, Contender::from(guard))];
    let haproxy = is_here("haproxy").then(|| Service::haproxy(folder, upstream)).transpose()?;
    match &haproxy {
        Some(haproxy) => contenders.push((HAPROXY, haproxy.into())),
        None => println!("  haproxy is not installed: its rows are left out"),
    }
    let seconds = if bench.quick { 1 } else { 5 };
    let absent = [&[(NGINX, Contender::from(&floor))][..], &contenders].concat();
    race(bench, folder, [ABSENT, ABSENT_P99], &absent, &Load::full(ids, true, seconds))?;
    race(bench, folder, [PRESENT, PRESENT_P99], &contenders, &Load::full(ids, false, seconds))
}

/// Measures the answers to the questions of nginx. The floor is an nginx that answers each question with 204.
fn authorize(bench: &mut Bench, folder: &Folder, guard: &Guard, ids: u64) -> Result<(), String> {
    let floor = Service::nginx(folder, "0", "return 204")?;
    let seconds = if bench.quick { 1 } else { 5 };
    let load = Load { is_question: true, ..Load::full(ids, false, seconds) };
    let contenders = [
        (NGINX_204, Contender { service: &floor, port: floor.port }),
        (TAMIS, Contender { service: &guard.service, port: guard.authorize }),
    ];
    race(bench, folder, [AUTHORIZE, AUTHORIZE_P99], &contenders, &load)
}

/// A program of a race, and the port to which the requests go.
#[derive(Clone, Copy)]
struct Contender<'s> {
    service: &'s Service,
    port: u16,
}

impl<'s> From<&'s Service> for Contender<'s> {
    fn from(service: &'s Service) -> Self {
        Self { service, port: service.port }
    }
}

/// Measures the contenders in turn, for several rounds. `cases` are the case for the times and the
/// case for the latencies.
fn race(
    bench: &mut Bench,
    folder: &Folder,
    cases: [&str; 2],
    contenders: &[(&str, Contender<'_>)],
    load: &Load,
) -> Result<(), String> {
    println!("\n{}\n{}", cases[0], cases[1]);
    let rows = |case| contenders.iter().map(move |(name, _)| Row::new(case, name));
    let (mut times, mut latencies): (Vec<_>, Vec<_>) =
        (rows(cases[0]).collect(), rows(cases[1]).collect());
    for (row, (_, contender)) in times.iter_mut().zip(contenders) {
        row.peak_mib =
            Some(contender.service.process.resident_bytes()? as f64 / f64::from(1 << 20));
    }
    for _ in 0..bench.rounds {
        for (i, (name, contender)) in contenders.iter().enumerate() {
            let measured =
                wrk::run(folder, contender.port, load).map_err(|why| format!("{name}: {why}"))?;
            times[i].rounds.push(measured.nanos);
            latencies[i].rounds.push(measured.p99_nanos);
        }
    }
    bench.keep(times.into_iter().chain(latencies));
    Ok(())
}
