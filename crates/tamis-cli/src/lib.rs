//! Contains the modules of the program `tamis`, as a library for fuzz targets and tests. The
//! library has no stable interface. The program is the stable interface.
//!
//! The file of each command contains a type `Args`, which clap parses, and a function `run`, which
//! executes the command. All commands share the modules of `io`.

// The module `io` is the first, because the other modules use its macro `note!`.
#[macro_use]
mod io;
mod arguments;
mod clock;
mod commands;
#[cfg(feature = "network")]
mod daemon;
mod exit;
mod filters;
mod records;

pub use commands::ints::decimal;
pub use filters::orc_file;
pub use records::{csv, key, split};

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
    Dedup(commands::dedup::Args),
    Build(commands::build::Args),
    Add(commands::add::Args),
    Remove(commands::remove::Args),
    Check(commands::check::Args),
    Info(commands::info::Args),
    Merge(commands::merge::Args),
    Convert(commands::convert::Args),
    Formats(commands::formats::Args),
    Plan(commands::plan::Args),
    Ints(commands::ints::Args),
    #[cfg(feature = "network")]
    Serve(Box<commands::serve::Args>),
    #[cfg(feature = "network")]
    Guard(Box<commands::guard::Args>),
    #[cfg(feature = "network")]
    Publish(commands::publish::Args),
    #[cfg(feature = "network")]
    Pull(commands::pull::Args),
    #[cfg(feature = "network")]
    Health(commands::health::Args),
    #[cfg(feature = "network")]
    CheckData(commands::check_data::Args),
    /// Explains that this program is the small program
    #[cfg(not(feature = "network"))]
    #[command(name = "serve", aliases = ["guard", "check-data", "publish", "pull", "health"])]
    #[command(hide = true, disable_help_flag = true)]
    OnlyInWholeProgram {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
    Completions(commands::completions::CompletionsArgs),
    Man(commands::completions::ManArgs),
}

/// Parses the command line, runs its command and returns the exit status.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Clap returns requested help and version texts as errors. For a call without a command,
        // clap also returns the help as an error.
        Err(error) if !arguments::usage::is_mistake(&error) => {
            return arguments::usage::show(&error);
        }
        Err(error) => {
            let words: Vec<_> = std::env::args_os().skip(1).collect();
            return exit::report(Err(exit::Failure::new(arguments::usage::line(&error, &words))));
        }
    };
    if cli.quiet {
        io::messages::be_quiet();
    }
    if cli.quiet || cli.no_progress {
        io::progress::turn_off();
    }
    let outcome = match cli.command {
        Command::Dedup(args) => commands::dedup::run(&args),
        Command::Build(args) => commands::build::run(&args),
        Command::Add(args) => commands::add::run(&args),
        Command::Remove(args) => commands::remove::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Info(args) => commands::info::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Formats(args) => commands::formats::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Ints(args) => commands::ints::run(&args),
        #[cfg(feature = "network")]
        Command::Serve(args) => commands::serve::run(&args),
        #[cfg(feature = "network")]
        Command::Guard(args) => commands::guard::run(&args),
        #[cfg(feature = "network")]
        Command::Publish(args) => commands::publish::run(&args),
        #[cfg(feature = "network")]
        Command::Pull(args) => commands::pull::run(&args),
        #[cfg(feature = "network")]
        Command::Health(args) => commands::health::run(&args),
        #[cfg(feature = "network")]
        Command::CheckData(args) => commands::check_data::run(&args),
        #[cfg(not(feature = "network"))]
        Command::OnlyInWholeProgram { .. } => Err(exit::only_in_whole_program(
            "'serve', 'guard', 'publish', 'pull', 'health' and 'check-data'",
        )),
        Command::Completions(args) => commands::completions::completions(&args),
        Command::Man(args) => commands::completions::man(&args),
    };
    exit::report(outcome)
}
