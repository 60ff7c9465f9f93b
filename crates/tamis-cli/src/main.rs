//! The one program, `tamis`.
//!
//! Each command is a file: its `Args` (what clap reads) and `run` (what it does). `input`, `output`
//! and `progress` are what the commands share.

// The commands that use these rooms arrive one by one.
#![allow(dead_code)]

mod dedup;
mod exit;
mod input;
mod ints;
mod key;
mod output;
mod progress;
mod records;
mod size;

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
