//! `tamis guard check`: tests a configuration and its sources.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use tamis_guard::source::SourceStatus;
use tamis_guard::{Config, GuardSet, GuardSets};

use crate::exit::{CommandResult, Exit, Failure, set_incomplete};
use crate::io::messages;
use crate::io::output::write_whole;
use crate::io::table::{align, plain};

#[derive(clap::Args)]
pub struct Args {
    /// Read the configuration from a TOML file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Wait at most this many seconds for the sources
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A line of the output.
#[derive(Serialize)]
struct Line {
    ids: String,
    state: &'static str,
    items: u64,
    invalid_rows: u64,
    bytes: u64,
    error: Option<String>,
}

pub fn run(args: &Args) -> CommandResult {
    let config = Config::read(&args.config).map_err(Failure::new)?.without_snapshots();
    let sets = start(&config, args.timeout)?;
    let mut lines = Vec::new();
    for set in sets.list() {
        let generations = set.ids.generations();
        let status = set.status.as_ref();
        let is_synced = status.is_some_and(|status| status.state.is_complete());
        let error = match status {
            None => Some("the set has no source in the configuration".to_owned()),
            Some(_) if is_synced => None,
            Some(status) => {
                let late = || format!("not synced after {} s", args.timeout);
                Some(status.last_error.clone().unwrap_or_else(late))
            }
        };
        if let Some(error) = &error {
            messages::error(format!("ids.{}: {error}", set.name));
            set_incomplete();
        }
        let invalid_rows = status.map_or(0, |status| status.invalid_rows);
        if invalid_rows > 0 {
            let rows = match invalid_rows {
                1 => "1 row has".to_owned(),
                rows => format!("{rows} rows have"),
            };
            messages::note(format!(
                "ids.{}: {rows} no valid id, and requests for such ids are refused; if they are \
                 not NULL, check `type`, `min`, `max` and `max_length`",
                set.name
            ));
        }
        lines.push(Line {
            ids: set.name,
            state: set.ids.state().name(),
            items: generations.items(),
            invalid_rows,
            bytes: generations.bytes(),
            error,
        });
    }
    let text = match args.json {
        true => serde_json::to_string_pretty(&lines).expect("texts and numbers") + "\n",
        false => table(&lines),
    };
    write_whole(None, text.as_bytes())?;
    Ok(Exit::Yes)
}

/// Starts all sources, and waits until each source is synced or has failed, or until the timeout.
pub fn start(config: &Config, timeout: u64) -> Result<GuardSets, Failure> {
    let sets = GuardSets::start(config).map_err(Failure::new)?;
    let end = Instant::now() + Duration::from_secs(timeout.min(86_400));
    // A source that has failed once may still succeed, but the user waits for the error message.
    let is_waiting = |it: &SourceStatus| !it.state.is_complete() && it.failures == 0;
    let is_pending = |set: &GuardSet| {
        set.status.as_ref().is_some_and(is_waiting)
            || set.sources.iter().any(|source| is_waiting(&source.status))
    };
    while sets.list().iter().any(is_pending) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(sets)
}

fn table(lines: &[Line]) -> String {
    let mut rows =
        vec![["ids", "state", "items", "invalid rows", "bytes"].map(String::from).to_vec()];
    rows.extend(lines.iter().map(|line| {
        vec![
            plain(&line.ids),
            line.state.to_owned(),
            line.items.to_string(),
            line.invalid_rows.to_string(),
            line.bytes.to_string(),
        ]
    }));
    align(&rows, &[2, 3, 4])
}
