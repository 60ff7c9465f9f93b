//! The search for a free slot. The search finds the shortest sequence of moves that ends in an
//! empty slot. The whole sequence is planned before the first move.

use crate::filter::cuckoo::lanes::Lanes;
use crate::filter::cuckoo::table::{Added, Entry, Full, Key, Repeats, Table, select};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The memory of a search, which the next search reuses. The result of a search depends only on the
/// table, not on earlier searches.
///
/// The memory of a search grows with the longest search. The memory takes a few kilobytes, and up
/// to a megabyte in a large table that is full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    nodes: Vec<Node>,
    seen: Seen,
}

/// A visited bucket, which has no free slot.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    /// The slot whose entry would move to this bucket.
    from: Origin,
}

/// A slot of a node: the number of the node, with the offset of the slot in the two lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin(u32);

impl Origin {
    /// The origin of the new entry.
    const OUTSIDE: Origin = Origin(u32::MAX);
}

/// The number of slots that a search visits before the search fails. With the limit `MAX_SEEN`, a
/// table of 10⁷ slots with buckets of two slots reaches a load of 96.1 %. With a limit of 2¹²
/// visits, a table of 10⁶ slots with buckets of two slots reaches a load of 94.6 %.
const MAX_SEEN: usize = 1 << 15;

impl Table {
    /// Inserts an entry. If the table already holds the entry, `repeats` decides whether the table
    /// stores a copy. If all slots of the two buckets of the entry are used, moves other entries out
    /// of these slots.
    ///
    /// # Errors
    ///
    /// [`Full`] if the search takes too long. On error, the table is unchanged.
    #[inline]
    pub(crate) fn insert(
        &self,
        words: &mut [u64],
        search: &mut Search,
        key: Key,
        repeats: Repeats,
    ) -> Result<Added, Full> {
        // The code compares the bits of the answers instead of counting the bits. On CPUs without a
        // popcount instruction, counting would take as long as all other steps of the insert.
        let holding = self.holding(words, key);
        let is_unchanged = match repeats {
            Repeats::Skip => holding[0] | holding[1] != 0,
            Repeats::Store => holding[0] & holding[1] == self.lanes().all(),
        };
        if is_unchanged {
            return Ok(Added::Unchanged);
        }
        let [left, right] = key.starts;
        let empty = [self.lanes().empty(words, left), self.lanes().empty(words, right)];
        if empty[0] | empty[1] == 0 {
            search.make_room(self, words, key)?;
        } else {
            // The left bucket is filled first. Filling the emptier bucket first does not make
            // searches shorter. The code chooses the bucket with a mask, because a branch would
            // often be mispredicted and would delay the next item.
            let is_right = empty[0] == 0;
            let start = select(is_right, left, right);
            let empty = select(is_right, empty[0], empty[1]);
            self.lanes().flip_first(words, start, empty, key.fingerprint);
        }
        Ok(if holding[0] | holding[1] == 0 { Added::New } else { Added::Again })
    }
}

impl Search {
    /// Inserts an entry whose slots are all used, by moving other entries.
    ///
    /// The search is breadth first: buckets are visited in the order of their distance in moves.
    /// The search visits a slot only once, so the slots of a path are distinct.
    #[inline(never)]
    pub(super) fn make_room(
        &mut self,
        table: &Table,
        words: &mut [u64],
        key: Key,
    ) -> Result<(), Full> {
        let lanes = *table.lanes();
        // Most searches end after one move. A search of one move needs no memory.
        for bucket in key.starts {
            for slot in bucket..bucket + lanes.bucket() {
                let Some(entry) = table.entry(words, slot) else { continue };
                if let Some(empty) = place(&lanes, words, entry) {
                    table.flip(words, slot, entry.fingerprint, entry.own);
                    let start = bucket_of(&lanes, empty, entry.own, entry.other);
                    table.flip(words, empty, entry.fingerprint, start);
                    table.flip(words, slot, key.fingerprint, bucket);
                    return Ok(());
                }
            }
        }
        self.make_room_further(table, words, key)
    }

    /// Like [`make_room`](Self::make_room), for the case that one move is not enough.
    #[inline(never)]
    fn make_room_further(
        &mut self,
        table: &Table,
        words: &mut [u64],
        key: Key,
    ) -> Result<(), Full> {
        self.nodes.clear();
        self.seen.clear();
        for start in key.starts {
            self.nodes.push(Node { start, from: Origin::OUTSIDE });
        }
        let lanes = *table.lanes();
        let mut at = 0;
        while let Some(&Node { start: bucket, .. }) = self.nodes.get(at) {
            if !self.seen.has_room() {
                return Err(Full);
            }
            for offset in 0..lanes.bucket() {
                let slot = bucket + offset;
                if !self.seen.insert(slot) {
                    continue;
                }
                let Some(entry) = table.entry(words, slot) else { continue };
                let from = Origin((at as u32) << 2 | offset as u32);
                if at >= key.starts.len()
                    && let Some(empty) = place(&lanes, words, entry)
                {
                    self.shift(table, words, key, from, empty);
                    return Ok(());
                }
                self.nodes.push(Node { start: entry.other, from });
                // If the entry's own bucket is the current bucket, the search has already visited
                // all slots of the pushed bucket, so `truncate` removes the pushed bucket. The code
                // has no branch, because a branch would be mispredicted half of the time.
                self.nodes.push(Node { start: entry.own, from });
                self.nodes.truncate(self.nodes.len() - usize::from(entry.own == bucket));
            }
            at += 1;
        }
        Err(Full)
    }

    /// Moves the entries of a path, starting with the last entry. Each entry moves to the slot that
    /// the previous move emptied.
    #[inline(never)]
    fn shift(&self, table: &Table, words: &mut [u64], key: Key, from: Origin, empty: u64) {
        let (mut from, mut empty) = (from, empty);
        let lanes = table.lanes();
        while from != Origin::OUTSIDE {
            let Node { start, from: before } = self.nodes[(from.0 >> 2) as usize];
            let slot = start + u64::from(from.0 & 3);
            let entry = table.entry(words, slot).expect("visited slots hold an entry");
            table.flip(words, slot, entry.fingerprint, entry.own);
            let start = bucket_of(lanes, empty, entry.own, entry.other);
            table.flip(words, empty, entry.fingerprint, start);
            (from, empty) = (before, slot);
        }
        let [left, right] = key.starts;
        table.flip(words, empty, key.fingerprint, bucket_of(lanes, empty, left, right));
    }
}

/// Returns an empty slot that an entry may move to. Returns `None` if both buckets of the entry are
/// full.
#[inline(always)]
fn place(lanes: &Lanes, words: &[u64], entry: Entry) -> Option<u64> {
    let empty_other = lanes.empty(words, entry.other);
    let empty_own = lanes.empty(words, entry.own);
    if empty_other | empty_own == 0 {
        return None;
    }
    Some(match empty_other {
        0 => entry.own + lanes.offset(empty_own),
        _ => entry.other + lanes.offset(empty_other),
    })
}

/// Returns which of two buckets contains a slot. The buckets share no slot.
#[inline(always)]
fn bucket_of(lanes: &Lanes, slot: u64, one: u64, other: u64) -> u64 {
    if slot.wrapping_sub(one) < lanes.bucket() { one } else { other }
}

/// The slots that a search has visited, in a hash table. Incrementing the generation of the table
/// empties the table.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The high 16 bits of a tag are the generation. The other bits of a tag are the slot number. A
    /// place of the table is free if the generation of its tag is not the current generation.
    tags: Vec<u64>,
    generation: u64,
    len: usize,
}

/// The step from a generation to the next generation. Slot numbers are below `GENERATION`.
const GENERATION: u64 = 1 << 48;

impl Seen {
    fn clear(&mut self) {
        self.len = 0;
        self.generation = self.generation.wrapping_add(GENERATION);
        // If the generation wraps around to zero, the code clears all tags, because tags from 65
        // 535 searches ago must not count as visited.
        if self.generation == 0 || self.tags.is_empty() {
            self.tags.clear();
            self.tags.resize(256, 0);
            self.generation = GENERATION;
        }
    }

    /// Returns true if the search may visit one more bucket, and reserves memory for the slots of
    /// that bucket.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        self.len * 2 < self.tags.len() || self.grow()
    }

    #[cold]
    fn grow(&mut self) -> bool {
        if self.len >= MAX_SEEN {
            return false;
        }
        let longer = vec![0; self.tags.len() * 4];
        let tags = std::mem::replace(&mut self.tags, longer);
        self.len = 0;
        for tag in tags {
            if tag & !(GENERATION - 1) == self.generation {
                self.insert(tag & (GENERATION - 1));
            }
        }
        true
    }

    /// Adds a slot. Returns false if the slot was already visited.
    #[inline(always)]
    fn insert(&mut self, slot: u64) -> bool {
        let tag = self.generation | slot;
        let mask = self.tags.len() - 1;
        let mut at = (slot.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask;
        loop {
            let place = &mut self.tags[at & mask];
            if *place == tag {
                return false;
            }
            if *place & !(GENERATION - 1) != self.generation {
                *place = tag;
                self.len += 1;
                return true;
            }
            at += 1;
        }
    }
}
