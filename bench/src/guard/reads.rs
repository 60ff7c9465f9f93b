//! Cases with a database: the first read of a table, the restart from a snapshot, and new ids.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::database::{Database, Kind};
use super::folder::Folder;
use super::service::{Service, program};
use super::{
    COMMIT_MARIADB, COMMIT_POSTGRES, READ_MARIADB, READ_POSTGRES, RESTART, TAMIS, commits, report,
};
use crate::run::{Bench, Row};

/// Measures both databases.
pub fn measure(bench: &mut Bench, folder: &Folder, upstream: u16) -> Result<(), String> {
    let ids = if bench.quick { 100_000 } else { 3_000_000 };
    for kind in Kind::ALL {
        let (first_read, commit) = match kind {
            Kind::MariaDb => (READ_MARIADB, COMMIT_MARIADB),
            Kind::Postgres => (READ_POSTGRES, COMMIT_POSTGRES),
        };
        let wants_restart = kind == Kind::MariaDb && bench.wants(RESTART);
        if !bench.wants(first_read) && !bench.wants(commit) && !wants_restart {
            continue;
        }
        let Some(database) = Database::start(kind, folder, ids)? else { continue };
        if bench.wants(first_read) {
            read(bench, folder, kind, first_read, &database, ids)?;
        }
        if wants_restart {
            restart(bench, folder, &database, upstream)?;
        }
        if bench.wants(commit) {
            commits::measure(bench, folder, commit, &database, upstream)?;
        }
    }
    Ok(())
}

/// Compares `tamis guard check`, which reads all ids and builds the filter, with the database's own
/// client. Both are whole programs on core 0.
fn read(
    bench: &mut Bench,
    folder: &Folder,
    kind: Kind,
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
    let config = folder.write(&format!("{}.toml", kind.name()), &config)?;
    let mut check = Command::new(program());
    check.args(["guard", "check", "--config"]).arg(config);
    let mut commands = [(TAMIS, check), (kind.client_name(), database.read_ids())];
    let mut rows = commands.each_ref().map(|(name, _)| Row::new(case, name));
    for _ in 0..bench.rounds {
        for ((name, command), row) in commands.iter_mut().zip(&mut rows) {
            let nanos = time(name, command)?;
            row.rounds.push(nanos / ids as f64);
        }
    }
    report(bench, rows);
    Ok(())
}

/// Returns the nanoseconds of a whole program on core 0.
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

/// Measures the time from the start of the program until it refuses an absent id.
fn restart(
    bench: &mut Bench,
    folder: &Folder,
    database: &Database,
    upstream: u16,
) -> Result<(), String> {
    println!("\n{RESTART}");
    let mut row = Row::new(RESTART, TAMIS);
    let source = format!("{}\n[snapshots]\nfolder = \"snapshots\"", database.source());
    std::fs::create_dir_all(folder.path("snapshots")).map_err(|error| error.to_string())?;
    // Writes the snapshot at its end.
    Service::tamis(folder, upstream, &source)?.service.terminate()?;
    for _ in 0..bench.rounds {
        let begun = Instant::now();
        let guard = Service::tamis(folder, upstream, &source)?;
        row.rounds.push(begun.elapsed().as_nanos() as f64);
        let read = guard.items_read()?;
        if read > 0 {
            return Err(format!("the restart has read {read} ids from the table"));
        }
        guard.service.terminate()?;
    }
    report(bench, [row]);
    Ok(())
}
