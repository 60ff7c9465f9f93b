//! The replies of a transaction.

use tamis_resp::{Protocol, Reply};

use crate::system::held_memory::Hold;

/// The replies of a transaction. Each reply is encoded when the reply is created. The server counts
/// the memory of the replies.
pub(super) struct Replies<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    max_bytes: u64,
    held: Hold,
    /// True if the replies exceeded `max_bytes`, so that all replies are discarded.
    pub(super) are_discarded: bool,
}

impl<'o> Replies<'o> {
    pub(super) fn new(max_bytes: u64, commands: usize, held: Hold, out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(format!("*{commands}\r\n").as_bytes());
        Self { out, start, max_bytes, held, are_discarded: false }
    }

    pub(super) fn len(&self) -> u64 {
        (self.out.len() - self.start) as u64
    }

    pub(super) fn push(&mut self, reply: &Reply, protocol: Protocol) {
        if self.are_discarded {
            return;
        }
        reply.encode(protocol, self.out);
        if self.len() > self.max_bytes {
            self.are_discarded = true;
            self.out.truncate(self.start);
            self.out.shrink_to_fit();
        }
        self.held.set(self.out.capacity() as u64);
    }
}
