//! Making room: the shortest row of moves that ends in an empty slot, planned before the first move.

use super::lanes::Lanes;
use super::table::{Entry, Full, Key, Table};
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The memory of a search, kept from one to the next. What a search finds depends on the table alone.
///
/// Grows with the longest search so far: a few kilobytes, and up to a megabyte in a large table that is
/// full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    nodes: Vec<Node>,
    seen: Seen,
}

/// A bucket whose slots are all taken.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u64,
    /// The slot whose entry would move here.
    from: Origin,
}

/// A slot of a node: the node's number, and the offset in its two lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin(u32);

impl Origin {
    /// Where the new entry comes from.
    const OUTSIDE: Origin = Origin(u32::MAX);
}

/// How many slots a search looks at before it gives up: buckets of two then reach 96.1 % at 10⁷ slots.
/// With 2¹² it is 94.6 % at 10⁶.
const MAX_SEEN: usize = 1 << 15;

impl Search {
    /// Puts an entry into one of its slots, which are all taken, by moving others.
    ///
    /// Breadth first: buckets are looked at in the order of how many moves they are away. A slot is
    /// looked at once, so the slots of a way are distinct.
    #[inline(never)]
    pub(super) fn make_room(
        &mut self,
        table: &Table,
        words: &mut [u64],
        key: Key,
    ) -> Result<(), Full> {
        let lanes = *table.lanes();
        // Most searches end after one move, and that needs no memory.
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

    /// As [`make_room`](Self::make_room), where one move is not enough.
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
                // Where its own bucket is the one at hand, none of its slots is new. No branch: it would
                // go wrong half the time.
                self.nodes.push(Node { start: entry.own, from });
                self.nodes.truncate(self.nodes.len() - usize::from(entry.own == bucket));
            }
            at += 1;
        }
        Err(Full)
    }

    /// Moves the entries of a way, the last first, each to the slot that the one before has left.
    #[inline(never)]
    fn shift(&self, table: &Table, words: &mut [u64], key: Key, from: Origin, empty: u64) {
        let (mut from, mut empty) = (from, empty);
        let lanes = table.lanes();
        while from != Origin::OUTSIDE {
            let Node { start, from: before } = self.nodes[(from.0 >> 2) as usize];
            let slot = start + u64::from(from.0 & 3);
            let entry = table.entry(words, slot).expect("an entry, by the search");
            table.flip(words, slot, entry.fingerprint, entry.own);
            let start = bucket_of(lanes, empty, entry.own, entry.other);
            table.flip(words, empty, entry.fingerprint, start);
            (from, empty) = (before, slot);
        }
        let [left, right] = key.starts;
        table.flip(words, empty, key.fingerprint, bucket_of(lanes, empty, left, right));
    }
}

/// Returns an empty slot that an entry may move to.
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

/// Returns which of two buckets, which share no slot, a slot lies in.
#[inline(always)]
fn bucket_of(lanes: &Lanes, slot: u64, one: u64, other: u64) -> u64 {
    if slot.wrapping_sub(one) < lanes.bucket() { one } else { other }
}

/// The slots that a search has met: a hash table that is emptied by counting on.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The generation in the high 16 bits, the slot below; of another generation, the place is free.
    tags: Vec<u64>,
    generation: u64,
    len: usize,
}

/// Slots are numbers below this.
const GENERATION: u64 = 1 << 48;

impl Seen {
    fn clear(&mut self) {
        self.len = 0;
        self.generation = self.generation.wrapping_add(GENERATION);
        // Zero once round: tags of 65 535 searches ago must not count as new.
        if self.generation == 0 || self.tags.is_empty() {
            self.tags.clear();
            self.tags.resize(256, 0);
            self.generation = GENERATION;
        }
    }

    /// Tells whether another bucket may be looked at, and makes room for its slots.
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

    /// Adds a slot; false if it is in.
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
