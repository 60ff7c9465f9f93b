//! `tamis formats`: lists the systems whose filters Tamis reads and writes.

use serde_json::{Value, json};
use tamis_formats::{Detection, FORMATS, Format, Items};

use crate::exit::{CommandResult, Exit};
use crate::io::output::write_whole;
use crate::io::table::align;

/// List the systems whose filters tamis reads and writes
///
/// 'info', 'check', 'add', 'merge' and 'convert' read files of all listed systems. Most formats are
/// recognised by their bytes, and some formats only by the extension of the file name. A filter in
/// a format that cannot be recognised needs --format.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis formats
  tamis formats --json | jq -r '.[] | select(.requires_funnel) | .name'")]
pub struct Args {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let text = if args.json {
        format!("{:#}\n", Value::Array(FORMATS.iter().map(json).collect()))
    } else {
        let mut rows = vec![["format", "found by", "ends in", "what"].map(String::from).to_vec()];
        rows.extend(FORMATS.iter().map(row));
        align(&rows, &[]) + REMARK
    };
    write_whole(None, text.as_bytes())?;
    Ok(Exit::Yes)
}

/// The text below the table.
const REMARK: &str = "\nThe value of a Redis string, as GET returns it, contains no format: it \
    needs --format. 'convert' writes the format of --to, or the one of the extension of OUT.\n";

fn row(format: &Format) -> Vec<String> {
    let found_by = match format.detection {
        Detection::ByBytes(_) => "its bytes",
        Detection::ByName => "its name",
        Detection::ByOption => "--format",
    };
    let ends_in = format.extensions.iter().map(|extension| format!(".{extension}"));
    let ends_in = ends_in.collect::<Vec<_>>().join(" ");
    [format.name, found_by, &ends_in, format.summary].map(String::from).to_vec()
}

fn json(format: &Format) -> Value {
    json!({
        "name": format.name,
        "summary": format.summary,
        "extensions": format.extensions,
        "recognised": matches!(format.detection, Detection::ByBytes(_)),
        "requires_funnel": format.items == Items::Unspecified,
    })
}
