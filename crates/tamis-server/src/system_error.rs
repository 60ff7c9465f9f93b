//! Errors of the operating system as texts for users.

use std::io;

/// Returns the text of an error without Rust's "(os error 2)".
pub(crate) fn without_code(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
