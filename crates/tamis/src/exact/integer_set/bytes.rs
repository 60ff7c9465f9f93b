//! Conversion of sets from and to bytes, in the bit order of other programs.

use std::ops::RangeInclusive;

use crate::bits::{Bits as _, BitsMut as _};
use crate::exact::integer_set::dense::DenseSet;
use crate::exact::integer_set::error::RangeError;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The bit of a byte that represents the byte's lowest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest value of a byte is in bit 0, the least significant bit: `byte[num >> 3] & 1 <<
    /// (num & 7)`, as in a hand-written `byte[]` bitmap, `java.util.BitSet` and Tamis itself.
    LsbFirst,
    /// The lowest value of a byte is in bit 7, the most significant bit, as in the bitmaps of Redis
    /// and Valkey (`SETBIT`).
    MsbFirst,
}

impl DenseSet {
    /// Reads a set from the bytes of a bitmap. The first bit represents the value `first`.
    ///
    /// # Errors
    ///
    /// [`RangeError::Empty`] if `bytes` is empty, or if the last value would be above `u64::MAX`;
    /// [`RangeError::OutOfMemory`] if there is no memory for a copy.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{DenseSet, Order};
    ///
    /// // SETBIT ids 1 1, SETBIT ids 14 1
    /// let set = DenseSet::from_bytes(0, &[0b0100_0000, 0b0000_0010], Order::MsbFirst)?;
    /// assert_eq!(set.iter().collect::<Vec<_>>(), [1, 14]);
    /// assert_eq!(set.to_bytes(Order::LsbFirst), [0b0000_0010, 0b0100_0000]);
    /// # Ok::<(), tamis::RangeError>(())
    /// ```
    pub fn from_bytes(first: u64, bytes: &[u8], order: Order) -> Result<Self, RangeError> {
        let last = (bytes.len() as u64).checked_mul(8).and_then(|bits| bits.checked_sub(1));
        let last = last
            .and_then(|last_bit| first.checked_add(last_bit))
            .ok_or(RangeError::Empty { first, last: first.wrapping_sub(1) })?;
        let mut set = Self::new(RangeInclusive::new(first, last))?;
        set.fill_from_bytes(bytes, order);
        Ok(set)
    }

    /// Replaces the words of the set by the bytes of a bitmap. The first bit represents the first
    /// value of the range. Bits past the end of the range must be zero.
    pub(crate) fn fill_from_bytes(&mut self, bytes: &[u8], order: Order) {
        for (word, bytes) in self.bits.words_mut().iter_mut().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = in_order(u64::from_le_bytes(eight), order);
        }
    }

    /// Returns the set as the bytes of a bitmap, with one byte for each eight values of the range.
    /// The unused bits of the last byte are zero.
    #[must_use]
    pub fn to_bytes(&self, order: Order) -> Vec<u8> {
        let len_bytes = ((self.last - self.first) / 8 + 1) as usize;
        let mut bytes = Vec::with_capacity(len_bytes.next_multiple_of(8));
        for &word in self.bits.words() {
            bytes.extend(in_order(word, order).to_le_bytes());
        }
        bytes.truncate(len_bytes);
        bytes
    }
}

/// Reverses the bits of each byte if `order` differs from the bit order of a word. Calling
/// `in_order` twice with one order returns the original word.
fn in_order(word: u64, order: Order) -> u64 {
    match order {
        Order::LsbFirst => word,
        // Reverses all 64 bits and then the order of the 8 bytes. As a result of both steps, each
        // byte keeps its place, but the bits of each byte are reversed.
        Order::MsbFirst => word.reverse_bits().swap_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_bytes_and_values_above_u64_are_refused() {
        assert!(matches!(
            DenseSet::from_bytes(0, &[], Order::LsbFirst),
            Err(RangeError::Empty { .. })
        ));
        assert!(matches!(
            DenseSet::from_bytes(u64::MAX, &[1], Order::LsbFirst),
            Err(RangeError::Empty { .. })
        ));
    }
}
