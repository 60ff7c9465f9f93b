//! The one program, `tamis`.
//!
//! Each command is a file: its `Args` (what clap reads) and `run` (what it does). `input`, `output`
//! and `progress` are what the commands share.

mod dedup;
mod exit;
mod ints;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Answers "have I seen this?" for lines, files of items and integers.
#[derive(Parser)]
#[command(name = "tamis", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dedup(dedup::Args),
    Ints(ints::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Dedup(args) => dedup::run(&args),
        Command::Ints(args) => ints::run(&args),
    };
    exit::report(outcome)
}
