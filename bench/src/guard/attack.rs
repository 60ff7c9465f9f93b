//! Measures customers who request present ids while an attacker requests a million absent ids.

use super::ATTACK;
use super::folder::Folder;
use super::service::Service;
use super::wrk::{self, Load, Measured, Wrk};
use crate::run::{Bench, Row};

pub const QUIET: &str = "without an attack";
pub const ATTACKED: &str = "during the attack";

/// Measures the 99th percentile of customers with and without the attack, and the fraction of the
/// attacker's requests that pass.
///
/// The attacker sends about 25,000 requests per second. This is two thirds of the maximum that the
/// guard can refuse.
pub fn measure(
    bench: &mut Bench,
    folder: &Folder,
    guard: &Service,
    ids: u64,
) -> Result<(), String> {
    println!("\n{ATTACK}");
    let seconds = if bench.quick { 2 } else { 45 };
    let customers = Load { connections: 8, pause_millis: 4, ..Load::full(ids, false, seconds) };
    let attacker = Load { connections: 64, pause_millis: 2, ..Load::full(ids, true, seconds + 1) };
    let mut rows = [Row::new(ATTACK, QUIET), Row::new(ATTACK, ATTACKED)];
    // An attack takes a long time, so this case has few rounds.
    for _ in 0..bench.rounds.min(2) {
        rows[0].rounds.push(wrk::run(folder, guard.port, &customers)?.p99_nanos);
        let attack = Wrk::start(folder, guard.port, &attacker)?;
        rows[1].rounds.push(wrk::run(folder, guard.port, &customers)?.p99_nanos);
        let Measured { requests, refused, .. } = attack.end()?;
        rows[1].rate = Some((requests - refused) as f64 / requests as f64);
        println!("  {refused} of {requests} requests for absent ids were refused");
    }
    bench.keep(rows);
    Ok(())
}
