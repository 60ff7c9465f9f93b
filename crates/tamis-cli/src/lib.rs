//! The modules of the program `tamis`, as a library for fuzz targets and tests. The library has no
//! stable interface; the program is the interface.
//!
//! Each command is a file with its `Args` (parsed by clap) and `run` (which executes it). The
//! commands share `input`, `output` and `progress`.

// This module is first because the others use its macro.
#[macro_use]
mod messages;

mod add;
mod attributes;
mod build;
mod byte_size;
mod change_lock;
mod check;
mod check_data;
mod clock;
mod column_name;
mod column_table;
mod column_text;
mod completions;
mod content_tag;
mod convert;
pub mod csv;
mod daemon;
mod decode_options;
mod dedup;
mod exit;
mod file_bytes;
mod formats;
mod guard;
mod hash_key;
mod info;
mod input;
mod ints;
mod items;
pub mod key;
mod lookup;
mod map;
mod memory_limit;
mod merge;
mod metadata;
mod numbers;
mod open_filter;
mod opener;
pub mod orc_file;
mod orc_table;
mod output;
mod packing;
mod parquet_table;
mod plan;
mod prefetcher;
mod progress;
mod publish;
mod pull;
mod rate_notes;
mod read;
mod read_ahead;
mod record_reader;
pub mod records;
mod redact;
mod redis_key;
mod redis_url;
mod remove;
mod repeats;
mod secret_set;
mod serve;
mod server_filter;
mod standard;
mod svg;
mod table;
mod table_filters;
mod temporary;
mod token_file;
mod unpack;
mod unread_file;
mod unused_options;
mod usage;
mod window_span;

pub use ints::decimal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Answer "have I seen this?" for lines, items and integers with membership filters
#[derive(Parser)]
#[command(name = "tamis", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Write only errors to stderr: no warnings, notes or progress
    #[arg(long, global = true, display_order = 1000)]
    quiet: bool,

    /// Draw no progress bar on a terminal
    #[arg(long, global = true, display_order = 1001)]
    no_progress: bool,
}

#[derive(Subcommand)]
enum Command {
    Dedup(dedup::Args),
    Build(build::Args),
    Add(add::Args),
    Remove(remove::Args),
    Check(check::Args),
    Info(info::Args),
    Merge(merge::Args),
    Convert(convert::Args),
    Formats(formats::Args),
    Plan(plan::Args),
    Ints(ints::Args),
    Serve(Box<serve::Args>),
    Guard(Box<guard::Args>),
    Publish(publish::Args),
    Pull(pull::Args),
    CheckData(check_data::Args),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version texts that the user requested, and the help for a call without a
        // command.
        Err(error) if !usage::is_mistake(&error) => return usage::show(&error),
        Err(error) => {
            let words: Vec<_> = std::env::args_os().skip(1).collect();
            let words = words.iter().filter_map(|word| word.to_str());
            return exit::report(Err(exit::Failure::new(usage::line(&error, words))));
        }
    };
    if cli.quiet {
        messages::be_quiet();
    }
    if cli.quiet || cli.no_progress {
        progress::turn_off();
    }
    let outcome = match cli.command {
        Command::Dedup(args) => dedup::run(&args),
        Command::Build(args) => build::run(&args),
        Command::Add(args) => add::run(&args),
        Command::Remove(args) => remove::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Formats(args) => formats::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Ints(args) => ints::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Guard(args) => guard::run(&args),
        Command::Publish(args) => publish::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::CheckData(args) => check_data::run(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
    };
    exit::report(outcome)
}
