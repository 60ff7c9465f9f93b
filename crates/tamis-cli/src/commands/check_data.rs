//! `tamis check-data`: checks and repairs the folder of a stopped server.

use std::path::PathBuf;

use tamis_server::{DataReport, DurabilityError, HashKey, check_data, repair_data};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::HumanCount;
use crate::exit::{CommandResult, Exit, Failure};

/// Check the data files of a stopped server
///
/// The command reads the snapshot and the log as `tamis serve` does when it starts. The command
/// changes nothing, and needs as much memory as the server.
///
/// With --repair, the command writes the valid data as a new snapshot, keeps the old files in the
/// folder damaged-N inside DIR, and lists the lost data. If a server can start with the files, the
/// command changes nothing.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis check-data /var/lib/tamis
  tamis check-data --repair /var/lib/tamis

Exit status: 0 a server can start with these files, 1 they are damaged, or data was lost in the
repair, 2 the check failed.")]
pub struct Args {
    /// Data folder, as in `tamis serve --dir`
    dir: PathBuf,

    /// Write the valid data as a new snapshot, and keep the old files in the folder damaged-N
    /// inside DIR
    #[arg(long)]
    repair: bool,

    /// Option hash-key of the server: 'random', 'none' or 32 hexadecimal digits. The key file is
    /// read only with 'random', the default
    #[arg(long, value_name = "KEY", env = "TAMIS_HASH_KEY", hide_env_values = true,
        value_parser = hash_key, default_value = "random", hide_default_value = true)]
    hash_key: HashKey,
}

fn hash_key(text: &str) -> Result<HashKey, &'static str> {
    HashKey::parse(text).ok_or("is not 'random', 'none' or 32 hexadecimal digits")
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let run = if args.repair { repair_data } else { check_data };
    match run(&args.dir, args.hash_key) {
        Ok(report) => Ok(print(args, &report)),
        Err(error @ (DurabilityError::Damaged { .. } | DurabilityError::Missing { .. })) => {
            println!("{error}");
            Ok(Exit::No)
        }
        Err(error) => Err(Failure::new(error)),
    }
}

fn print(args: &Args, report: &DataReport) -> Exit {
    let dir = args.dir.display();
    println!(
        "{dir}: {} keys, {} changes in the log",
        HumanCount(report.keys as u64),
        HumanCount(report.changes)
    );
    if report.torn_bytes > 0 {
        println!(
            "  {} behind the last valid change were never synced; a start puts them aside",
            ByteSize { bytes: report.torn_bytes }
        );
    }
    let Some(aside) = &report.aside else {
        let done = if args.repair { "nothing to repair: a" } else { "a" };
        println!("  {done} server starts with these files");
        return Exit::Yes;
    };
    for lost in &report.lost {
        println!("  lost: {lost}");
    }
    println!("  the old files are in {}", aside.display());
    if report.lost.is_empty() { Exit::Yes } else { Exit::No }
}
