//! Defines the exit statuses of a command, and its one error line on stderr.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::io::messages;

/// The exit status of a command that completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// Status 0: the answer is yes, or the work is done.
    #[default]
    Yes = 0,
    /// Status 1: the answer is no, or nothing was found.
    No = 1,
    /// Status 3: the work is done, but the rate of a filter is above its target.
    OverRate = 3,
}

/// The reason why a command failed. The line of a failure names the failed operation, the place and
/// the correction.
#[derive(Debug)]
pub enum Failure {
    /// The line to print. After this failure, the exit status of the command is 2.
    Message(String),
    /// The reader of the output closed the pipe. The command ends with status 0 and prints no
    /// error.
    BrokenPipe,
}

impl Failure {
    /// Returns a failure with the line `message`.
    pub fn new(message: impl fmt::Display) -> Self {
        Failure::Message(message.to_string())
    }

    /// Returns a failure to read or write at `place`, such as a file name.
    pub fn io(place: impl fmt::Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::BrokenPipe;
        }
        Failure::Message(format!("{place}: {}", plain(error)))
    }

    /// Returns the failure with `name`, the file name that the user gave, in place of `path`.
    #[must_use]
    pub fn renamed(self, path: &Path, name: &str) -> Self {
        match self {
            Failure::Message(line) => {
                Failure::Message(line.replace(&path.display().to_string(), name))
            }
            Failure::BrokenPipe => self,
        }
    }
}

/// Returns the failure for a command or an argument that only the whole program supports.
#[cfg(not(feature = "network"))]
pub fn only_in_whole_program(name: impl fmt::Display) -> Failure {
    Failure::new(format!(
        "{name}: this is the small program of the Python package, without servers and network; the packages 'tamis' for \
         Debian, RPM, npm and containers have the whole program"
    ))
}

/// Returns the text of a system error, without Rust's "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.chars().next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(text.chars().skip(1)).collect()
    })
}

/// The result of every command.
pub type CommandResult = Result<Exit, Failure>;

/// True if the command skipped an input, so that the result is incomplete.
static IS_INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Records that the command skipped an input, so that the exit status of the command is 2.
pub fn set_incomplete() {
    // Relaxed ordering is enough, because the flag publishes no other data.
    IS_INCOMPLETE.store(true, Ordering::Relaxed);
}

/// Prints the failure of a command, if the command failed. Returns the exit status.
pub fn report(outcome: CommandResult) -> ExitCode {
    match outcome {
        Ok(_) if IS_INCOMPLETE.load(Ordering::Relaxed) => ExitCode::from(2),
        Ok(exit) => ExitCode::from(exit as u8),
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            messages::error(message);
            ExitCode::from(2)
        }
    }
}
