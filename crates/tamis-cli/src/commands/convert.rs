//! `tamis convert`: converts a filter to the format of another system.

mod rebuild;
mod sides;

use std::path::PathBuf;

use tamis_formats::Charset;

use crate::arguments::decode_options::{DecodeArgs, charset_parser, format_parser, funnel_parser};
use crate::arguments::numbers::HumanCount;
use crate::exit::CommandResult;
use crate::filters::rate_notes::Notes;
use crate::io::output::check_filter_output;
use crate::records::key::{KeyArgs, RecordArgs, rate};

/// Convert a filter to the format of another system
///
/// If both systems compute the same bit positions for an item, the command copies the bits. The
/// order of bits and bytes may differ between the systems. If the bit positions differ, the command
/// needs the items: with --items, the command builds OUT from the items and tests each item in both
/// filters.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis convert 1.bitmap users.guava --format redis-bitmaps --items-planned 1000 --rate-planned 0.01 --funnel bytes
  tamis convert users.guava users.tamis --funnel text --charset UTF-8 --items users.txt
  tamis convert users.tamis users.guava --items users.txt --to-funnel text --to-charset UTF-8
  tamis convert redis://localhost/users users.rdb --to redisson       with its settings, as a snapshot

Options with --to-... apply to OUT. All others apply to IN, and to OUT if the same option with --to- is not given.

Exit status: 0 converted, 2 failed, 3 converted, but over its rate.")]
pub struct Args {
    /// The filter to convert; '-' is standard input; redis://HOST/KEY is a key of a Redis server
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Write the converted filter to OUT; replace OUT only when the new filter is complete; '-' is
    /// standard output; redis://HOST/KEY is a key that does not exist yet
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Format of OUT: see 'tamis formats' [default: by the file name of OUT]
    #[arg(long, value_name = "FORMAT", ignore_case = true, hide_possible_values = true, value_parser = format_parser())]
    to: Option<String>,

    /// Build OUT from the items in FILE, one per line, plain or compressed (gzip, zstd, xz, bzip2)
    /// (may be repeated)
    #[arg(long, value_name = "FILE")]
    items: Vec<PathBuf>,

    /// With --items: how the system that reads OUT converts an item to bytes, as --funnel does for
    /// IN [default: --funnel]
    #[arg(long, value_name = "FUNNEL", ignore_case = true, hide_possible_values = true, value_parser = funnel_parser(), requires = "items")]
    to_funnel: Option<String>,

    /// With --to-funnel text or twice: how the system that reads OUT encodes text [default:
    /// --charset]
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser(), requires = "to_funnel")]
    to_charset: Option<Charset>,

    /// Number of items that OUT is planned for. For a bitmap of integers: the number of values
    /// [default: the number of items in FILE; --items-planned if the format does not store the
    /// number]
    #[arg(long, value_name = "N")]
    to_items: Option<HumanCount>,

    /// False positive rate that OUT is planned for [default: the rate of IN, or 0.01;
    /// --rate-planned if the format does not store the rate]
    #[arg(long, alias = "rate", value_name = "R", value_parser = rate)]
    to_rate: Option<f64>,

    /// Version of the format of OUT, such as 'nb' for SSTables of Cassandra 4, 2 for Spark since
    /// 4.1, 64 for Roaring, or 31 for Guava before 33.4
    #[arg(long, value_name = "V")]
    to_version: Option<Box<str>>,

    /// Merge several filters of IN, such as the filters of a Parquet table's row groups; the merged
    /// filter is fuller than planned
    #[arg(long)]
    union: bool,

    /// With --items: write OUT even if IN lacks some of the items or holds many other items. Also
    /// write OUT if its false positive rate exceeds the planned rate (exit status 3)
    #[arg(long, requires = "items")]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    records: RecordArgs,

    // The decode options are the last field, because clap puts all options after this field under
    // the heading of the decode options.
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    check_filter_output(&args.output)?;
    let (from, to, options) = args.both_sides()?;
    from.check_output(&args.output)?;
    if args.is_from_items() {
        return args.rebuild(&from, to, options);
    }
    from.save_as(&args.output, to, &options)?;
    from.report(Notes::All)
}

impl Args {
    fn is_from_items(&self) -> bool {
        !self.items.is_empty()
    }
}
