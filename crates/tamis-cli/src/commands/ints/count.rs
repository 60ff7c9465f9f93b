//! `tamis ints count`: counts integers, distinct integers and repeated integers.

use std::path::PathBuf;

use serde::Serialize;

use crate::commands::ints::streams::Reading;
use crate::exit::{CommandResult, Exit};
use crate::io::output::Output;

/// Count integers, distinct integers, and integers that occur more than once
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis ints count orders.txt.zst            total, distinct, repeated, smallest, largest
  tamis ints count --json a.txt b.txt        of both files together, as one JSON object")]
pub struct Args {
    /// Files of integers [default: standard input]
    files: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    /// Write to FILE; replace FILE only after success
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Default, Serialize)]
struct Counts {
    /// The number of integers read.
    total: u64,
    /// The number of distinct integers.
    distinct: u64,
    /// The number of distinct integers that occur more than once.
    repeated: u64,
    min: Option<u64>,
    max: Option<u64>,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let mut repeats = args.reading.repeats()?;
    let reader = args.reading.reader_of_present(&args.files, args.output.as_deref())?;
    let mut output = Output::open(args.output.as_deref())?;
    let mut counts = Counts::default();
    reader.for_each(|block| {
        counts.total += block.values.len() as u64;
        counts.min = counts.min.into_iter().chain(block.values.iter().copied()).min();
        counts.max = counts.max.max(block.values.iter().copied().max());
        repeats.feed(&block.values)
    })?;
    (counts.distinct, counts.repeated) = repeats.counts();
    let text = if args.json {
        serde_json::to_string(&counts).map_err(crate::exit::Failure::new)? + "\n"
    } else {
        table(&counts)
    };
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(Exit::Yes)
}

fn table(counts: &Counts) -> String {
    let shown = |value: Option<u64>| value.map_or_else(|| "-".into(), |value| value.to_string());
    let rows = [
        ("total", counts.total.to_string()),
        ("distinct", counts.distinct.to_string()),
        ("repeated", counts.repeated.to_string()),
        ("min", shown(counts.min)),
        ("max", shown(counts.max)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<9}{value:>20}\n")).collect()
}
