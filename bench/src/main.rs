//! Measures Tamis, its rivals and the floors of the memory in one run.
//!
//! `cargo xtask bench` builds and runs this program. A wrong answer fails the run.

mod batches;
mod builds;
mod chart;
mod contender;
mod family;
mod floor;
mod formats;
mod guard;
mod inserts;
mod items;
mod lookups;
mod machine;
mod originals;
mod plans;
mod process;
mod programs;
mod repeats;
mod report;
mod run;
mod server;
mod shared;
mod targets;

use std::path::Path;
use std::process::ExitCode;

use run::Bench;

const USAGE: &str = "usage: tamis-bench [--filter TEXT] [--quick] [--rounds N] [--out FOLDER]";

fn main() -> ExitCode {
    let mut bench =
        Bench { filter: None, quick: false, rounds: 7, rows: Vec::new(), wrong: Vec::new() };
    let mut out = None;
    let mut args = std::env::args().skip(1);
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [argument, port, url] = &*words
        && argument == guard::shop::ARGUMENT
    {
        return match guard::shop::serve(port, url) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => refuse(&why),
        };
    }
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => bench.filter = args.next(),
            "--quick" => bench.quick = true,
            "--out" => out = args.next(),
            "--rounds" => match args.next().and_then(|n| n.parse().ok()) {
                Some(rounds) if rounds > 0 => bench.rounds = rounds,
                _ => return refuse("--rounds wants a number above zero"),
            },
            _ => return refuse(&format!("unknown argument {arg}")),
        }
    }
    let groups = [
        // Programs run first: the peak memory of a child includes the memory of its parent at its
        // start.
        programs::run,
        plans::run,
        lookups::run,
        inserts::run,
        batches::run,
        builds::run,
        shared::run,
        repeats::run,
        family::run,
        originals::run,
        formats::run,
        server::run,
        guard::run,
    ];
    for group in groups {
        group(&mut bench);
        // The report is written after each group. A run takes half an hour, and a stopped run keeps
        // its measurements.
        if let Some(folder) = &out
            && let Err(error) = report::write(Path::new(folder), &bench.rows)
        {
            return refuse(&format!("{folder}: {error}"));
        }
    }
    if let Some(filter) = bench.filter.filter(|_| bench.rows.is_empty()) {
        return refuse(&format!("no case has {filter:?} in its name: docs/bench lists the cases"));
    }
    println!();
    for verdict in targets::verdicts(&bench.rows.iter().collect::<Vec<_>>()) {
        let mark = if verdict.reached { "✓" } else { "✗" };
        println!("{mark} {:<34} {:<56} {}", verdict.case, verdict.what, verdict.found);
    }
    for wrong in &bench.wrong {
        eprintln!("wrong answer: {wrong}");
    }
    if bench.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}\n{USAGE}");
    ExitCode::from(2)
}
