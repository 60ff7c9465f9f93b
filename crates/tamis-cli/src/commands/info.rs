//! `tamis info`: describes a filter and its free capacity.

mod chart;
mod description;
mod foreign;
mod keys;
#[cfg(feature = "network")]
mod on_server;
mod tamis;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::arguments::decode_options::DecodeArgs;
use crate::arguments::unused_options::UnusedOptions;
use crate::commands::info::description::Description;
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::open_filter::{NoFilter, OpenFilter, Trust};
use crate::filters::opener::Opener;
use crate::filters::redis_url::{self, is_url};
use crate::io::input;
use crate::io::messages;
use crate::io::output::{is_same_file, write_whole};

/// Describe filters: kind, size, items, current rate and free capacity
///
/// The command verifies every byte of a file, and computes the items, the fill and the current rate
/// from the bits. For a filter of tamis-redis, the command computes these values from the counters
/// on the server.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis info seen.tamis
  tamis info --json *.tamis | jq '.[] | select(.headroom_items == 0) | .name'
  tamis info seen.tamis --svg seen.svg
  tamis info users.guava                              filters of other systems: see 'tamis formats'
  tamis info --keys dump.rdb                          all keys of a snapshot of Redis
  tamis info redis://localhost/seen                   a key of a Redis or Valkey server

Exit status: 0 shown, 2 failed, 3 a filter is over its rate.")]
pub struct Args {
    /// Filters to describe: files, or keys of a Redis or Valkey server (redis://HOST/KEY)
    #[arg(required = true, value_name = "FILTERS")]
    files: Vec<PathBuf>,

    /// Print a JSON list
    #[arg(long)]
    json: bool,

    /// Write a chart of the fill of each block and of the rate by items to FILE (for one filter)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// List the keys of Redis snapshots (database, type and key) without decoding a filter
    #[arg(long, conflicts_with = "svg")]
    keys: bool,

    // The decode options are the last field, because clap puts all options after this field under
    // the heading of the decode options.
    #[command(flatten)]
    decode: DecodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    if args.svg.is_some() && args.files.len() > 1 {
        return Err(Failure::new("--svg draws one filter: name one"));
    }
    if let Some(path) = &args.svg
        && args.files.iter().any(|file| is_same_file(file, path))
    {
        let path = path.display();
        return Err(Failure::new(format!("{path}: is the filter; name another file for --svg")));
    }
    if args.keys {
        refuse_decode_options(&args.decode)?;
        return keys::run(&args.files, args.json);
    }
    let mut opener = Opener::new(&args.decode);
    let mut shown = Shown::default();
    let mut failures = Vec::new();
    for (index, path) in args.files.iter().enumerate() {
        let is_last = index + 1 == args.files.len();
        match of_server(path) {
            Ok(None) => {}
            Ok(Some(description)) => {
                opener.found_native(path);
                if is_last && failures.is_empty() {
                    opener.finish()?;
                }
                if args.svg.is_some() {
                    return Err(Failure::new("--svg draws filters of Tamis only"));
                }
                shown.add_description(args, &input::name(path), description);
                continue;
            }
            Err(Failure::Message(message)) => {
                failures.push(message);
                continue;
            }
            Err(failure) => return Err(failure),
        }
        let opened = opener.all(path, Trust::Verify);
        if is_last && opened.is_ok() && failures.is_empty() {
            opener.finish()?;
        }
        match opened.and_then(|all| shown.add(args, path, &all)) {
            Ok(()) => {}
            Err(Failure::Message(message)) => failures.push(message),
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
        }
    }
    let last = failures.pop();
    if last.is_none() || !shown.is_empty() {
        write_whole(None, shown.finish(args.json).as_bytes())?;
    }
    for message in failures {
        messages::error(message);
    }
    last.map_or(Ok(shown.exit), |message| Err(Failure::Message(message)))
}

/// Describes a filter of `tamis-redis` under the key of a URL. Returns `None` for other filters.
fn of_server(path: &Path) -> Result<Option<Description>, Failure> {
    if !is_url(path) {
        return Ok(None);
    }
    let url = redis_url::parse(path)?;
    #[cfg(feature = "network")]
    return on_server::describe(url);
    #[cfg(not(feature = "network"))]
    url.not_in_this_program();
}

/// Rejects decode options together with `--keys`, because the list of keys needs no decode option.
fn refuse_decode_options(decode: &DecodeArgs) -> Result<(), Failure> {
    let given: Vec<_> = UnusedOptions::of(decode).names().collect();
    if given.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "info --keys lists all keys and decodes no filter: leave out {}",
        given.join(", ")
    )))
}

/// The descriptions of filters that the command has collected so far.
#[derive(Default)]
struct Shown {
    text: String,
    list: Vec<Value>,
    exit: Exit,
}

impl Shown {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.list.is_empty()
    }

    fn finish(&mut self, json: bool) -> String {
        if json {
            format!("{:#}\n", Value::Array(std::mem::take(&mut self.list)))
        } else {
            std::mem::take(&mut self.text)
        }
    }

    /// Appends a description, and writes its notes to stderr.
    fn add_description(&mut self, args: &Args, name: &str, description: Description) {
        for note in &description.notes {
            note!("{name}: {note}");
        }
        if description.is_over_rate {
            self.exit = Exit::OverRate;
        }
        if args.json {
            self.list.push(description.json);
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        description.text(name, &mut self.text);
    }

    /// Appends the filters of a file.
    fn add(
        &mut self,
        args: &Args,
        path: &Path,
        all: &[Result<OpenFilter, NoFilter>],
    ) -> Result<(), Failure> {
        if !args.json && !self.text.is_empty() {
            self.text.push('\n');
        }
        // The filters of a Parquet table or an ORC file are rows of one text table.
        let mut rows = Vec::new();
        for filter in all {
            let filter = match filter {
                Ok(filter) => filter,
                Err(none) => {
                    note!("{}: has no filter: any item may be in it", none.name);
                    rows.push(foreign::row_without(&none.name, path));
                    continue;
                }
            };
            let description = describe(filter, args)?;
            filter.check_unchanged()?;
            for note in &description.notes {
                note!("{}: {note}", filter.name);
            }
            if description.is_over_rate {
                self.exit = Exit::OverRate;
            }
            if args.json {
                self.list.push(description.json);
            } else if all.len() == 1 {
                description.text(&filter.name, &mut self.text);
            } else {
                rows.push(description.table_row);
            }
        }
        if !args.json && !rows.is_empty() {
            foreign::table(path, rows, &mut self.text);
        }
        Ok(())
    }
}

/// Describes a filter. If `--svg` is given, also draws the filter.
fn describe(filter: &OpenFilter, args: &Args) -> Result<Description, Failure> {
    let Some(file) = filter.view()? else {
        if args.svg.is_some() {
            return Err(Failure::new("--svg draws filters of Tamis only"));
        }
        return Ok(foreign::describe(filter));
    };
    if let Some(path) = &args.svg {
        let document = crate::io::svg::document(&chart::charts(&filter.name, &file));
        // If the bits have changed during the drawing, the chart must not replace a file.
        filter.check_unchanged()?;
        write_whole(Some(path), document.as_bytes())?;
    }
    Ok(tamis::describe(&filter.name, &file))
}
