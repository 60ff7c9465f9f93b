//! `MULTI`: commands that wait for `EXEC`. `WATCH`: keys that must not change before `EXEC`.

use std::collections::HashMap;

use tamis_commands::allocation_bytes;

use crate::system::held_memory::Hold;

/// The commands that were queued since `MULTI`.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub queued: Vec<Vec<Vec<u8>>>,
    /// True if a command was refused, so that `EXEC` runs no command.
    pub is_broken: bool,
    held: Hold,
}

/// The maximum memory of the queued commands, in bytes. No usual transaction needs more memory than
/// this limit. The limit leaves enough memory for other clients.
const MAX_BYTES: u64 = 512 << 20;

impl Transaction {
    /// Creates a transaction without commands. `held` counts the memory of the queued commands.
    pub fn new(held: Hold) -> Self {
        Self { queued: Vec::new(), is_broken: false, held }
    }

    /// Queues a command. Returns false if the transaction would exceed its maximum size.
    pub fn push(&mut self, argv: &[&[u8]]) -> bool {
        let words_bytes: u64 = argv.iter().map(|word| allocation_bytes(word.len())).sum();
        // The capacity of the list of commands is at most twice the length of the list.
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

/// The keys that a client watches. Each key has its version from the start of the watch.
#[derive(Debug)]
pub(crate) struct Watched {
    keys: HashMap<Vec<u8>, u64>,
    held: Hold,
}

impl Watched {
    /// Creates an empty set of watched keys. `held` counts the memory of the keys.
    pub fn new(held: Hold) -> Self {
        Self { keys: HashMap::new(), held }
    }

    /// Watches a key. Does nothing if the key is already watched.
    pub fn watch(&mut self, key: &[u8], version: impl FnOnce() -> u64) {
        if !self.keys.contains_key(key) {
            self.keys.insert(key.to_vec(), version());
            // The hash table of the watched keys has at most twice as many places as keys.
            self.held.add(allocation_bytes(key.len()) + 2 * size_of::<(Vec<u8>, u64)>() as u64);
        }
    }

    /// Removes all watched keys.
    pub fn clear(&mut self) {
        self.keys = HashMap::new();
        self.held.set(0);
    }

    /// Tests whether every watched key still has its recorded version.
    pub fn are_unchanged(&self, version: impl Fn(&[u8]) -> u64) -> bool {
        self.keys.iter().all(|(key, before)| version(key) == *before)
    }

    /// Returns the memory of the watched keys, in bytes.
    pub fn bytes(&self) -> u64 {
        self.held.bytes()
    }
}
