//! Detects HTTP requests on the port for commands.
//!
//! A web page may send a request to any port of the machine on which the browser runs. Without the
//! detection of HTTP, the server would run the lines of the request as inline commands. A browser
//! sends the method and a `Host:` line before any data that the page chooses. The server ends the
//! connection at a command `POST` or `Host:`. The server reads no line that the page chose, because
//! the connection has ended.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_commands::Argv;

/// The minimum time between two warnings, in milliseconds. The limit prevents a web page from
/// flooding the log.
const WARN_MILLIS: u64 = 60_000;

/// Tests whether a command is a line of an HTTP request.
pub(crate) fn is_http(argv: Argv<'_>) -> bool {
    let starts_with =
        |start: &[u8]| argv[0].get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start));
    argv[0].eq_ignore_ascii_case(b"POST") || starts_with(b"HOST:")
}

/// Limits how often the server writes the warning about HTTP requests.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    /// The time of the last warning, in milliseconds since 1970. The value 0 means that no warning
    /// was written.
    last_millis: AtomicU64,
}

impl Warnings {
    /// Returns true if a warning about HTTP is due at the time `now_millis`. A warning is due at
    /// most once per minute.
    pub fn is_due(&self, now_millis: u64) -> bool {
        let last = self.last_millis.load(Ordering::Relaxed);
        let is_due = last == 0 || now_millis.abs_diff(last) >= WARN_MILLIS;
        // The exchange ensures that only one of several concurrent threads writes the warning.
        is_due
            && self
                .last_millis
                .compare_exchange(last, now_millis, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_http_are_distinguished_from_commands() {
        for line in ["POST", "post", "Host:", "hOST:localhost"] {
            assert!(is_http(&[line.as_bytes()]), "{line}");
        }
        for line in ["", "GET", "POSTS", "PO", "Host", "HOSTS"] {
            assert!(!is_http(&[line.as_bytes()]), "{line}");
        }
    }

    #[test]
    fn a_warning_is_due_once_a_minute() {
        let warnings = Warnings::default();
        assert!(warnings.is_due(1_000_000));
        assert!(!warnings.is_due(1_000_000 + WARN_MILLIS - 1));
        assert!(warnings.is_due(1_000_000 + WARN_MILLIS));
    }
}
