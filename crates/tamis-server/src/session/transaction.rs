//! `MULTI`: commands that wait for `EXEC`. `WATCH`: keys that must not change until then.

use std::collections::HashMap;

use tamis_commands::allocation_bytes;

use crate::system::held_memory::Hold;

/// Commands that were accepted since `MULTI`.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub queued: Vec<Vec<Vec<u8>>>,
    /// A command was refused, so `EXEC` runs none.
    pub is_broken: bool,
    held: Hold,
}

/// The maximum memory of the queued commands, in bytes. Clients need less, and other clients keep
/// enough memory.
const MAX_BYTES: u64 = 512 << 20;

impl Transaction {
    /// Creates a transaction without commands. The memory of its commands is added to `held`.
    pub fn new(held: Hold) -> Self {
        Self { queued: Vec::new(), is_broken: false, held }
    }

    /// Queues a command; false if the transaction would exceed its maximum size.
    pub fn push(&mut self, argv: &[&[u8]]) -> bool {
        let words_bytes: u64 = argv.iter().map(|word| allocation_bytes(word.len())).sum();
        // The capacity of the list of commands is up to twice its length.
        let lists = allocation_bytes(size_of_val(argv) / 2 * 3) + 2 * size_of::<Vec<u8>>() as u64;
        self.held.add(words_bytes + lists);
        if self.held.bytes() > MAX_BYTES {
            self.is_broken = true;
            return false;
        }
        self.queued.push(argv.iter().map(|word| word.to_vec()).collect());
        true
    }
}

/// The keys that a client watches, each with its version when the watch began.
#[derive(Debug)]
pub(crate) struct Watched {
    keys: HashMap<Vec<u8>, u64>,
    held: Hold,
}

impl Watched {
    /// Creates an empty set. The memory of the keys is added to `held`.
    pub fn new(held: Hold) -> Self {
        Self { keys: HashMap::new(), held }
    }

    /// Watches a key, unless it is watched already.
    pub fn watch(&mut self, key: &[u8], version: impl FnOnce() -> u64) {
        if !self.keys.contains_key(key) {
            self.keys.insert(key.to_vec(), version());
            // The table has up to twice the places that it needs.
            self.held.add(allocation_bytes(key.len()) + 2 * size_of::<(Vec<u8>, u64)>() as u64);
        }
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.keys = HashMap::new();
        self.held.set(0);
    }

    /// Tests whether every key still has its recorded version.
    pub fn are_unchanged(&self, version: impl Fn(&[u8]) -> u64) -> bool {
        self.keys.iter().all(|(key, before)| version(key) == *before)
    }

    /// Returns the memory of the keys, in bytes.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }
}
