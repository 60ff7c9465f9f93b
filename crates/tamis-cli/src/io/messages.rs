//! Writes messages to stderr. If stderr is full or closed, the messages are lost and the work
//! continues.
//!
//! The macros of the standard library (`eprintln!`) would panic if stderr is full or closed.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::arguments::redact::redact;
use crate::io::table::plain;

/// True if only errors are written (`--quiet`).
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Suppresses all messages except errors from now on.
pub fn be_quiet() {
    // Relaxed ordering is enough, because the value is set once, before any other thread starts.
    IS_QUIET.store(true, Ordering::Relaxed);
}

/// Tests whether only errors are written.
pub fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Writes a line to stderr without a prefix.
pub fn line(text: impl fmt::Display) {
    // A single write call keeps the lines of several processes apart. A failed write to stderr
    // cannot be reported.
    _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes the reason why the command failed, completely or in part. Removes passwords from URLs.
/// Escapes all control characters except line feeds, because text from a file must not control the
/// terminal.
pub fn error(text: impl fmt::Display) {
    let text = redact(&text.to_string());
    let lines: Vec<String> = text.split('\n').map(plain).collect();
    line(format_args!("tamis: {}", lines.join("\n")));
}

/// Writes a message in addition to the result. Writes nothing with `--quiet`.
pub fn note(text: impl fmt::Display) {
    if !is_quiet() {
        error(text);
    }
}

/// Writes a note, but only once per run. Without this limit, a command that reads an input twice
/// would repeat the note.
pub fn note_once(text: String) {
    static NOTED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut noted = NOTED.lock();
    if !noted.contains(&text) {
        note(&text);
        noted.push(text);
    }
}

/// Formats and writes a [`note`].
macro_rules! note {
    ($($format:tt)*) => { $crate::io::messages::note(format_args!($($format)*)) };
}
