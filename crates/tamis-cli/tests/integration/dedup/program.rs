//! Runs the program.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Output};

use crate::program::tamis;
use tamis_testing::CommandExt as _;

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    /// The bytes on stdout.
    pub stdout: Vec<u8>,
    /// The text on stderr.
    pub stderr: String,
    /// Its exit status.
    pub status: i32,
}

impl Run {
    pub fn of(output: Output) -> Self {
        Self {
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code().expect("not killed"),
        }
    }

    /// Checks that the run succeeded with an empty stderr, and returns its stdout.
    pub fn quietly(self) -> Vec<u8> {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""));
        self.stdout
    }

    /// Checks the exit status, and a part of the text on stderr.
    #[track_caller]
    pub fn warns(&self, status: i32, words: &str) {
        assert!(self.status == status && self.stderr.contains(words), "{words}: {}", self.stderr);
    }

    /// Returns the statistics on stderr.
    pub fn stats(&self) -> serde_json::Value {
        let line = self.stderr.lines().find(|line| line.starts_with('{')).expect("statistics");
        serde_json::from_str(line).unwrap()
    }

    /// Checks that the run failed with one clear line that holds `text`.
    #[track_caller]
    pub fn fails_with(&self, text: &str) {
        self.warns(2, text);
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        assert!(self.stderr.starts_with("tamis: "), "{}", self.stderr);
    }
}

/// Returns `tamis dedup` with these arguments.
pub fn command<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = tamis("dedup");
    command.args(args);
    command
}

/// Runs `tamis dedup` on `stdin`.
pub fn dedup<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, stdin: &[u8]) -> Run {
    Run::of(command(args).feed(stdin))
}

/// Returns `count` lines, about `distinct` of them distinct. Equal arguments give equal lines.
pub fn lines(count: u64, distinct: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut state = 1_u64;
    for _ in 0..count {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(bytes, "https://example.org/item/{}", (state >> 33) % distinct).unwrap();
    }
    bytes
}

/// Returns the first occurrence of each line, computed by a simple model.
pub fn first_occurrences(bytes: &[u8]) -> Vec<u8> {
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if seen.insert(line) {
            kept.extend_from_slice(line);
            kept.push(b'\n');
        }
    }
    kept
}
