//! `tamis guard audit`: compares the filters with their sources.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tamis_guard::source::{AuditSource, FileFormat, FileOptions};
use tamis_guard::{AuditOptions, AuditReport, Config, audit};

use crate::commands::guard::check;
use crate::exit::{CommandResult, Exit, Failure};
use crate::io::messages;
use crate::io::output::write_whole;
use crate::io::table::{align, plain};

#[derive(clap::Args)]
pub struct Args {
    /// Read the configuration from a TOML file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Test the ids in FILE, one per line, instead of the ids of the source
    ///
    /// The ids in FILE must exist. With FILE, the command can also audit filters and Redis sources,
    /// which have no list of ids.
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,

    /// Audit only this set of ids
    #[arg(long, value_name = "NAME")]
    set: Option<String>,

    /// Test this many absent ids of each set
    #[arg(long, value_name = "N", default_value = "100000",
        value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    absent: u64,

    /// Create the absent ids from this seed
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,

    /// Wait at most this many seconds for the sources
    #[arg(long, value_name = "SECONDS", default_value = "600")]
    timeout: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> CommandResult {
    let config = Config::read(&args.config).map_err(Failure::new)?.without_snapshots();
    check_set(&config, args)?;
    let sets = check::start(&config, args.timeout)?;
    let mut reports = Vec::new();
    let is_chosen = |name: &str| args.set.as_ref().is_none_or(|set| set == name);
    for set in sets.list().into_iter().filter(|set| is_chosen(&set.name)) {
        let failed =
            |error: &dyn std::fmt::Display| Failure::new(format!("ids.{}: {error}", set.name));
        let Some(status) = &set.status else { continue };
        if !status.state.is_complete() {
            let late = format!("not synced after {} s", args.timeout);
            return Err(failed(status.last_error.as_ref().unwrap_or(&late)));
        }
        let mut source: Box<dyn AuditSource> = match &args.ids {
            Some(path) => Box::new(FileOptions::new(path, FileFormat::Lines)),
            None => match config.audit_source(&set.name).map_err(|error| failed(&error))? {
                Some(source) => source,
                None => continue,
            },
        };
        let options =
            AuditOptions { absent: args.absent, seed: args.seed, ..AuditOptions::default() };
        let report = audit(&set.ids, &mut *source, options).map_err(|error| failed(&error))?;
        if let Some(path) = &args.ids
            && report.present_checked + report.invalid_rows == 0
        {
            return Err(failed(&format_args!("{} has no ids", path.display())));
        }
        reports.push((set.name, report));
    }
    if reports.is_empty() {
        return Err(Failure::new(format!("{}: no set of ids has a source", args.config.display())));
    }
    let text = match args.json {
        true => {
            let lines: Value = reports.iter().map(|(name, report)| line(name, report)).collect();
            format!("{lines:#}\n")
        }
        false => table(&reports),
    };
    write_whole(None, text.as_bytes())?;
    Ok(verdict(&reports, args.ids.as_deref()))
}

/// Tests whether the chosen set exists. Rejects a file of ids without a chosen set, if the
/// configuration has several sets.
fn check_set(config: &Config, args: &Args) -> Result<(), Failure> {
    let names = || config.sets().collect::<Vec<_>>().join(", ");
    match &args.set {
        Some(set) if !config.sets().any(|name| name == set) => {
            Err(Failure::new(format!("--set: there is no set {set:?}; there are: {}", names())))
        }
        None if args.ids.is_some() && config.sets().count() > 1 => Err(Failure::new(format!(
            "--ids: the file has ids of one set: choose it with --set from {}",
            names()
        ))),
        _ => Ok(()),
    }
}

/// Writes the problems as messages, and returns the exit status. `list` is a file with ids that
/// exist.
fn verdict(reports: &[(String, AuditReport)], list: Option<&Path>) -> Exit {
    let mut exit = Exit::Yes;
    for (name, report) in reports {
        if let Some(path) = list.filter(|_| report.invalid_rows > 0) {
            messages::error(format!(
                "ids.{name}: {} lines of {} are no ids of the type, and the guard refuses them: \
                 check `type`, `min` and `max`",
                report.invalid_rows,
                path.display()
            ));
            exit = Exit::No;
        }
        if !report.is_complete() {
            let examples = report.refused_examples.iter().map(|id| String::from_utf8_lossy(id));
            let examples = plain(&examples.collect::<Vec<_>>().join(", "));
            let refused = report.present_refused;
            messages::error(format!(
                "ids.{name}: {refused} ids that exist are refused: {examples}"
            ));
            exit = Exit::No;
        } else if !report.is_rate_kept() {
            let (rate, planned) = (report.rate(), report.planned_rate);
            messages::error(format!(
                "ids.{name}: the measured false positive rate is {rate:.6}, the planned rate is {planned:.6}"
            ));
            if exit == Exit::Yes {
                exit = Exit::OverRate;
            }
        }
    }
    exit
}

fn table(reports: &[(String, AuditReport)]) -> String {
    let head = ["ids", "present", "refused", "absent", "passed", "rate", "planned"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(reports.iter().map(|(name, report)| {
        vec![
            plain(name),
            report.present_checked.to_string(),
            report.present_refused.to_string(),
            report.absent_checked.to_string(),
            report.absent_passed.to_string(),
            format!("{:.6}", report.rate()),
            format!("{:.6}", report.planned_rate),
        ]
    }));
    align(&rows, &[1, 2, 3, 4, 5, 6])
}

fn line(name: &str, report: &AuditReport) -> Value {
    json!({
        "ids": name,
        "present_checked": report.present_checked,
        "present_refused": report.present_refused,
        "absent_checked": report.absent_checked,
        "absent_passed": report.absent_passed,
        "rate": report.rate(),
        "planned_rate": report.planned_rate,
        "estimated_rate": report.estimated_rate,
        "is_complete": report.is_complete(),
        "is_rate_kept": report.is_rate_kept(),
    })
}
