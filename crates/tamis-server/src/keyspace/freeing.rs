//! Keys that were removed all at once. Another thread frees their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::keyspace::table::Table;

/// All keys of a keyspace after their removal, with their values.
#[derive(Debug, Default)]
pub struct Cleared {
    pub(super) tables: Vec<Table>,
    /// The memory of all keys and values, in bytes.
    pub(super) bytes: u64,
}

impl Cleared {
    /// Tests whether there was no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
}

/// Frees keys in the background, on one thread however many keys there are.
#[derive(Debug, Default)]
pub(super) struct Freeing(Arc<State>);

#[derive(Debug, Default)]
struct State {
    queue: Mutex<Queue>,
    /// Memory that is not freed yet, in bytes.
    bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Cleared>,
    /// A thread frees the waiting keys, and checks for more before it ends.
    is_running: bool,
}

impl Freeing {
    /// Returns the memory that is not freed yet, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Frees keys on the background thread and starts it if it does not run.
    pub fn free(&self, cleared: Cleared) {
        if cleared.is_empty() {
            return;
        }
        self.0.bytes.fetch_add(cleared.bytes, Ordering::Relaxed);
        let mut queue = self.0.queue.lock();
        queue.waiting.push(cleared);
        if std::mem::replace(&mut queue.is_running, true) {
            return;
        }
        drop(queue);
        let shared = self.0.clone();
        let thread = std::thread::Builder::new().name("tamis-free".to_owned());
        if thread.spawn(move || shared.run()).is_err() {
            // The system gives no thread: this thread frees all of them.
            self.0.run();
        }
    }
}

impl State {
    fn run(&self) {
        loop {
            let mut queue = self.queue.lock();
            let Some(cleared) = queue.waiting.pop() else {
                queue.is_running = false;
                return;
            };
            drop(queue);
            let (mut bytes, mut tables) = (cleared.bytes, cleared.tables.len() as u64);
            for table in cleared.tables {
                drop(table);
                // Keys are spread evenly over the tables.
                let freed = bytes / tables;
                self.bytes.fetch_sub(freed, Ordering::Relaxed);
                (bytes, tables) = (bytes - freed, tables - 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_waits_is_counted_until_it_is_freed_by_one_thread() {
        let freeing = Freeing::default();
        // Simulates a running thread.
        freeing.0.queue.lock().is_running = true;
        for bytes in [1000, 2001] {
            freeing.free(Cleared { tables: vec![Table::default(), Table::default()], bytes });
        }
        freeing.free(Cleared::default());
        assert_eq!((freeing.bytes(), freeing.0.queue.lock().waiting.len()), (3001, 2));
        freeing.0.run();
        assert_eq!((freeing.bytes(), freeing.0.queue.lock().is_running), (0, false));
        freeing.free(Cleared { tables: vec![Table::default()], bytes: 7 });
        let began = Instant::now();
        while freeing.bytes() > 0 {
            assert!(began.elapsed() < Duration::from_secs(300), "nothing is freed");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
