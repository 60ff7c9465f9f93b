//! Handles two-phase transactions (`XA`).
//!
//! The log contains the rows before `XA PREPARE`. For an `XA COMMIT`, the log contains the statement but no rows. A
//! query does not see prepared rows. A generation contains the rows of a two-phase transaction if the generation has
//! received the log from `XA START` on. The generation also contains the rows if its full read began after the commit
//! of the transaction. In all other cases, the commit of a two-phase transaction requires a full read.

use std::time::Instant;

use crate::kinds::mysql::follower::Follower;
use crate::source::run::Run;

/// The maximum number of prepared transactions. If the maximum is exceeded, the commit of each prepared transaction
/// requires a full read.
const MAX_PREPARED: usize = 10_000;

/// The maximum length of a transaction name in the log: two texts of 64 bytes in hexadecimal digits, and a number.
const MAX_NAME_BYTES: usize = 400;

impl Follower {
    /// Applies a statement of a two-phase transaction.
    pub(super) fn apply_two_phase(&mut self, run: &Run, statement: &str) {
        // The client may never commit the rows. The ids of the deleted rows pass until the next full read.
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
                // The guard does not keep the ids of prepared rows, and any of these rows may be visible now.
                run.ids.forget_responses();
                if verb != "commit" || !self.prepared.remove(name) {
                    self.lose(run);
                }
            }
        }
    }
}

/// Returns the second word of a statement, and the rest of the statement.
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
