//! Compares all slots of a bucket at once.

use crate::arch::cuckoo_keys::Pairs;
use crate::arch::unaligned::{bits_at, flip_bits_at};

/// The positions of slots in words, and the constants for tests of a bucket.
///
/// Slot `i` consists of `width` bits that start at bit `i * width`. The value zero marks an empty
/// slot. Fingerprint `f` at offset `j` of its bucket is stored as the value `f * bucket + j + 1`.
/// Each value is below 2^width, so there are ⌊(2^width − 1) / bucket⌋ fingerprints.
///
/// An answer about a bucket is a word with one bit for each slot that matches.
/// [`offset`](Self::offset) returns the offset of the first matching slot. `count_ones` returns the
/// number of matching slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    width: u32,
    bucket: u32,
    /// The mask of the bits of one slot.
    slot: u64,
    /// A word with the number `bucket` in every slot of a bucket. The product of `spread` and a
    /// fingerprint contains the lowest value of the fingerprint in every slot.
    spread: u64,
    /// A word that contains, in every slot of a bucket, the offset of the slot plus one. `offsets`
    /// is added to the lowest values of a fingerprint.
    offsets: u64,
    /// The mask of the lowest bit of every slot.
    ones: u64,
    /// The mask of the highest bit of every slot.
    highs: u64,
    /// The answer that contains all slots.
    all: u64,
    /// A factor that maps a bit number in an answer to the offset of the slot: the offset is the
    /// bit number times `reciprocal`, divided by 2¹⁶.
    reciprocal: u32,
}

/// The minimum number of valid bits that a read at any bit position returns.
const READ_BITS: u32 = 57;

/// The distance between the bits of an answer if a bucket is too wide for one read.
const WIDE_ANSWER: u32 = 16;

impl Lanes {
    /// Returns the lanes for buckets of 2 to 4 slots of 4 to 32 bits.
    pub(super) fn new(bucket: u32, width: u32) -> Self {
        let is_narrow = bucket * width <= READ_BITS;
        let sum = |of: &dyn Fn(u32) -> u64| match is_narrow {
            true => (0..bucket).map(|j| of(j) << (j * width)).sum::<u64>(),
            false => 0,
        };
        let highs = sum(&|_| 1 << (width - 1));
        let wide = (0..bucket).map(|j| 1 << (j * WIDE_ANSWER)).sum();
        Self {
            width,
            bucket,
            slot: (1 << width) - 1,
            spread: sum(&|_| u64::from(bucket)),
            offsets: sum(&|j| u64::from(j) + 1),
            ones: sum(&|_| 1),
            highs,
            all: if is_narrow { highs } else { wide },
            reciprocal: (1 << 16) / (if is_narrow { width } else { WIDE_ANSWER }) + 1,
        }
    }

    /// Returns the number of bits of a slot.
    pub(super) const fn width(&self) -> u32 {
        self.width
    }

    /// Returns the number of slots of a bucket.
    #[inline(always)]
    pub(super) const fn bucket(&self) -> u64 {
        self.bucket as u64
    }

    /// Returns the number of different fingerprints.
    pub(super) const fn fingerprints(&self) -> u64 {
        Self::count_fingerprints(self.bucket, self.width)
    }

    /// Returns how many different fingerprints a slot of this width can store.
    pub(super) const fn count_fingerprints(bucket: u32, width: u32) -> u64 {
        ((1 << width) - 1) / bucket as u64
    }

    /// Returns the number of the first bit of a slot.
    #[inline(always)]
    pub(super) const fn bit(&self, slot: u64) -> u64 {
        slot * self.width as u64
    }

    /// Returns true if a bucket fits in one read.
    #[inline(always)]
    pub(super) const fn is_narrow(&self) -> bool {
        self.ones != 0
    }

    /// Returns the parameters of the kernels, if a bucket fits in one read.
    pub(super) fn pairs(&self) -> Option<Pairs> {
        let &Self { spread, offsets, ones, highs, .. } = self;
        let width = u64::from(self.width);
        let pairs = Pairs { width, spread, offsets, ones, highs, ..Pairs::default() };
        self.is_narrow().then_some(pairs)
    }

    /// Tests whether at least one of two buckets, given by their first slots, holds a fingerprint.
    #[inline(always)]
    pub(super) fn either_holds(&self, words: &[u64], starts: [u64; 2], fingerprint: u64) -> bool {
        if !self.is_narrow() {
            return self.either_holds_wide(words, starts, fingerprint);
        }
        let pattern = self.pattern(fingerprint);
        // In the subtraction, a slot causes a borrow only if the slot is zero, so the test shows
        // exactly whether any slot is zero. The test does not show which slot is zero. In the
        // subtraction, bits above the bucket cannot cause a borrow inside the bucket.
        let zero = |start: u64| {
            let lanes = bits_at(words, self.bit(start)) ^ pattern;
            lanes.wrapping_sub(self.ones) & !lanes
        };
        (zero(starts[0]) | zero(starts[1])) & self.highs != 0
    }

    #[inline(never)]
    fn either_holds_wide(&self, words: &[u64], starts: [u64; 2], fingerprint: u64) -> bool {
        starts.iter().fold(0, |found, &start| found | self.holding(words, start, fingerprint)) != 0
    }

    /// Returns the slots of a bucket that hold a fingerprint.
    #[inline(always)]
    pub(super) fn holding(&self, words: &[u64], start: u64, fingerprint: u64) -> u64 {
        if self.is_narrow() {
            let pattern = self.pattern(fingerprint);
            self.zeros(bits_at(words, self.bit(start)) ^ pattern)
        } else {
            self.wide(|j| self.get(words, start + j) == self.value(fingerprint, j))
        }
    }

    /// Returns the empty slots of a bucket.
    #[inline(always)]
    pub(super) fn empty(&self, words: &[u64], start: u64) -> u64 {
        if self.is_narrow() {
            self.zeros(bits_at(words, self.bit(start)))
        } else {
            self.wide(|j| self.get(words, start + j) == 0)
        }
    }

    /// Returns the answer that contains every slot of a bucket.
    #[inline(always)]
    pub(super) const fn all(&self) -> u64 {
        self.all
    }

    /// Returns the offset of the first slot in a non-empty answer.
    #[inline(always)]
    pub(super) fn offset(&self, answer: u64) -> u64 {
        u64::from((answer.trailing_zeros() * self.reciprocal) >> 16)
    }

    /// Returns the value that represents a fingerprint at an offset of its bucket.
    #[inline(always)]
    pub(super) fn value(&self, fingerprint: u64, offset: u64) -> u64 {
        fingerprint * self.bucket() + offset + 1
    }

    /// Returns the fingerprint and the offset that a value represents. The value must not be zero.
    #[inline(always)]
    pub(super) fn parts(&self, value: u64) -> (u64, u64) {
        let x = value - 1;
        // Divides by constants, because a general division takes longer than all other steps of
        // this function.
        let fingerprint = match self.bucket {
            2 => x / 2,
            3 => x / 3,
            _ => x / 4,
        };
        (fingerprint, x - fingerprint * self.bucket())
    }

    /// Reads a slot.
    #[inline(always)]
    pub(super) fn get(&self, words: &[u64], slot: u64) -> u64 {
        bits_at(words, self.bit(slot)) & self.slot
    }

    /// Applies an exclusive or to a slot. The exclusive or writes `value` to an empty slot, or
    /// empties a slot that holds `value`.
    #[inline(always)]
    pub(super) fn flip(&self, words: &mut [u64], slot: u64, value: u64) {
        flip_bits_at(words, self.bit(slot), value);
    }

    /// Changes the first slot of a non-empty answer about the bucket at slot `start`. Writes the
    /// fingerprint to the slot if the slot is empty. Empties the slot if the slot holds the
    /// fingerprint.
    #[inline(always)]
    pub(super) fn flip_first(&self, words: &mut [u64], start: u64, answer: u64, fingerprint: u64) {
        if self.is_narrow() {
            // The pattern contains the value of the fingerprint in every slot of the bucket. The
            // mask `slot` keeps only the first matching slot of the pattern.
            let high = answer & answer.wrapping_neg();
            let slot = (high << 1).wrapping_sub(high >> (self.width - 1));
            flip_bits_at(words, self.bit(start), self.pattern(fingerprint) & slot);
        } else {
            let offset = self.offset(answer);
            self.flip(words, start + offset, self.value(fingerprint, offset));
        }
    }

    /// Returns the content of a bucket with a fingerprint in every slot. The bucket must fit in one
    /// read.
    #[inline(always)]
    fn pattern(&self, fingerprint: u64) -> u64 {
        fingerprint.wrapping_mul(self.spread).wrapping_add(self.offsets)
    }

    /// Returns the highest bits of the slots that are zero.
    #[inline(always)]
    fn zeros(&self, lanes: u64) -> u64 {
        // `lows` contains all bits of every slot except the highest bit.
        let lows = self.highs - self.ones;
        // The addition causes no carry from a slot into the next slot. After the addition, the
        // highest bit of a slot is set if a lower bit of the slot was set.
        !(((lanes & lows) + lows) | lanes) & self.highs
    }

    /// Returns the slots for which `holds` is true, for a bucket that is too wide for one read.
    #[inline(never)]
    fn wide(&self, holds: impl Fn(u64) -> bool) -> u64 {
        (0..self.bucket()).map(|j| u64::from(holds(j)) << (j * u64::from(WIDE_ANSWER))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lanes for all combinations of bucket size and slot width.
    pub(super) fn all() -> impl Iterator<Item = Lanes> {
        (2..=4).flat_map(|bucket| (4..=32).map(move |width| Lanes::new(bucket, width)))
    }

    #[test]
    fn every_value_has_its_parts_and_fits_its_slot() {
        for lanes in all() {
            let last = lanes.fingerprints() - 1;
            for fingerprint in [0, 1, last / 2, last] {
                for offset in 0..lanes.bucket() {
                    let value = lanes.value(fingerprint, offset);
                    assert!(value > 0 && value <= lanes.slot, "{lanes:?}");
                    assert_eq!(lanes.parts(value), (fingerprint, offset), "{lanes:?}");
                }
            }
        }
    }

    #[test]
    fn buckets_answer_as_their_slots_one_by_one() {
        for lanes in all() {
            let mut words = vec![0; 40];
            let slots = 38 * 64 / u64::from(lanes.width);
            let mut random = 1_u64;
            for slot in 0..slots {
                random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                // The fingerprints have few different values, so that many slots are equal or
                // differ by one bit.
                let offset = random >> 60 & 3;
                let fingerprint = (random >> 50 & 1) * (lanes.fingerprints() - 1);
                if offset < lanes.bucket() {
                    lanes.flip(&mut words, slot, lanes.value(fingerprint, offset));
                    assert_eq!(lanes.get(&words, slot), lanes.value(fingerprint, offset));
                }
            }
            let offsets = |answer: u64| {
                let mut answer = answer;
                let mut offsets = Vec::new();
                while answer != 0 {
                    offsets.push(lanes.offset(answer));
                    answer &= answer - 1;
                }
                offsets
            };
            for start in 0..=slots - lanes.bucket() {
                let filter = |holds: &dyn Fn(u64) -> bool| -> Vec<u64> {
                    (0..lanes.bucket()).filter(|&j| holds(j)).collect()
                };
                let empty = filter(&|j| lanes.get(&words, start + j) == 0);
                assert_eq!(offsets(lanes.empty(&words, start)), empty, "{lanes:?} at {start}");
                for fingerprint in [0, 1, lanes.fingerprints() - 1] {
                    let value = |j| lanes.value(fingerprint, j);
                    let holding = filter(&|j| lanes.get(&words, start + j) == value(j));
                    let found = offsets(lanes.holding(&words, start, fingerprint));
                    assert_eq!(found, holding, "{lanes:?} at {start}");
                    let either = lanes.either_holds(&words, [start, start], fingerprint);
                    assert_eq!(either, !holding.is_empty(), "{lanes:?} at {start}");
                }
            }
        }
    }
}
