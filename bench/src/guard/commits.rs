//! Measures the time from a commit until a request for the new id passes, while another session
//! changes the table.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::TAMIS;
use super::database::Database;
use super::folder::Folder;
use super::service::Service;
use crate::run::{Bench, Row};

/// The number of changes in one transaction.
const CHANGES: u64 = 10;

/// The time between the starts of two transactions. Ten changes per millisecond are 10,000 changes
/// per second.
const PERIOD: Duration = Duration::from_millis(1);

/// The first id of the session that changes the table, and the first id of the session that is
/// measured. Both ids are above all other ids.
const FIRST_CHANGED: u64 = 1_000_000_001;
const FIRST_MEASURED: u64 = 2_000_000_001;

/// Measures the 99th percentile.
pub fn measure(
    bench: &mut Bench,
    folder: &Folder,
    case: &str,
    database: &Database,
    upstream: u16,
) -> Result<(), String> {
    println!("\n{case}");
    let guard = Service::tamis(folder, upstream, &database.source())?;
    let mut row = Row::new(case, TAMIS);
    let mut session = Session::new(database)?;
    let mut id = FIRST_MEASURED;
    let is_done = AtomicBool::new(false);
    let changed = std::thread::scope(|threads| {
        let changes = threads.spawn(|| change(database, &is_done));
        let measured = (0..bench.rounds).try_for_each(|_| {
            let mut times = Vec::new();
            for _ in 0..if bench.quick { 100 } else { 1000 } {
                id += 1;
                times.push(time(&mut session, &guard.service, id)?);
            }
            times.sort_unstable();
            row.rounds.push(times[times.len() * 99 / 100].as_nanos() as f64);
            Ok::<(), String>(())
        });
        is_done.store(true, Ordering::Relaxed);
        let changes = changes.join().expect("no panic");
        measured.and(changes)
    })?;
    println!("  {changed:.0} changes a second");
    bench.keep([row]);
    Ok(())
}

/// Returns the time from the commit of a new id until the guard lets a request for the id pass.
fn time(session: &mut Session, guard: &Service, id: u64) -> Result<Duration, String> {
    session.run(&format!("INSERT INTO products VALUES ('new', {id});"))?;
    let committed = Instant::now();
    while !guard.ask(id).map_err(|error| error.to_string())?.contains(" 200 ") {
        if committed.elapsed() > Duration::from_secs(10) {
            return Err(format!("the new id {id} does not pass"));
        }
    }
    let elapsed = committed.elapsed();
    // The pause varies, so that commits occur at different phases of the changes.
    std::thread::sleep(Duration::from_micros(id * 997 % 3000));
    Ok(elapsed)
}

/// Inserts and deletes ids until `is_done` is true. Returns the number of changes per second.
fn change(database: &Database, is_done: &AtomicBool) -> Result<f64, String> {
    let mut session = Session::new(database)?;
    let begun = Instant::now();
    let mut transactions = 0_u64;
    while !is_done.load(Ordering::Relaxed) {
        let first = FIRST_CHANGED + transactions / 2 * CHANGES;
        let ids = first..first + CHANGES;
        session.run(&match transactions % 2 {
            0 => {
                let rows: Vec<String> = ids.map(|id| format!("('changed', {id})")).collect();
                format!("INSERT INTO products VALUES {};", rows.join(", "))
            }
            _ => {
                format!("DELETE FROM products WHERE id BETWEEN {first} AND {};", ids.end - 1)
            }
        })?;
        transactions += 1;
        let next = begun + PERIOD * u32::try_from(transactions).expect("a short run");
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok((transactions * CHANGES) as f64 / begun.elapsed().as_secs_f64())
}

/// A session of the client program of the database. Dropping this value ends the session.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Session {
    fn new(database: &Database) -> Result<Self, String> {
        let mut child = database
            .session()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Ok(Self { child, input, output })
    }

    /// Runs a statement, and waits until the statement is committed.
    fn run(&mut self, statement: &str) -> Result<(), String> {
        let input = self.input.as_mut().expect("open");
        writeln!(input, "{statement}\nSELECT 'done';").map_err(|error| error.to_string())?;
        match self.output.next() {
            Some(Ok(line)) if line == "done" => Ok(()),
            line => Err(format!("the client of the database printed {line:?}")),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.input.take());
        _ = self.child.wait();
    }
}
