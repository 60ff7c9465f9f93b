//! Reads the lines that a process writes.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use crate::DEADLINE;

/// The lines of a stream, without line ends. A thread reads the stream, so the process that writes
/// never waits for the test.
///
/// The iterator waits at most [`DEADLINE`] for each line. If no line arrives before the deadline,
/// the iterator panics.
pub struct Lines {
    lines: Receiver<String>,
    /// The text that the test has read so far, for panic messages.
    read: String,
}

impl Lines {
    /// Starts a thread that reads the lines of `stream`.
    pub fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                // This thread reads on after the test has dropped `Lines`: the stream stays open,
                // and the process that writes does not fail.
                _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self { lines, read: String::new() }
    }

    /// Reads lines until a line contains `text`, and returns this line.
    ///
    /// # Panics
    ///
    /// Panics if no such line arrives before [`DEADLINE`] or before the end of the stream.
    #[track_caller]
    pub fn line_with(&mut self, text: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            match self.line_before(end) {
                Some(line) if line.contains(text) => return line,
                Some(_) => {}
                None => panic!("the stream ended without a line with {text:?}:\n{}", self.read),
            }
        }
    }

    /// Reads the stream to the end, and returns the text.
    ///
    /// # Panics
    ///
    /// Panics if the stream does not end before [`DEADLINE`].
    #[track_caller]
    pub fn rest(&mut self) -> String {
        let (end, start) = (Instant::now() + DEADLINE, self.read.len());
        while self.line_before(end).is_some() {}
        self.read[start..].to_owned()
    }

    /// Returns the next line, or `None` at the end of the stream. Panics if no line arrives
    /// before `end`.
    #[track_caller]
    fn line_before(&mut self, end: Instant) -> Option<String> {
        match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                self.read += &line;
                self.read.push('\n');
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("waited in vain for a line; these were written:\n{}", self.read)
            }
        }
    }
}

impl Iterator for Lines {
    type Item = String;

    #[track_caller]
    fn next(&mut self) -> Option<String> {
        self.line_before(Instant::now() + DEADLINE)
    }
}
