//! The operation rank counts the values at or below a value. The operation select returns the value
//! with a given index.

use crate::bits::Bits as _;
use crate::exact::integer_set::dense::DenseSet;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The number of words between two entries of the directory of a [`RankIndex`]. A directory with
/// one entry for each 4096 bits adds 1.6 % to the memory of the set.
const STRIDE_WORDS: usize = 64;

impl DenseSet {
    /// Counts the values at or below `value`, as the method `rank` of the crate roaring does.
    ///
    /// Reads all bits below the value, which takes about 50 ms for all of `u32`. Before many calls
    /// of `rank`, build a [`rank_index`](Self::rank_index).
    #[must_use]
    pub fn rank(&self, value: u64) -> u64 {
        if value < self.first {
            return 0;
        }
        self.count_range(self.first..=value)
    }

    /// Returns the value at index `n` in ascending order. Index 0 is the lowest value. Returns
    /// `None` if the set holds at most `n` values.
    ///
    /// Reads all bits below the value, as [`rank`](Self::rank) does.
    #[must_use]
    pub fn select(&self, n: u64) -> Option<u64> {
        select_in(self.bits.words(), n).map(|bit| self.first + bit)
    }

    /// Builds a directory of the set, with which rank takes constant time and select takes
    /// logarithmic time.
    ///
    /// Building the directory reads the set once. The directory takes 8 bytes for each 512 bytes of
    /// the set.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut set = tamis::DenseSet::new(0..=1_000_000)?;
    /// set.insert_range(500_000..=599_999)?;
    /// let index = set.rank_index();
    /// assert_eq!((index.rank(500_009), index.rank(u64::MAX)), (10, 100_000));
    /// assert_eq!((index.select(9), index.select(100_000)), (Some(500_009), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rank_index(&self) -> RankIndex<'_> {
        let mut total = 0;
        let mut before: Vec<u64> = Vec::new();
        for words in self.bits.words().chunks(STRIDE_WORDS) {
            before.push(total);
            total += count(words);
        }
        RankIndex { set: self, before, total }
    }
}

/// A directory of a [`DenseSet`], created by [`DenseSet::rank_index`]. The directory borrows the
/// set, so the set cannot change while the directory exists.
#[derive(Clone, Debug)]
pub struct RankIndex<'a> {
    set: &'a DenseSet,
    // The number of values before each stride, which is a group of `STRIDE_WORDS` words.
    before: Vec<u64>,
    total: u64,
}

impl RankIndex<'_> {
    /// Counts the values at or below `value`. Takes constant time: reads at most 64 words of the
    /// set.
    #[must_use]
    pub fn rank(&self, value: u64) -> u64 {
        if value < self.set.first {
            return 0;
        }
        let Some(bit) = self.set.bit_of(value) else { return self.total };
        let at = (bit / 64) as usize;
        let stride = at / STRIDE_WORDS;
        let words = self.set.bits.words();
        let in_word = words[at] & u64::MAX >> (63 - bit % 64);
        self.before[stride]
            + count(&words[stride * STRIDE_WORDS..at])
            + u64::from(in_word.count_ones())
    }

    /// Returns the value at index `n` in ascending order. Returns `None` if the set holds at most
    /// `n` values. Searches the directory, then reads at most 64 words of the set.
    #[must_use]
    pub fn select(&self, n: u64) -> Option<u64> {
        if n >= self.total {
            return None;
        }
        let stride = self.before.partition_point(|&before| before <= n) - 1;
        let first = stride * STRIDE_WORDS;
        let bit = select_in(&self.set.bits.words()[first..], n - self.before[stride])?;
        Some(self.set.first + first as u64 * 64 + bit)
    }
}

fn count(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Returns the bit number of the set bit with index `n`. Index 0 is the lowest set bit.
fn select_in(words: &[u64], mut n: u64) -> Option<u64> {
    for (at, &word) in words.iter().enumerate() {
        let ones = u64::from(word.count_ones());
        if n < ones {
            let rest = (0..n).fold(word, |word, _| word & (word - 1));
            return Some(at as u64 * 64 + u64::from(rest.trailing_zeros()));
        }
        n -= ones;
    }
    None
}
