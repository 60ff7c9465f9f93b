//! Finds the k-th set bit of a word (select), and moves bits to and from the positions of set bits.
//!
//! With BMI2, select takes the two instructions `pdep` and `tzcnt`. The compiler inlines `pdep` and
//! `tzcnt` even into callers that are compiled for any x86-64 CPU.

use crate::arch::level::{Level, level};

/// The method by which this CPU selects and moves bits. A loop keeps the method in a register, so
/// the compiler can move the branch on the method out of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Select {
    level: Level,
}

/// Runs `pext` or `pdep` with a word and a mask. The caller ensures that the CPU supports the
/// instruction.
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
macro_rules! gather {
    ($instruction:literal, $word:expr, $mask:expr) => {{
        let bits: u64;
        std::arch::asm!(
            concat!($instruction, " {bits}, {word}, {mask}"),
            word = in(reg) $word,
            mask = in(reg) $mask,
            bits = lateout(reg) bits,
            options(pure, nomem, nostack),
        );
        bits
    }};
}

impl Select {
    /// Returns the fastest method that this CPU supports.
    pub(crate) fn new() -> Self {
        Self { level: level() }
    }

    /// Returns the number of the `k`-th set bit of `word`, counted from zero. Returns 64 if at most
    /// `k` bits of the word are set.
    #[inline(always)]
    pub(crate) fn select(self, word: u64, k: u32) -> u32 {
        debug_assert!(k < 64);
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        if self.level != Level::Scalar {
            let place: u64;
            // SAFETY: every level above scalar requires BMI1 and BMI2.
            unsafe {
                std::arch::asm!(
                    "pdep {place}, {one}, {word}",
                    "tzcnt {place}, {place}",
                    one = in(reg) 1_u64 << (k & 63),
                    word = in(reg) word,
                    place = lateout(reg) place,
                    options(pure, nomem, nostack),
                );
            }
            return place as u32;
        }
        select_by_bytes(word, k)
    }

    /// Returns the bits of `word` at the positions of the set bits of `mask`, packed into the
    /// lowest bits.
    #[inline(always)]
    pub(crate) fn extract(self, word: u64, mask: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        if self.level != Level::Scalar {
            // SAFETY: every level above scalar requires BMI2.
            return unsafe { gather!("pext", word, mask) };
        }
        let (mut bits, mut left) = (0, mask);
        for i in 0..mask.count_ones() {
            bits |= (word >> left.trailing_zeros() & 1) << i;
            left &= left - 1;
        }
        bits
    }

    /// Returns the lowest bits of `word`, moved to the positions of the set bits of `mask`. All
    /// other bits of the result are zero.
    #[inline(always)]
    pub(crate) fn deposit(self, word: u64, mask: u64) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        if self.level != Level::Scalar {
            // SAFETY: every level above scalar requires BMI2.
            return unsafe { gather!("pdep", word, mask) };
        }
        let (mut bits, mut left) = (0, mask);
        for i in 0..mask.count_ones() {
            bits |= (word >> i & 1) << left.trailing_zeros();
            left &= left - 1;
        }
        bits
    }

    /// Counts the set bits of `word`.
    #[inline(always)]
    pub(crate) fn count_ones(self, word: u64) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        if self.level != Level::Scalar {
            let ones: u64;
            // SAFETY: every level above scalar requires POPCNT.
            unsafe {
                std::arch::asm!(
                    "popcnt {ones}, {word}",
                    word = in(reg) word,
                    ones = lateout(reg) ones,
                    options(pure, nomem, nostack),
                );
            }
            return ones as u32;
        }
        word.count_ones()
    }
}

/// The scalar version of select. Counts the set bits of all bytes at once, and then searches for
/// the byte that contains the result.
///
/// Source: Vigna, "Broadword implementation of rank/select queries" (2008), §4.
fn select_by_bytes(word: u64, k: u32) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // Byte i of `sums` is the number of set bits in bytes 0 to i of `word`. The last byte of `sums`
    // is at most 64, so no byte overflows.
    let sums = bytes.wrapping_mul(ONES);
    if sums >> 56 <= u64::from(k) {
        return 64;
    }
    // `before` contains the highest bit of each byte whose sum is at most k. The bytes marked in
    // `before` precede the byte that contains the result.
    let before = (((u64::from(k) * ONES) | HIGHS) - sums) & HIGHS;
    let place = before.count_ones() * 8;
    let skipped = (sums << 8 >> place & 0xff) as u32;
    let mut byte = word >> place & 0xff;
    for _ in skipped..k {
        byte &= byte - 1;
    }
    place + byte.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::level::available;

    proptest! {
        #[test]
        fn every_level_moves_the_same_bits(word: u64, a: u64, b: u64) {
            for mask in [a, a & b, a | b, 0, u64::MAX] {
                let places: Vec<u32> = (0..64).filter(|i| mask >> i & 1 == 1).collect();
                let bits = (0..).zip(&places).map(|(i, at)| (word >> at & 1) << i).sum::<u64>();
                let moved = (0..).zip(&places).map(|(i, at)| (word >> i & 1) << at).sum::<u64>();
                for level in available() {
                    let select = Select { level };
                    prop_assert_eq!(select.extract(word, mask), bits, "{:?}", level);
                    prop_assert_eq!(select.deposit(word, mask), moved, "{:?}", level);
                }
            }
        }

        #[test]
        fn every_level_finds_the_same_one(a: u64, b: u64, c: u64) {
            // Full, half-full, sparse and empty words.
            for word in [a, a & b, a & b & c, a | b, a | b | c, u64::MAX, 0, 1 << (a % 64)] {
                let places: Vec<u32> = (0..64).filter(|i| word >> i & 1 == 1).collect();
                for level in available() {
                    let select = Select { level };
                    prop_assert_eq!(select.count_ones(word) as usize, places.len());
                    for k in 0..64 {
                        let expected = places.get(k as usize).copied().unwrap_or(64);
                        prop_assert_eq!(select.select(word, k), expected, "{:?}", level);
                    }
                }
            }
        }
    }
}
