//! Compares batches with single calls, in a build for any CPU and in a build for this CPU.

use std::process::Command;

use crate::lookups::short;
use crate::process::root;
use crate::run::{Bench, Row};

/// The builds of the program `tamis-bench-batches`: the folder below `target`, and the suffix of the
/// row names.
const BUILDS: [(&str, &str); 2] = [("release", ""), ("native/release", ", build for this CPU")];

/// The calls that are measured, in the order in which the program prints their times. The program
/// prints both times of the lookups first.
const CALLS: [&str; 2] = ["single", "batch"];

pub const SIZES: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Returns the case of the lookups and the case of the inserts.
pub fn cases(size: u64) -> [String; 2] {
    ["lookups", "inserts"].map(|calls| format!("{calls} beside batches, {} ints", short(size)))
}

/// Runs every case.
pub fn run(bench: &mut Bench) {
    let sizes = if bench.quick { &SIZES[..4] } else { &SIZES };
    for &size in sizes {
        let cases = cases(size);
        if !cases.iter().any(|case| bench.wants(case)) {
            continue;
        }
        match measure(size, bench.rounds, &cases) {
            Ok(rows) => {
                for (case, rows) in cases.iter().zip(rows) {
                    println!("\n{case}");
                    bench.keep(rows);
                }
            }
            Err(why) => println!("\n{}: left out: {why}", cases.join(" and ")),
        }
    }
}

/// Runs both builds in turn. Returns the rows of the lookups and of the inserts.
fn measure(size: u64, rounds: usize, cases: &[String; 2]) -> Result<[Vec<Row>; 2], String> {
    let mut rows = cases.each_ref().map(|case| {
        let names = BUILDS.iter().flat_map(|(_, build)| CALLS.map(|call| format!("{call}{build}")));
        names.map(|name| Row::new(case, &name)).collect::<Vec<_>>()
    });
    for _ in 0..rounds {
        for (build, (folder, _)) in BUILDS.iter().enumerate() {
            let program = root().join("target").join(folder).join("tamis-bench-batches");
            let output = Command::new(&program).arg(size.to_string()).output();
            let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let times: Vec<f64> = text.split(' ').filter_map(|it| it.trim().parse().ok()).collect();
            let times: [f64; 4] = times.try_into().map_err(|_| {
                let errors = String::from_utf8_lossy(&output.stderr);
                format!("{} printed {text:?} {errors}", program.display())
            })?;
            for (i, time) in times.into_iter().enumerate() {
                rows[i / 2][2 * build + i % 2].rounds.push(time);
            }
        }
    }
    Ok(rows)
}
