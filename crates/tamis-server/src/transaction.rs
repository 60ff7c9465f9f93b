//! `MULTI`: commands that wait for `EXEC`.

use tamis_commands::allocation_bytes;

use crate::held_memory::Hold;

/// Commands that were accepted since `MULTI`.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub queued: Vec<Vec<Vec<u8>>>,
    /// One was refused: `EXEC` runs none.
    pub is_broken: bool,
    held: Hold,
}

/// More than any client means, less than would hurt the others.
const MAX_BYTES: u64 = 512 << 20;

impl Transaction {
    /// Returns one without commands; what they take is added to `held`.
    pub fn new(held: Hold) -> Self {
        Self { queued: Vec::new(), is_broken: false, held }
    }

    /// Keeps a command; false if that would be too much.
    pub fn push(&mut self, words: &[&[u8]]) -> bool {
        let words_bytes: u64 = words.iter().map(|word| allocation_bytes(word.len())).sum();
        // The list of commands has up to twice the room that it needs.
        let lists = allocation_bytes(size_of_val(words) / 2 * 3) + 2 * size_of::<Vec<u8>>() as u64;
        self.held.add(words_bytes + lists);
        if self.held.bytes() > MAX_BYTES {
            self.is_broken = true;
            return false;
        }
        self.queued.push(words.iter().map(|word| word.to_vec()).collect());
        true
    }
}
