//! The rules of the cuckoo filter: the slots in which an item may be stored, and the value that is
//! stored. The caller owns the words of the table.
//!
//! ```text
//!            left half                                right half
//! slots    |0|1|2|3|4|5|6|7|8|9|                    |10|11|12|13|14|15|16|17|18|19|
//! buckets    ╰─2─╯   ╰─4─╯                                ╰─13─╯ ╰─15─╯
//!              start ∈ 0..9     fingerprint f ◀──▶        start ∈ 10..19
//! ```
//!
//! A bucket is `bucket` adjacent slots and starts at any slot, so adjacent buckets overlap. With
//! overlapping buckets of two slots, a table can be filled to 96.5 % (Lehman and Panigrahy,
//! "3.5-way Cuckoo Hashing for the Price of 2-and-a-Bit", 2009). With separate buckets, a table can
//! be filled to 89.7 %. Schmitz, Zentgraf and Rahmann, "Smaller and More Flexible Cuckoo Filters"
//! (2025), use overlapping buckets in filters. Two rules of this module differ from the filters of
//! Schmitz et al.:
//!
//! * An item has one bucket in each half. The halves share no slot, so the two buckets of an item
//!   are never equal and never overlap. In a table of any size, an item has `2 * bucket` slots.
//! * A reflection computes the right bucket of an item from the left bucket: `left + right ≡
//!   sum(fingerprint)` modulo the number of starts in a half. The reflection works for any number
//!   of starts. The same formula computes the left bucket from the right bucket.
//!
//! A slot contains an entry: the fingerprint, and the offset of the slot in its bucket. The slot
//! number, the fingerprint and the offset determine both buckets of the entry. A **key** is the
//! fingerprint with both buckets. In a key, the start of the left bucket determines the start of
//! the right bucket.
//!
//! Invariants of tables that only this code has written:
//!
//! * An entry with fingerprint `f` and left start `l` is in one of the two buckets of `(f, l)`, and
//!   stores its offset in this bucket. Because an entry stores its offset, a lookup of a key finds
//!   exactly the entries of this key. The entries of a key are interchangeable: a removal may
//!   remove any entry of the key.
//! * The number of entries of a key is at most the number of inserted items with this key, minus
//!   the removed items. If a key has fewer than `2 * bucket` entries, each inserted item that was
//!   not removed has one entry. If a key has `2 * bucket` entries, no entry of this key is ever
//!   removed, so an inserted item is always found.
//!
//! The filter cannot distinguish two items with the same key. There are `fingerprints * starts`
//! keys, and all keys are equally probable, so the rate depends on the number of keys (`plan.rs`),
//! not on the number of slots.
//!
//! Words from other sources, for example from a file, may violate the invariants. With invalid
//! words, answers are wrong, but no function panics.

use crate::arch::prefetch::prefetch_index;
use crate::filter::Removed;
use crate::filter::cuckoo::lanes::Lanes;
use crate::strategy::block_rules::scale::scale;

/// The maximum number of slots of a table. A search stores a slot number in a word and uses the
/// other 16 bits of the word for its own purpose.
pub(crate) const MAX_SLOTS: u64 = 1 << 48;

/// The geometry of a table. The table defines the rules and has no storage.
///
/// The slices that the caller passes to the methods of a table must have
/// [`len_words`](Self::len_words) words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    lanes: Lanes,
    /// The number of bucket starts in a half.
    pub(super) starts: u64,
    /// The first slot of the right half.
    pub(super) right: u64,
    pub(super) fingerprints: u64,
}

/// The value by which items are compared. The filter cannot distinguish items with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) fingerprint: u64,
    /// The first slots of the two buckets of the key.
    pub(super) starts: [u64; 2],
}

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) fingerprint: u64,
    /// The first slot of the bucket that contains the entry.
    pub(super) own: u64,
    /// The first slot of the other bucket of the entry.
    pub(super) other: u64,
}

impl Entry {
    fn key(self) -> Key {
        let (left, right) = (self.own.min(self.other), self.own.max(self.other));
        Key { fingerprint: self.fingerprint, starts: [left, right] }
    }
}

/// The error if an entry has no free slot and no sequence of moves frees a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// The result of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The item is stored for the first time.
    New,
    /// The item is stored as an additional copy.
    Again,
    /// The table is unchanged. With [`Repeats::Skip`], the table already holds the item. With
    /// [`Repeats::Store`], the item already uses all of its slots, so its count is no longer exact.
    Unchanged,
}

/// The rule for an item that the table already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Leave the table unchanged.
    Skip,
    /// Store an additional copy.
    Store,
}

impl Table {
    /// Returns the table with buckets of 2 to 4 slots of 4 to 32 bits, and `starts` bucket starts
    /// in a half.
    pub(crate) fn new(bucket: u32, slot_bits: u32, starts: u64) -> Self {
        let lanes = Lanes::new(bucket, slot_bits);
        let right = starts + u64::from(bucket) - 1;
        Self { lanes, starts, right, fingerprints: lanes.fingerprints() }
    }

    /// Returns the table with this number of slots, as counted by [`slots`](Self::slots). Returns
    /// `None` if no table has these parameters, or if a parameter is out of range.
    pub(crate) fn from_slots(bucket: u32, slot_bits: u32, slots: u64) -> Option<Self> {
        let in_range = (2..=4).contains(&bucket)
            && (4..=32).contains(&slot_bits)
            && slots.is_multiple_of(2)
            && slots <= MAX_SLOTS;
        let starts = (slots / 2).checked_sub(u64::from(bucket) - 1).filter(|&starts| starts > 0)?;
        in_range.then(|| Self::new(bucket, slot_bits, starts))
    }

    /// Returns the number of different fingerprints of a table with this bucket size and slot
    /// width.
    pub(crate) const fn count_fingerprints(bucket: u32, slot_bits: u32) -> u64 {
        Lanes::count_fingerprints(bucket, slot_bits)
    }

    /// Returns the number of slots of a bucket.
    pub(crate) const fn bucket(&self) -> u32 {
        self.lanes.bucket() as u32
    }

    /// Returns the number of bits of a slot.
    pub(crate) const fn slot_bits(&self) -> u32 {
        self.lanes.width()
    }

    /// Returns the number of different fingerprints.
    pub(crate) const fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    /// Returns the number of bits of all slots, without the spare word.
    pub(crate) const fn len_bits(&self) -> u64 {
        self.lanes.bit(self.slots())
    }

    /// Returns the number of bucket starts in a half.
    pub(crate) const fn starts(&self) -> u64 {
        self.starts
    }

    /// Returns the number of keys, which is the number of items that can be distinguished.
    pub(crate) fn keys_in_all(&self) -> f64 {
        self.starts as f64 * self.fingerprints as f64
    }

    /// Returns the number of slots.
    pub(crate) const fn slots(&self) -> u64 {
        2 * self.right
    }

    /// Returns the number of words. A spare word follows the slots, because reads may access bits
    /// after the last slot.
    pub(crate) const fn len_words(&self) -> u64 {
        self.lanes.bit(self.slots()).div_ceil(64) + 1
    }

    /// Returns the maximum number of entries of a key.
    #[inline(always)]
    pub(crate) const fn most_copies(&self) -> u64 {
        2 * self.lanes.bucket()
    }

    #[inline(always)]
    pub(super) const fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the key of an item. The function treats `hash` as a fraction, whose two leading
    /// digits are the left start and the fingerprint. With this rule, all keys are equally
    /// probable, up to 2⁶⁴ keys.
    #[inline(always)]
    pub(crate) fn key(&self, hash: u64) -> Key {
        let product = u128::from(hash) * u128::from(self.starts);
        let (start, rest) = ((product >> 64) as u64, product as u64);
        let fingerprint = scale(rest, self.fingerprints);
        Key { fingerprint, starts: [start, self.right + self.reflect(fingerprint, start)] }
    }

    /// Returns the start of the other bucket of a fingerprint, counted from the first slot of the
    /// other half.
    #[inline(always)]
    fn reflect(&self, fingerprint: u64, start: u64) -> u64 {
        // The sum is a well mixed hash of the fingerprint. If the sum were a plain multiple of the
        // golden ratio, the paths between buckets would form too many short cycles. With plain
        // multiples of the golden ratio, a table of 10⁶ slots of 6 bits was full at 94.6 %. With
        // the mixed sum, a table of 10⁶ slots of 6 bits is full at 96 %.
        let x = (fingerprint + 1).wrapping_mul(MULTIPLIER);
        let sum = scale((x ^ x >> 32).wrapping_mul(MULTIPLIER), self.starts);
        let (start, is_negative) = sum.overflowing_sub(start);
        start.wrapping_add(if is_negative { self.starts } else { 0 })
    }

    /// Returns the entry in a slot. Returns `None` if the slot is empty, or holds a value that this
    /// code never writes.
    #[inline(always)]
    pub(super) fn entry(&self, words: &[u64], slot: u64) -> Option<Entry> {
        let value = self.lanes.get(words, slot);
        if value == 0 {
            return None;
        }
        let (fingerprint, offset) = self.lanes.parts(value);
        let first = if slot < self.right { 0 } else { self.right };
        // A negative difference wraps around to a number above all starts.
        let start = (slot - first).wrapping_sub(offset);
        if start >= self.starts || fingerprint >= self.fingerprints {
            return None;
        }
        let other = self.right - first + self.reflect(fingerprint, start);
        Some(Entry { fingerprint, own: first + start, other })
    }

    /// Tests whether an item with this hash may be stored.
    #[inline(always)]
    pub(crate) fn contains(&self, words: &[u64], hash: u64) -> bool {
        let key = self.key(hash);
        self.lanes.either_holds(words, key.starts, key.fingerprint)
    }

    /// Returns the slots of each bucket that hold a key.
    #[inline(always)]
    pub(super) fn holding(&self, words: &[u64], key: Key) -> [u64; 2] {
        let [left, right] = key.starts;
        let holding = |start| self.lanes.holding(words, start, key.fingerprint);
        [holding(left), holding(right)]
    }

    /// Counts the entries of an item. The result is an upper bound of the number of times that the
    /// item was inserted, unless the result is [`most_copies`](Self::most_copies).
    #[inline]
    pub(crate) fn count(&self, words: &[u64], hash: u64) -> u64 {
        let holding = self.holding(words, self.key(hash));
        u64::from(holding[0].count_ones() + holding[1].count_ones())
    }

    /// Prefetches the memory that a lookup reads.
    #[inline(always)]
    pub(super) fn prefetch(&self, words: &[u64], hash: u64) {
        for start in self.key(hash).starts {
            self.prefetch_start(words, start);
        }
    }

    /// Prefetches the memory of a bucket.
    #[inline(always)]
    fn prefetch_start(&self, words: &[u64], start: u64) {
        prefetch_index(words, (self.lanes.bit(start) / 64) as usize);
    }

    /// Removes one entry of an item. The entries of an item are interchangeable.
    #[inline]
    pub(crate) fn remove(&self, words: &mut [u64], key: Key) -> Removed {
        let holding = self.holding(words, key);
        if holding[0] | holding[1] == 0 {
            return Removed::Absent;
        }
        if holding[0] & holding[1] == self.lanes.all() {
            return Removed::Saturated;
        }
        let is_right = holding[0] == 0;
        let start = select(is_right, key.starts[0], key.starts[1]);
        let holding = select(is_right, holding[0], holding[1]);
        self.lanes.flip_first(words, start, holding, key.fingerprint);
        Removed::Yes
    }

    /// Writes the entry of a fingerprint to an empty slot of the bucket at slot `start`. If the
    /// slot already holds this entry, empties the slot.
    #[inline(always)]
    pub(super) fn flip(&self, words: &mut [u64], slot: u64, fingerprint: u64, start: u64) {
        self.lanes.flip(words, slot, self.lanes.value(fingerprint, slot - start));
    }

    /// Returns the keys of all entries, in the order of their slots.
    pub(crate) fn keys(&self, words: &[u64]) -> impl Iterator<Item = Key> {
        (0..self.slots()).filter_map(|slot| self.entry(words, slot).map(Entry::key))
    }

    /// Counts the slots that are not empty. Reads all slots.
    pub(crate) fn items(&self, words: &[u64]) -> u64 {
        self.items_in(words, self.slots())
    }

    /// Counts the entries of the first `slots` slots.
    pub(crate) fn items_in(&self, words: &[u64], slots: u64) -> u64 {
        (0..slots).map(|slot| u64::from(self.lanes.get(words, slot) != 0)).sum()
    }

    /// Returns the share of entries whose key occurs several times, among the first 4096 slots.
    pub(crate) fn share_of_copies(&self, words: &[u64]) -> f64 {
        let entries = (0..self.slots().min(4096)).filter_map(|slot| self.entry(words, slot));
        let (mut all, mut copies) = (0_u32, 0_u32);
        for entry in entries {
            let holding = self.holding(words, entry.key());
            all += 1;
            copies += u32::from(holding[0].count_ones() + holding[1].count_ones() > 1);
        }
        f64::from(copies) / f64::from(all.max(1))
    }

    /// Returns true if every slot is empty or holds an entry, and every other bit is zero. Returns
    /// false at once if the number of words does not match the geometry. Reads all slots.
    pub(crate) fn is_valid(&self, words: &[u64]) -> bool {
        let end = self.lanes.bit(self.slots());
        let (full, rest) = ((end / 64) as usize, end % 64);
        words.len() as u64 == self.len_words()
            && words[full] >> rest == 0
            && words[full + 1..].iter().all(|&word| word == 0)
            && (0..self.slots())
                .all(|slot| self.lanes.get(words, slot) == 0 || self.entry(words, slot).is_some())
    }
}

/// Returns `yes` if `condition` is true, or `no` otherwise, without a branch.
#[inline(always)]
pub(super) fn select(condition: bool, no: u64, yes: u64) -> u64 {
    no ^ ((no ^ yes) & u64::from(condition).wrapping_neg())
}

/// The multiplier is from Steele and Vigna, "Computationally easy, spectrally good multipliers"
/// (2021), table 6.
pub(super) const MULTIPLIER: u64 = 0xd134_2543_de82_ef95;
