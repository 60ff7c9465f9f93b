//! Ends the batches of threads before the interpreter exits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The number of batches that run now.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// The process whose batches `RUNNING` counts. A fork copies the number, but not the threads.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The thread that runs the exit handlers, if the interpreter exits. This thread may go on with
/// batches: Python ends all other threads.
static LAST_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// A batch in progress.
pub struct Running;

impl Running {
    /// Counts a batch as running until dropped.
    ///
    /// # Errors
    ///
    /// `RuntimeError` if the interpreter exits.
    pub fn start() -> PyResult<Self> {
        forget_parent();
        RUNNING.fetch_add(1, Ordering::SeqCst);
        let running = Self;
        check()?;
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A batch whose progress function forks goes on in the new process, which does not count it.
        let minus_one = |running: usize| running.checked_sub(1);
        _ = RUNNING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, minus_one);
    }
}

/// Sets the number of batches to 0 if the batches run in the process that forked this one.
fn forget_parent() {
    let id = std::process::id();
    if PROCESS.swap(id, Ordering::SeqCst) != id {
        RUNNING.store(0, Ordering::SeqCst);
    }
}

/// Checks that this thread may go on with a batch.
///
/// # Errors
///
/// `RuntimeError` if the interpreter exits.
pub fn check() -> PyResult<()> {
    match LAST_THREAD.get() {
        Some(last) if *last != thread::current().id() => {
            Err(PyRuntimeError::new_err("the interpreter exits"))
        }
        _ => Ok(()),
    }
}

/// Ends the batches of daemon threads before the interpreter exits. A thread that attaches to an
/// interpreter after its end would be killed, and its stack cannot be unwound.
#[pyfunction]
pub fn end_batches(py: Python<'_>) {
    /// A step takes about 30 ms. After this time, the interpreter exits in any case.
    const DEADLINE: Duration = Duration::from_secs(2);
    _ = LAST_THREAD.set(thread::current().id());
    forget_parent();
    let began = Instant::now();
    py.detach(|| {
        while RUNNING.load(Ordering::SeqCst) > 0 && began.elapsed() < DEADLINE {
            thread::sleep(Duration::from_millis(1));
        }
    });
}
