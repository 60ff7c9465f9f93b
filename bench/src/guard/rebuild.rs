//! Measures requests for present ids while the guard builds one generation after another.

use std::time::Duration;

use super::REBUILD;
use super::folder::Folder;
use super::service::Guard;
use super::wrk::{self, Load, Wrk};
use crate::run::{Bench, Row};

pub const QUIET: &str = "without a rebuild";
pub const REBUILDING: &str = "during rebuilds";

/// Measures the 99th percentile with and without rebuilds. The run fails if a present id gets a
/// 404.
pub fn measure(bench: &mut Bench, folder: &Folder, guard: &Guard, ids: u64) -> Result<(), String> {
    println!("\n{REBUILD}");
    let mut rows = [Row::new(REBUILD, QUIET), Row::new(REBUILD, REBUILDING)];
    let port = guard.service.port;
    let load = Load::full(ids, false, if bench.quick { 1 } else { 10 });
    let before = guard.generations()?;
    for _ in 0..bench.rounds {
        rows[0].rounds.push(wrk::run(folder, port, &load)?.p99_nanos);
        let run = Wrk::start(folder, port, &load)?;
        // If a rebuild is already running, the guard queues one more rebuild. A rebuild has a
        // lower priority than requests, and may last for several rounds.
        for _ in 0..10 * load.seconds - 5 {
            guard.rebuild()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        rows[1].rounds.push(run.end()?.p99_nanos);
    }
    println!("  {} generations were built", guard.built_after(before)? - before);
    bench.keep(rows);
    Ok(())
}
