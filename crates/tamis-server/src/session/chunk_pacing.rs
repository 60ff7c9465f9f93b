//! Selects how many items of a long command a thread processes before the thread serves other
//! connections.

use std::time::Duration;

use tamis_commands::Command;

/// The maximum number of items that a thread processes before the thread serves other connections.
/// The items belong to one command or to consecutive commands.
pub(crate) const ITEMS: usize = 4096;

/// The maximum number of items in a chunk of a command that moves stored items. Moving stored items
/// may take a million times as long as a lookup.
const ITEMS_ALONE: usize = 64;

/// The maximum duration of a chunk of a long command.
const TURN: Duration = Duration::from_millis(1);

/// Returns the maximum number of items of a command that run in one chunk.
pub(crate) fn most_items(command: &Command) -> usize {
    if command.batch_items().is_some() { ITEMS } else { ITEMS_ALONE }
}

/// The number of items of a long command that run in one chunk. A connection keeps the chunk size
/// from one command to the next.
///
/// The chunk size starts at one item. After each quick chunk, the chunk size is multiplied by four.
/// If an item is the first item in a page of memory, the system must clear the page. Clearing a
/// page takes as long as ten thousand lookups. In a large empty filter, nearly every item is the
/// first item in its page of memory.
pub(crate) struct ChunkPacing {
    pub items: usize,
}

impl Default for ChunkPacing {
    fn default() -> Self {
        Self { items: 1 }
    }
}

impl ChunkPacing {
    /// Adjusts the chunk size to the time that `items` items took.
    pub fn note(&mut self, items: usize, took: Duration) {
        if took > TURN {
            let fit = TURN.as_nanos() * items as u128 / took.as_nanos();
            self.items = (fit as usize).max(1);
        } else if took < TURN / 4 {
            // Do not reduce the chunk size after a quick small chunk: the command may have few
            // items or may allow only few items per chunk.
            self.items = self.items.max((items * 4).min(ITEMS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_while_they_are_quick() {
        let mut pace = ChunkPacing::default();
        let mut took = |millis| {
            pace.note(pace.items, Duration::from_millis(millis));
            pace.items
        };
        assert_eq!([0; 7].map(&mut took), [4, 16, 64, 256, 1024, 4096, 4096]);
        assert_eq!([5; 6].map(&mut took), [819, 163, 32, 6, 1, 1]);
        assert_eq!(took(0), 4);
        pace.note(1, Duration::ZERO);
        assert_eq!(pace.items, 4, "the last of a command may be few");
    }
}
