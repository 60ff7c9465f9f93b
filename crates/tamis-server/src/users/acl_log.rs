//! The entries of `ACL LOG`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The latest refusals of the server, newest first. A refusal is a command, a key or a login that
/// the server denied.
#[derive(Debug, Default)]
pub(crate) struct AclLog {
    entries: Mutex<VecDeque<AclLogEntry>>,
    ever: AtomicU64,
}

/// One refusal, with the number of its repetitions.
#[derive(Clone, Debug)]
pub(crate) struct AclLogEntry {
    pub number: u64,
    pub count: u64,
    /// The kind of the refusal: `auth`, `command` or `key`.
    pub reason: &'static str,
    /// The context of the command: `toplevel`, or `multi` in a transaction.
    pub context: &'static str,
    /// The name of the command or key.
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    /// The client's line in `CLIENT LIST`.
    pub client: String,
    pub created_millis: u64,
    pub updated_millis: u64,
}

/// The log counts a repeated refusal in the entry of the first refusal if this entry is younger
/// than this time, in milliseconds.
const SAME_MILLIS: u64 = 60_000;

impl AclLogEntry {
    /// The maximum length of a key or name in an entry, in bytes.
    pub const KEPT_BYTES: usize = 128;
}

impl AclLog {
    /// Records a refusal. The log keeps at most `most` entries. Sets the number and the count of
    /// the entry.
    pub fn push(&self, mut refused: AclLogEntry, most: usize) {
        refused.object.truncate(AclLogEntry::KEPT_BYTES);
        refused.user.truncate(AclLogEntry::KEPT_BYTES);
        let mut entries = self.entries.lock();
        let is_same = |it: &AclLogEntry| {
            it.reason == refused.reason
                && it.context == refused.context
                && it.object == refused.object
                && it.user == refused.user
                && refused.updated_millis.saturating_sub(it.created_millis) < SAME_MILLIS
        };
        let same = entries.iter().position(is_same).and_then(|at| entries.remove(at));
        match same {
            Some(same) => {
                refused.number = same.number;
                refused.count = same.count + 1;
                refused.created_millis = same.created_millis;
            }
            None => {
                refused.number = self.ever.fetch_add(1, Ordering::Relaxed);
                refused.count = 1;
            }
        }
        entries.push_front(refused);
        entries.truncate(most);
    }

    /// Returns at most `most` entries, newest first.
    pub fn newest(&self, most: usize) -> Vec<AclLogEntry> {
        self.entries.lock().iter().take(most).cloned().collect()
    }

    pub fn clear(&self) {
        self.entries.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_refusals_are_counted_and_the_list_is_bounded() {
        let refusals = AclLog::default();
        let push = |object: &str, at: u64| {
            let refused = AclLogEntry {
                number: 0,
                count: 0,
                reason: "key",
                context: "toplevel",
                object: object.into(),
                user: b"u".to_vec(),
                client: String::new(),
                created_millis: at,
                updated_millis: at,
            };
            refusals.push(refused, 3);
        };
        for at in 0..10 {
            push("a", at);
        }
        push("b", 10);
        push("a", 11);
        let shown = |entries: Vec<AclLogEntry>| -> Vec<(Vec<u8>, u64)> {
            entries.into_iter().map(|it| (it.object, it.count)).collect()
        };
        assert_eq!(shown(refusals.newest(10)), [(b"a".to_vec(), 11), (b"b".to_vec(), 1)]);
        push("a", 100_000);
        assert_eq!(refusals.newest(1)[0].count, 1);
        for i in 0..100 {
            push(&format!("{i}{}", "x".repeat(1000)), 0);
        }
        let newest = refusals.newest(usize::MAX);
        assert_eq!((newest.len(), newest[0].object.len()), (3, 128));
        refusals.clear();
        assert!(refusals.newest(1).is_empty());
    }
}
