//! How a command ends: four exit statuses, and one line on stderr when it could not do its work.

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::input;
use crate::notice;

/// How a command ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Yes, or done.
    Yes = 0,
    /// No: nothing was found.
    No = 1,
    /// Done, but a filter is fuller than its rate allows.
    OverRate = 3,
}

/// Why a command could not do its work, as one line that says what, where and what to do.
#[derive(Debug)]
pub enum Failure {
    /// The line to print; exit status 2.
    Message(String),
    /// The reader of our output has closed it: a quiet success.
    BrokenPipe,
}

impl Failure {
    /// Returns a failure with this line.
    pub fn new(message: impl fmt::Display) -> Self {
        Failure::Message(message.to_string())
    }

    /// Returns a failure of reading or writing at `place`, such as a file's name.
    pub fn io(place: impl fmt::Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::BrokenPipe;
        }
        Failure::Message(format!("{place}: {}", plain(error)))
    }
}

/// Says what the system said, without Rust's "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.chars().next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(text.chars().skip(1)).collect()
    })
}

/// What every command returns.
pub type Outcome = Result<Exit, Failure>;

/// Prints why a command could not, and turns its outcome into the exit status.
pub fn report(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(_) if input::were_left_out() => ExitCode::from(2),
        Ok(exit) => ExitCode::from(exit as u8),
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => {
            notice::error(message);
            ExitCode::from(2)
        }
    }
}
