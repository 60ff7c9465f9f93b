//! Lines for people on stderr, which is never relied on: where it is full or closed, they are lost and the work goes on.
//!
//! The macros of the standard library (`eprintln!`) end the program with a panic then.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether only errors are written (`--quiet`).
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Lets only errors through from now on.
pub fn be_quiet() {
    // Relaxed: set once, before any other thread starts.
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Returns whether only errors are written.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Writes a line to stderr as it is.
pub fn line(text: impl fmt::Display) {
    // One write, so that lines of several processes do not mix. Where it fails there is nowhere to say so.
    _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes why the command could not do its work, or a part of it.
pub fn error(text: impl fmt::Display) {
    line(format_args!("tamis: {text}"));
}

/// Writes what the user should know beside the result; nothing with `--quiet`.
pub fn note(text: impl fmt::Display) {
    if !is_quiet() {
        error(text);
    }
}

/// Formats and writes a [`note`].
macro_rules! note {
    ($($format:tt)*) => { $crate::notice::note(format_args!($($format)*)) };
}
