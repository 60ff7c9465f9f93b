//! Waits for conditions, threads and channels.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The maximum time that a test waits for one event. A test that passes waits much shorter than the
/// deadline, even on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The time between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits until `is_so` returns true. `what` is the end of the panic message, which starts with
/// "waited in vain until".
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`].
#[track_caller]
pub fn wait_until(what: impl Display, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "waited in vain until {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `find` returns a value, and returns the value.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`].
#[track_caller]
pub fn wait_for<T>(what: impl Display, mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(what, || {
        found = find();
        found.is_some()
    });
    found.expect("wait_until has seen it")
}

/// Waits until a thread ends, and returns the result of the thread.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`]. If the thread has panicked, panics with the same payload.
#[track_caller]
pub fn join<T>(what: impl Display, thread: JoinHandle<T>) -> T {
    wait_until(format_args!("{what} ends"), || thread.is_finished());
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a blocking function on a new thread, and returns the result of the function.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`]. If the function panics, panics with the same payload.
#[track_caller]
pub fn in_time<T: Send + 'static>(
    what: impl Display,
    function: impl FnOnce() -> T + Send + 'static,
) -> T {
    join(what, std::thread::spawn(function))
}

/// Waits for a message and returns the message.
///
/// # Panics
///
/// Panics with `what` after [`DEADLINE`], or if all senders are dropped.
#[track_caller]
pub fn receive<T>(what: impl Display, receiver: &Receiver<T>) -> T {
    match receiver.recv_timeout(DEADLINE) {
        Ok(message) => message,
        Err(RecvTimeoutError::Timeout) => panic!("waited in vain for {what}"),
        Err(RecvTimeoutError::Disconnected) => panic!("the sender has ended without {what}"),
    }
}

/// Sets a flag on drop, also after a failed assertion. A test with [`std::thread::scope`] waits for
/// all threads of the scope. The threads must end when the flag is set; otherwise a failed test
/// would never end.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
