//! `tamis guard audit`: compares the filters with their sources.

use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tamis_guard::{AuditOptions, AuditReport, Config, SyncState, audit};

use crate::exit::{CommandResult, Exit, Failure};
use crate::guard::check;
use crate::{messages, table};

#[derive(clap::Args)]
pub struct Args {
    /// Read the configuration from a TOML file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Test this many absent ids of each set
    #[arg(long, value_name = "N", default_value = "100000",
        value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    absent: u64,

    /// Make the absent ids from this number
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
    let sets = check::start(&config, args.timeout)?;
    let mut reports = Vec::new();
    for set in sets.list() {
        let failed =
            |error: &dyn std::fmt::Display| Failure::new(format!("ids.{}: {error}", set.name));
        let Some(status) = &set.status else { continue };
        if status.state != SyncState::Synced {
            let late = format!("not synced after {} s", args.timeout);
            return Err(failed(status.last_error.as_ref().unwrap_or(&late)));
        }
        let source = config.audit_source(&set.name).map_err(|error| failed(&error))?;
        let Some(mut source) = source else { continue };
        let options =
            AuditOptions { absent: args.absent, seed: args.seed, ..AuditOptions::default() };
        let report = audit(&set.ids, &mut *source, options).map_err(|error| failed(&error))?;
        reports.push((set.name, report));
    }
    if reports.is_empty() {
        return Err(Failure::new(format!("{}: no set of ids has a source", args.config.display())));
    }
    print(&reports, args.json).map_err(|error| Failure::io("standard output", &error))?;
    Ok(verdict(&reports))
}

/// Reports what is wrong, and returns the exit status.
fn verdict(reports: &[(String, AuditReport)]) -> Exit {
    let mut exit = Exit::Yes;
    for (name, report) in reports {
        if !report.is_complete() {
            let examples = report.refused_examples.iter().map(|id| String::from_utf8_lossy(id));
            let examples = table::plain(&examples.collect::<Vec<_>>().join(", "));
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

fn print(reports: &[(String, AuditReport)], is_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        let lines: Vec<Value> = reports.iter().map(|(name, report)| line(name, report)).collect();
        serde_json::to_writer_pretty(&mut out, &lines)?;
        return writeln!(out);
    }
    let head = ["ids", "present", "refused", "absent", "passed", "rate", "planned"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(reports.iter().map(|(name, report)| {
        vec![
            table::plain(name),
            report.present_checked.to_string(),
            report.present_refused.to_string(),
            report.absent_checked.to_string(),
            report.absent_passed.to_string(),
            format!("{:.6}", report.rate()),
            format!("{:.6}", report.planned_rate),
        ]
    }));
    let mut text = String::new();
    table::align(&mut text, &rows, &[1, 2, 3, 4, 5, 6]);
    out.write_all(text.as_bytes())
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
