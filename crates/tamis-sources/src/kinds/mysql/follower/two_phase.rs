//! Transactions in two phases (`XA`).
//!
//! The log has the rows before `XA PREPARE`, and nothing but the statement at `XA COMMIT`. No read
//! sees rows that are only prepared. So a generation has the rows if it has seen the log from
//! `XA START` on, or if its read began after the commit. If neither is so, all ids are read again.

use std::time::Instant;

use crate::kinds::mysql::follower::Follower;
use crate::source::run::Run;

/// The most transactions that are prepared at once. With more, their commits cost a read.
const MAX_PREPARED: usize = 10_000;

/// The longest name of a transaction in the log: two texts of 64 bytes in hexadecimal digits, and a
/// number.
const MAX_NAME_BYTES: usize = 400;

impl Follower {
    /// Applies a statement of a transaction in two phases.
    pub(super) fn apply_two_phase(&mut self, run: &Run, statement: &str) {
        // The rows may never be committed. The ids of its deletions pass until all are read.
        self.deleted.clear();
        let (verb, name) = verb_and_name(statement);
        match &*verb {
            "start" | "begin" if name.len() <= MAX_NAME_BYTES => {
                if self.prepared.len() >= MAX_PREPARED {
                    self.prepared.clear();
                }
                self.prepared.insert(name.to_owned());
            }
            "end" | "prepare" => {}
            "rollback" => _ = self.prepared.remove(name),
            _ => {
                self.last_xa_commit = Some(Instant::now());
                if verb != "commit" || !self.prepared.remove(name) {
                    self.lose(run);
                }
            }
        }
    }
}

/// Returns the second word of a statement, and the rest.
fn verb_and_name(statement: &str) -> (String, &str) {
    let mut words = statement.trim().splitn(3, char::is_whitespace);
    let verb = words.nth(1).unwrap_or_default().to_ascii_lowercase();
    (verb, words.next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_a_verb_and_a_name() {
        for (statement, verb, name) in [
            ("XA START X'61',X'',1", "start", "X'61',X'',1"),
            ("xa commit 'a b' ", "commit", "'a b'"),
            ("XA RECOVER", "recover", ""),
            ("XA", "", ""),
        ] {
            assert_eq!(verb_and_name(statement), (verb.to_owned(), name), "{statement}");
        }
    }
}
