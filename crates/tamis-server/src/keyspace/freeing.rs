//! Keys that one command removed together, and the thread that frees the memory of these keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::keyspace::table::Table;

/// All removed keys of a keyspace, with their values.
#[derive(Debug, Default)]
pub struct RemovedKeys {
    pub(super) tables: Vec<Table>,
    /// The memory of all removed keys and their values, in bytes.
    pub(super) bytes: u64,
}

impl RemovedKeys {
    /// Tests whether the keyspace had no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

/// Frees removed keys on one background thread.
#[derive(Debug, Default)]
pub(super) struct BackgroundFreeing(Arc<FreeingQueue>);

#[derive(Debug, Default)]
struct FreeingQueue {
    /// The keys that the running thread must still free. The value is `None` if no thread is
    /// running.
    waiting: Mutex<Option<Vec<RemovedKeys>>>,
    /// The memory of removed keys that is not yet freed, in bytes.
    bytes: AtomicU64,
}

impl BackgroundFreeing {
    /// Returns the memory of removed keys that is not yet freed, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Frees keys on the background thread. Starts the thread if the thread is not running.
    pub fn free(&self, cleared: RemovedKeys) {
        if cleared.is_empty() {
            return;
        }
        self.0.bytes.fetch_add(cleared.bytes, Ordering::Relaxed);
        let mut waiting = self.0.waiting.lock();
        if let Some(waiting) = &mut *waiting {
            return waiting.push(cleared);
        }
        *waiting = Some(vec![cleared]);
        drop(waiting);
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("tamis-free".to_owned());
        if thread.spawn(move || shared.run()).is_err() {
            // If the system cannot start a thread, the current thread frees the keys.
            self.0.run();
        }
    }
}

impl FreeingQueue {
    fn run(&self) {
        loop {
            let mut waiting = self.waiting.lock();
            let Some(cleared) = waiting.as_mut().and_then(Vec::pop) else {
                *waiting = None;
                return;
            };
            drop(waiting);
            let (mut bytes, mut tables) = (cleared.bytes, cleared.tables.len() as u64);
            for table in cleared.tables {
                drop(table);
                // The keys are spread evenly over the tables.
                let freed = bytes / tables;
                self.bytes.fetch_sub(freed, Ordering::Relaxed);
                (bytes, tables) = (bytes - freed, tables - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_keys_count_until_one_thread_has_freed_them() {
        let freeing = BackgroundFreeing::default();
        // The empty list simulates a running thread that frees keys.
        *freeing.0.waiting.lock() = Some(Vec::new());
        for bytes in [1000, 2001] {
            freeing.free(RemovedKeys { tables: vec![Table::default(), Table::default()], bytes });
        }
        freeing.free(RemovedKeys::default());
        assert_eq!(
            (freeing.bytes(), freeing.0.waiting.lock().as_ref().map(Vec::len)),
            (3001, Some(2))
        );
        freeing.0.run();
        assert_eq!((freeing.bytes(), freeing.0.waiting.lock().is_some()), (0, false));
        freeing.free(RemovedKeys { tables: vec![Table::default()], bytes: 7 });
        tamis_testing::wait_until("all is freed", || freeing.bytes() == 0);
    }
}
