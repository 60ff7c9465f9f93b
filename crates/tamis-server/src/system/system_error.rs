//! Formats operating system errors for users.

use std::io;

/// Returns the text of an error without Rust's suffix "(os error 2)".
pub(crate) fn without_code(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
