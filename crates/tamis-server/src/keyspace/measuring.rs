//! Visits all keys of a shard: measures the filters and removes the expired keys.

use triomphe::Arc;

use crate::keyspace::access::KeyspaceAccess;
use crate::keyspace::cell::Cell;
use crate::keyspace::shards::{Keyspace, SHARDS};

impl Keyspace {
    /// Measures the filters of one shard. A writer of a filter waits at most tens of microseconds
    /// for the measurement.
    pub(crate) fn measure(&self, shard: usize, now_millis: u64) {
        let clears = self.clears();
        // Skip the keys that are known not to be filters. With a million strings, cloning the reference
        // of every key takes 2 to 3 % of a core.
        let filters: Vec<Arc<Cell>> = {
            let shard = self.shards[shard % SHARDS].read();
            shard.iter().filter(|cell| !cell.is_known_non_filter()).cloned().collect()
        };
        filters.iter().for_each(|cell| self.measure_cell(cell, clears, now_millis));
    }

    /// Measures a filter. Does nothing if all keys were removed after the caller read `clears`,
    /// because the keyspace does not count the memory of a removed filter.
    pub(super) fn measure_cell(&self, cell: &Cell, clears: u64, now_millis: u64) {
        // The lock is recursive: the caller may already have shared access while another thread
        // waits for exclusive access.
        let _keys = KeyspaceAccess::new(self, self.gate.read_recursive());
        if self.clears() == clears {
            self.count_bytes(cell.measure(now_millis));
        }
    }

    /// Calls `each` with the key and the used share of every filter in one shard. Before the calls,
    /// measures the filters that have no measurement yet.
    pub(crate) fn each_measurement(
        &self,
        shard: usize,
        now_millis: u64,
        mut each: impl FnMut(&[u8], f32),
    ) {
        let mut new: Vec<Arc<Cell>> = Vec::new();
        let clears = self.clears();
        for cell in self.shards[shard].read().iter() {
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

    /// Removes the expired keys of one shard. Returns the number of removed keys.
    pub fn sweep(&self, shard: usize, now_millis: u64) -> usize {
        let keys = self.shared();
        let expired: Vec<Arc<Cell>> = {
            let shard = self.shards[shard % SHARDS].read();
            // If another thread has locked a key, the next sweep removes the key.
            let is_expired =
                |cell: &Cell| cell.state.try_read().is_some_and(|it| it.is_expired(now_millis));
            shard.iter().filter(|cell| is_expired(cell)).cloned().collect()
        };
        // If a key has a read lease, the next sweep removes the key.
        let free = expired.iter().filter(|cell| !keys.is_leased(&cell.key));
        // The write finds that the key has expired, and removes the key.
        free.map(|cell| keys.write(&cell.key, now_millis, |_| ())).count()
    }
}

#[cfg(test)]
mod tests {
    use tamis_commands::{Change, ErrorReply, Outcome, Value};

    use super::*;
    use crate::keyspace::tests::{bloom, expire, set};

    #[test]
    fn the_memory_of_keys_is_counted_and_freed_with_them() {
        let keyspace = Keyspace::new();
        let keys = keyspace.shared();
        let name = |i: u32| format!("a key with a name of its own {i}").into_bytes();
        for i in 0..20_000 {
            set(&keys, &name(i), "x");
            expire(&keys, &name(i), 10);
        }
        let sum: u64 = (0..20_000).filter_map(|i| keys.memory_of(&name(i), 0)).sum();
        let all = keyspace.memory_bytes();
        // The memory of each key includes a share of the tables, rounded down.
        assert!(all - sum < 20_000, "{all} {sum}");
        (0..19_000).for_each(|i| assert!(keys.remove(&name(i), 0)));
        assert!(keyspace.memory_bytes() < all / 12, "tables shrink");
        keyspace.measure(0, 0);
        drop(keys);
        drop(keyspace.exclusive().clear());
        assert_eq!((keyspace.memory_bytes(), keyspace.expiring()), (0, 0));
        keyspace.shared().write(b"f", 0, |value| *value = Some(bloom(Some(7))));
        (0..SHARDS).for_each(|part| keyspace.measure(part, 1));
        assert!(keyspace.shared().remove(b"f", 0));
        assert_eq!(keyspace.memory_bytes(), 0, "and what was measured of it");
    }

    #[test]
    fn a_filter_without_items_is_measured_without_memory() {
        let keyspace = Keyspace::new();
        let measured = |now_millis| {
            let mut found = Vec::new();
            for part in 0..SHARDS {
                keyspace.each_measurement(part, now_millis, |key, used| {
                    found.push((key.to_vec(), used));
                });
            }
            found
        };
        set(&keyspace.shared(), b"text", "x");
        keyspace.shared().write(b"f", 0, |value| *value = Some(bloom(None)));
        let bytes = keyspace.memory_bytes();
        assert_eq!(measured(1000), [(b"f".to_vec(), 0.0)]);
        assert_eq!(keyspace.memory_bytes(), bytes);
        let version = keyspace.shared().version(b"f", 0);
        keyspace.shared().change(b"f", 0, |value| {
            let Some(Value::Bloom(filter)) = value else { panic!() };
            filter.insert_hash(7).unwrap();
            let mut outcome = Outcome::from(ErrorReply::from(""));
            outcome.change = Change::Argv;
            outcome
        });
        assert_ne!(keyspace.shared().version(b"f", 0), version);
        assert_eq!(measured(2000), [(b"f".to_vec(), 0.01)]);
        assert!(keyspace.memory_bytes() > bytes);
    }

    #[test]
    fn a_string_that_becomes_a_filter_is_measured() {
        let keyspace = Keyspace::new();
        let measure = || (0..SHARDS).for_each(|part| keyspace.measure(part, 0));
        set(&keyspace.shared(), b"key", "x");
        measure();
        let cell = keyspace.cell(b"key").unwrap();
        assert!(cell.is_known_non_filter());
        keyspace.shared().write(b"key", 0, |value| *value = Some(bloom(Some(1))));
        assert!(!cell.is_known_non_filter());
        measure();
        assert_eq!((cell.used(), cell.items()), (Some(0.01), Some(1)));
        set(&keyspace.shared(), b"key", "x");
        measure();
        keyspace.shared().write(b"key", 0, |value| *value = Some(bloom(Some(1))));
        measure();
        assert_eq!((cell.used(), cell.items()), (Some(0.01), Some(1)), "after a second string");
    }

    #[test]
    fn a_filter_that_is_measured_while_all_keys_are_removed_is_not_counted() {
        let keyspace = Keyspace::new();
        let put = || keyspace.shared().put(b"filter", 0, bloom(Some(1)), None);
        put();
        let (clears, cell) = (keyspace.clears(), keyspace.cell(b"filter").unwrap());
        drop(keyspace.exclusive().clear());
        keyspace.measure_cell(&cell, clears, 0);
        assert_eq!(keyspace.memory_bytes(), 0);
        put();
        (0..SHARDS).for_each(|part| keyspace.measure(part, 0));
        assert!(keyspace.shared().remove(b"filter", 0));
        assert_eq!(keyspace.memory_bytes(), 0);
    }

    #[test]
    fn reserved_places_take_new_keys_without_growth_and_are_freed_if_unused() {
        let keyspace = Keyspace::new();
        let keys: Vec<String> = (0..50_000).map(|i| format!("key:{i}")).collect();
        set(&keyspace.shared(), keys[0].as_bytes(), "x");
        let before = keyspace.memory_bytes();
        let cell = before - tables(&keyspace, keys[0].as_bytes());
        let hashes = || keys.iter().filter_map(|key| keyspace.hash_of_new(key.as_bytes()));
        assert_eq!(hashes().count(), keys.len() - 1);
        keyspace.reserve(hashes().collect(), 50_000);
        assert_eq!(keyspace.memory_bytes(), before, "there is no memory for it");
        keyspace.reserve(hashes().chain(hashes()).collect(), 1 << 30);
        let reserved = keyspace.memory_bytes();
        assert!((450_000..2_000_000).contains(&(reserved - before)), "{before} {reserved}");
        for key in &keys {
            set(&keyspace.shared(), key.as_bytes(), "x");
        }
        assert_eq!(keyspace.memory_bytes() - reserved, cell * (keys.len() as u64 - 1));
        keyspace.shrink();
        assert_eq!(keyspace.memory_bytes() - reserved, cell * (keys.len() as u64 - 1));
        for key in &keys {
            keyspace.shared().remove(key.as_bytes(), 0);
        }
        assert_eq!(keyspace.memory_bytes(), 0);
        keyspace.reserve(hashes().collect(), 1 << 30);
        keyspace.shrink();
        assert_eq!(keyspace.memory_bytes(), 0);
    }

    /// Returns the memory of the table that contains a key, in bytes.
    fn tables(keyspace: &Keyspace, key: &[u8]) -> u64 {
        keyspace.place(key).0.read().heap_bytes()
    }
}
