//! Visits all keys of a shard: measures filters and removes expired keys.

use triomphe::Arc;

use crate::keyspace::access::SharedAccess;
use crate::keyspace::cell::Cell;
use crate::keyspace::shards::{Keyspace, SHARDS};

impl Keyspace {
    /// Measures the filters of one shard. A writer of one of them waits for tens of microseconds at
    /// most.
    pub(crate) fn measure(&self, part: usize, now_millis: u64) {
        let clears = self.clears();
        let cells = self.shards[part % SHARDS].read().cells();
        cells.iter().for_each(|cell| self.measure_cell(cell, clears, now_millis));
    }

    /// Measures a filter. Does nothing if all keys were removed since the caller read `clears`: the
    /// memory of the filter is no longer counted then.
    pub(super) fn measure_cell(&self, cell: &Cell, clears: u64, now_millis: u64) {
        // Recursive: the caller may have shared access already while another thread waits for
        // exclusive access.
        let _keys = SharedAccess::new(self, self.gate.read_recursive());
        if self.clears() == clears {
            self.count_bytes(cell.measure(now_millis));
        }
    }

    /// Calls `each` with the key and the used share of the capacity of every filter in one shard.
    /// Measures the filters that have no measurement yet.
    pub(crate) fn each_gauge(
        &self,
        part: usize,
        now_millis: u64,
        mut each: impl FnMut(&[u8], f32),
    ) {
        let mut new: Vec<Arc<Cell>> = Vec::new();
        let clears = self.clears();
        for cell in self.shards[part].read().iter() {
            match cell.used() {
                Some(used) if used >= 0.0 => each(&cell.key, used),
                Some(_) => {}
                None => new.push(cell.clone()),
            }
        }
        for cell in new {
            self.measure_cell(&cell, clears, now_millis);
            if let Some(used) = cell.used().filter(|used| *used >= 0.0) {
                each(&cell.key, used);
            }
        }
    }

    /// Removes the expired keys of one shard and returns how many there were.
    pub fn sweep(&self, part: usize, now_millis: u64) -> usize {
        let keys = self.shared();
        let expired: Vec<Arc<Cell>> = {
            let shard = self.shards[part % SHARDS].read();
            // A key that another thread has locked waits for the next sweep.
            let is_expired =
                |cell: &Cell| cell.state.try_read().is_some_and(|it| it.is_expired(now_millis));
            shard.iter().filter(|cell| is_expired(cell)).cloned().collect()
        };
        // A key with a read lease waits too.
        let free = expired.iter().filter(|cell| !keys.is_leased(&cell.key));
        // The write finds the key expired and removes it.
        free.map(|cell| keys.write(&cell.key, now_millis, |_| ())).count()
    }
}
