//! The project's own tasks. Each is a file: what it does stands at its top.
#![forbid(unsafe_code)]

mod bench;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  bench [--filter TEXT] [--quick] [--rounds N]
                  measures Tamis beside its rivals and what memory can do";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.split_first() {
        Some((&"bench", rest)) => bench::run(rest),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Why a task could not, as text for people.
type Outcome = Result<(), String>;
