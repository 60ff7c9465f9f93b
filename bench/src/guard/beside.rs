//! Measures a whole site on core 0: nginx, a shop and MariaDB, with and without a guard that nginx asks
//! (`auth_request`). The load runs on core 1.

use super::database::{Database, Kind};
use super::folder::Folder;
use super::service::Service;
use super::wrk::{self, Load, Measured, Wrk};
use super::{BESIDE_ABSENT, BESIDE_ATTACK};
use crate::run::{Bench, Row};

pub const WITHOUT: &str = "nginx, shop, MariaDB";
pub const WITH: &str = "the same with tamis guard";
pub const QUIET: &str = "without an attack";
pub const ATTACKED: &str = "during the attack";

/// The attacker sends this share of the requests that the site can refuse at full load.
const ATTACK_SHARE: f64 = 0.5;

/// Measures the requests per second for absent ids, and the customers during an attack. Does nothing if MariaDB is not
/// installed.
pub fn measure(bench: &mut Bench, folder: &Folder) -> Result<(), String> {
    let ids = if bench.quick { 10_000 } else { 1_000_000 };
    let Some(database) = Database::start(Kind::MariaDb, "0", folder, ids)? else { return Ok(()) };
    let shop = Service::shop(&database.url())?;
    let guard = Service::tamis(folder, shop.port, &database.source())?;
    // The shop also responds with 404 to an absent id, so a 404 does not show that the guard has read the ids.
    guard.built_after(0)?;
    let plain = Service::nginx_site(folder, shop.port, None)?;
    let guarded = Service::nginx_site(folder, shop.port, Some(guard.authorize))?;
    let seconds = if bench.quick { 1 } else { 5 };
    println!("\n{BESIDE_ABSENT}");
    let load = Load::full(ids, true, seconds);
    let mut rows = [Row::new(BESIDE_ABSENT, WITHOUT), Row::new(BESIDE_ABSENT, WITH)];
    for _ in 0..bench.rounds {
        for (row, site) in rows.iter_mut().zip([&plain, &guarded]) {
            row.rounds.push(wrk::run(folder, site.port, &load)?.nanos);
        }
    }
    let nanos = rows[1].rounds.iter().copied().fold(f64::INFINITY, f64::min);
    bench.keep(rows);
    if bench.wants(BESIDE_ATTACK) {
        attack(bench, folder, &guarded, ids, nanos)?;
    }
    Ok(())
}

/// Measures customers of the guarded site with and without an attack. `nanos` is the time of a refusal at full load.
fn attack(
    bench: &mut Bench,
    folder: &Folder,
    site: &Service,
    ids: u64,
    nanos: f64,
) -> Result<(), String> {
    println!("\n{BESIDE_ATTACK}");
    let seconds = if bench.quick { 2 } else { 20 };
    let customers = Load { connections: 8, pause_millis: 20, ..Load::full(ids, false, seconds) };
    let connections = 64;
    let pause = f64::from(connections) * nanos / ATTACK_SHARE / 1e6;
    let attacker = Load {
        connections,
        pause_millis: pause.round() as u32,
        ..Load::full(ids, true, seconds + 1)
    };
    let mut rows = [Row::new(BESIDE_ATTACK, QUIET), Row::new(BESIDE_ATTACK, ATTACKED)];
    // An attack takes a long time, so this case has few rounds.
    for _ in 0..bench.rounds.min(2) {
        rows[0].rounds.push(wrk::run(folder, site.port, &customers)?.p99_nanos);
        let attack = Wrk::start(folder, site.port, &attacker)?;
        rows[1].rounds.push(wrk::run(folder, site.port, &customers)?.p99_nanos);
        let Measured { requests, refused, nanos, .. } = attack.end()?;
        rows[1].rate = Some((requests - refused) as f64 / requests as f64);
        println!("  {refused} of {requests} requests were refused, {:.0} a second", 1e9 / nanos);
    }
    bench.keep(rows);
    Ok(())
}
