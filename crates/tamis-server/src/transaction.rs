//! `MULTI`: commands that wait for `EXEC`.

/// Commands that were accepted since `MULTI`.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub queued: Vec<Vec<Vec<u8>>>,
    /// One was refused: `EXEC` runs none.
    pub is_broken: bool,
    bytes: usize,
}

/// More than any client means, less than would hurt the others.
const MAX_BYTES: usize = 512 << 20;

impl Transaction {
    /// Keeps a command; false if that would be too much.
    pub fn push(&mut self, words: &[&[u8]]) -> bool {
        self.bytes += words.iter().map(|word| word.len() + size_of::<Vec<u8>>()).sum::<usize>();
        if self.bytes > MAX_BYTES {
            self.is_broken = true;
            return false;
        }
        self.queued.push(words.iter().map(|word| word.to_vec()).collect());
        true
    }
}
