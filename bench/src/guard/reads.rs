//! Measures the initial snapshot of a table, and the restart from a saved snapshot.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::TAMIS;
use super::database::Database;
use super::folder::Folder;
use super::service::Service;
use crate::process::tamis;
use crate::run::{Bench, Row};

/// Compares `tamis guard check` with the client program of the database. `tamis guard check` reads
/// all ids and builds the filter. Each program runs on core 0, and its whole run is measured.
pub fn first_read(
    bench: &mut Bench,
    folder: &Folder,
    case: &str,
    database: &Database,
    ids: u64,
) -> Result<(), String> {
    println!("\n{case}");
    let config = format!(
        "[proxy]\nupstream = \"http://127.0.0.1:1\"\n[[route]]\npath = \"/products/{{id}}\"\n\
         ids = {{ \"path:id\" = \"products\" }}\n[ids.products]\n{}\n",
        database.source()
    );
    let config = folder.write(&format!("{}.toml", database.kind.name()), &config)?;
    let mut check = Command::new(tamis());
    check.args(["guard", "check", "--config"]).arg(config);
    let mut commands = [(TAMIS, check), (database.kind.client_name(), database.read_ids())];
    let mut rows = commands.each_ref().map(|(name, _)| Row::new(case, name));
    for _ in 0..bench.rounds {
        for ((name, command), row) in commands.iter_mut().zip(&mut rows) {
            let nanos = time(name, command)?;
            row.rounds.push(nanos / ids as f64);
        }
    }
    bench.keep(rows);
    Ok(())
}

/// Returns the run time of a whole program on core 0, in nanoseconds.
fn time(name: &str, command: &Command) -> Result<f64, String> {
    let begun = Instant::now();
    let status = Command::new("taskset")
        .args(["-c", "0"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("{name}: {error}"))?;
    let elapsed = begun.elapsed();
    if status.success() { Ok(elapsed.as_nanos() as f64) } else { Err(format!("{name}: {status}")) }
}

/// Measures the time from the start of the program until the program refuses an absent id.
pub fn restart(
    bench: &mut Bench,
    folder: &Folder,
    case: &str,
    database: &Database,
    upstream: u16,
) -> Result<(), String> {
    println!("\n{case}");
    let mut row = Row::new(case, TAMIS);
    let snapshots = format!("snapshots-{}", database.kind.name());
    let source = database.source_with_snapshots();
    let source = format!("{source}\n[snapshots]\nfolder = \"{snapshots}\"");
    std::fs::create_dir_all(folder.path(&snapshots)).map_err(|error| error.to_string())?;
    // The guard writes the snapshot when the guard ends.
    Service::tamis(folder, upstream, &source)?.service.process.terminate()?;
    for _ in 0..bench.rounds {
        let begun = Instant::now();
        let guard = Service::tamis(folder, upstream, &source)?;
        row.rounds.push(begun.elapsed().as_nanos() as f64);
        let read = guard.items_read()?;
        if read > 0 {
            return Err(format!("the restart has read {read} ids from the table"));
        }
        guard.service.process.terminate()?;
    }
    bench.keep([row]);
    Ok(())
}
