//! Measures Tamis beside its rivals and beside what memory can do, in one run.
//!
//! `cargo xtask bench` builds and runs it. A wrong answer fails the run.

mod contender;
mod floor;
mod inserts;
mod items;
mod lookups;
mod run;

use std::process::ExitCode;

use run::Bench;

const USAGE: &str = "usage: tamis-bench [--filter TEXT] [--quick] [--rounds N]";

fn main() -> ExitCode {
    let mut bench =
        Bench { filter: None, quick: false, rounds: 5, rows: Vec::new(), wrong: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => bench.filter = args.next(),
            "--quick" => bench.quick = true,
            "--rounds" => match args.next().and_then(|n| n.parse().ok()) {
                Some(rounds) if rounds > 0 => bench.rounds = rounds,
                _ => return refuse("--rounds wants a number above zero"),
            },
            _ => return refuse(&format!("unknown argument {arg}")),
        }
    }
    lookups::run(&mut bench);
    inserts::run(&mut bench);
    for wrong in &bench.wrong {
        eprintln!("wrong answer: {wrong}");
    }
    if bench.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}\n{USAGE}");
    ExitCode::from(2)
}
