//! Runs lookups and inserts of whole arrays, without the GIL.
//!
//! An array is processed in steps of about 30 ms. Between two steps, the thread holds the GIL: it
//! handles Ctrl-C, calls the progress callback, and lets other threads use the filter.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use tamis::Answers;

use crate::exit::{self, Running};
use crate::keys::Encoding;
use crate::output::Output;
use crate::raw::gil_rw_lock::GilRwLock;
use crate::set::LockedSet;
use crate::set_error::SetError;
use crate::source::{Batch, Source};
use crate::state::{Operation, State};

/// The number of rows that are hashed before the set tests these rows. The rows and their hashes stay
/// in the L1 cache.
const CHUNK: usize = 512;

/// The number of rows that are hashed before a set of several threads inserts these rows. The set
/// sorts a large batch before setting bits, so that threads seldom wait for each other.
const SHARED_CHUNK: usize = 64 << 10;

/// The number of rows of the first step, and the most rows of a step.
const STEP: Range<usize> = SHARED_CHUNK..64 << 20;

/// The time that a step should take.
const STEP_TIME: Duration = Duration::from_millis(30);

/// A thread is worth its start from this number of rows.
const ROWS_OF_THREAD: usize = 32 << 10;

/// The counts of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// The number of rows whose answer is true.
    pub yes: u64,
    /// The number of rows that are null.
    pub nulls: u64,
}

/// A call of a batch operation.
pub struct Call<'a, 'py> {
    /// The operation.
    pub operation: Operation,
    /// The maximum number of threads.
    pub threads: usize,
    /// Receives the answer to each row.
    pub out: Option<&'a Output>,
    /// The answer of a row that is null.
    pub answer_of_null: bool,
    /// A Python function of the number of finished rows and of all rows.
    pub progress: Option<&'a Bound<'py, PyAny>>,
}

/// Runs an operation on all rows of an array.
///
/// # Errors
///
/// The exception for an item that the set cannot hold, the error of the set, or the exception of
/// a signal handler or of the progress function. The rows of earlier steps have been inserted.
pub fn run(
    py: Python<'_>,
    set: &LockedSet,
    source: &dyn Source,
    call: &Call<'_, '_>,
) -> PyResult<()> {
    let _running = Running::start()?;
    let encoding = set.encoding()?;
    if source.len() == 0 {
        // An array without rows has the errors of other arrays.
        set.run_keys(py, &encoding.keys(), call.operation)?;
    }
    let (mut start, mut step) = (0, STEP.start);
    while start < source.len() {
        let rows = start..source.len().min(start + step);
        let began = Instant::now();
        let part = Part {
            source,
            encoding,
            operation: call.operation,
            rows: rows.clone(),
            threads: call.threads,
            out: call.out,
            answer_of_null: call.answer_of_null,
        };
        let done = run_step(py, set, &part)?;
        step = next_step(step, began.elapsed());
        start = rows.end;
        set.count_nulls(done.nulls);
        if call.operation == Operation::Insert {
            set.count_new(py, done.yes)?;
        }
        exit::check()?;
        py.check_signals()?;
        if let Some(progress) = call.progress {
            progress.call1((start, source.len()))?;
        }
    }
    Ok(())
}

/// Returns the number of rows of the next step, from the time of the last step.
fn next_step(step: usize, time: Duration) -> usize {
    let factor = STEP_TIME.as_secs_f64() / time.as_secs_f64().max(1e-9);
    // A step grows slowly, so that one fast step does not make the next one take seconds.
    let rows = step as f64 * factor.clamp(0.1, 2.0);
    (rows as usize).clamp(STEP.start, STEP.end).next_multiple_of(SHARED_CHUNK)
}

/// A part of an array, which one step processes.
struct Part<'a> {
    source: &'a dyn Source,
    encoding: Encoding,
    operation: Operation,
    rows: Range<usize>,
    threads: usize,
    out: Option<&'a Output>,
    answer_of_null: bool,
}

fn run_step(py: Python<'_>, set: &LockedSet, part: &Part<'_>) -> PyResult<Counts> {
    let state: &GilRwLock<State> = set.state();
    let needs_write = match part.operation {
        Operation::Contains => set.uses_clock(),
        Operation::Insert => !set.is_shared(),
    };
    if !needs_write {
        let state = state.read(py)?;
        return py.detach(|| part.run_shared(&state));
    }
    let now = set.now_millis();
    let mut state = state.write(py)?;
    py.detach(|| {
        if let Some(now) = now {
            state.advance(now);
        }
        match part.operation {
            Operation::Contains => part.run_shared(&state),
            Operation::Insert => part.run_rows(part.rows.clone(), CHUNK, |batch, found| {
                state.insert(&batch.keys, found)
            }),
        }
    })
}

impl Part<'_> {
    /// Runs the part on several threads, by a shared reference to the set.
    fn run_shared(&self, state: &State) -> PyResult<Counts> {
        let run = |rows: Range<usize>| match self.operation {
            Operation::Contains => {
                self.run_rows(rows, CHUNK, |batch, found| state.contains(&batch.keys, found))
            }
            Operation::Insert => self.run_rows(rows, SHARED_CHUNK, |batch, found| {
                state.insert_shared(&batch.keys, found)
            }),
        };
        let threads = self.threads.min(self.rows.len() / ROWS_OF_THREAD).max(1);
        if threads == 1 {
            return run(self.rows.clone());
        }
        // Threads write different words of the answers.
        let len = self.rows.len().div_ceil(threads).next_multiple_of(64);
        let part = |start: usize| start..self.rows.end.min(start + len);
        thread::scope(|scope| {
            let run = &run;
            // This thread runs the first part, and the parts for which the system starts no thread.
            let mut own = vec![self.rows.start];
            let mut others = Vec::new();
            for start in self.rows.clone().step_by(len).skip(1) {
                let spawned = thread::Builder::new().spawn_scoped(scope, move || run(part(start)));
                match spawned {
                    Ok(other) => others.push(other),
                    Err(_) => own.push(start),
                }
            }
            let own = own.into_iter().map(|start| run(part(start)));
            let mut counts = own.fold(Ok(Counts::default()), Counts::add);
            for other in others {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                counts = Counts::add(counts, other);
            }
            counts
        })
    }

    /// Runs rows of the part, a chunk at a time.
    fn run_rows(
        &self,
        rows: Range<usize>,
        chunk: usize,
        mut run: impl FnMut(&Batch, &mut Answers) -> Result<(), SetError>,
    ) -> PyResult<Counts> {
        let (mut batch, mut found) = (Batch::new(self.encoding), Answers::new());
        let (mut all, mut scratch) = (Answers::new(), Vec::new());
        let mut counts = Counts::default();
        for start in rows.clone().step_by(chunk) {
            let rows = start..rows.end.min(start + chunk);
            batch.clear();
            self.source.read(rows.clone(), self.encoding, &mut batch)?;
            run(&batch, &mut found)?;
            if let Some(out) = self.out {
                let mut answers = &found;
                if !batch.nulls.is_empty() {
                    with_nulls(&found, &batch.nulls, self.answer_of_null, &mut all);
                    answers = &all;
                }
                out.write(start, answers, &mut scratch);
            }
            counts.yes += found.count_ones() as u64;
            counts.nulls += batch.nulls.len() as u64;
        }
        Ok(counts)
    }
}

impl Counts {
    fn add(one: PyResult<Self>, two: PyResult<Self>) -> PyResult<Self> {
        let (one, two) = (one?, two?);
        Ok(Self { yes: one.yes + two.yes, nulls: one.nulls + two.nulls })
    }
}

/// Replaces `answers` by the answers of all rows: the answers of rows that are not null are in `found`.
fn with_nulls(found: &Answers, nulls: &[usize], answer_of_null: bool, answers: &mut Answers) {
    let mut nulls = nulls.iter().copied().peekable();
    let len = found.len() + nulls.len();
    let mut found = found.iter();
    answers.fill_with(len, |row| match nulls.next_if_eq(&row) {
        Some(_) => answer_of_null,
        None => found.next().unwrap_or(false),
    });
}
