//! The answers to a batch, one bit for each item.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
/// The answers to a batch of items as a bit mask. Each answer is yes or no.
///
/// The answers are a mask instead of a list of `bool`. A branch on each answer would take several
/// times as long as computing the answer. Process whole words, or iterate over the indices of the
/// set bits.
///
/// # Examples
///
/// ```
/// use tamis::{Answers, Bloom};
///
/// let mut seen: Bloom = Bloom::for_items(100, 0.01)?;
/// let mut answers = Answers::new();
/// seen.insert_each(&[3_u64, 5, 3], &mut answers);
/// assert_eq!(answers.iter().collect::<Vec<_>>(), [true, true, false]);
/// assert_eq!(answers.ones().collect::<Vec<_>>(), [0, 1]);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    // Invariant: bits at and above `len` are zero.
    words: Vec<u64>,
    len: usize,
}

impl Answers {
    /// Creates an empty batch of answers. A reused `Answers` value keeps its memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: Vec::new(), len: 0 }
    }

    /// Creates `len` answers. Answer `i` is `answer(i)`. Calls `answer` in ascending order of `i`.
    #[must_use]
    pub fn from_fn(len: usize, answer: impl FnMut(usize) -> bool) -> Self {
        let mut answers = Self::new();
        answers.fill_with(len, answer);
        answers
    }

    /// Replaces the answers by `len` new answers. Answer `i` is `answer(i)`. Calls `answer` in
    /// ascending order of `i`.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut is_even = tamis::Answers::from_fn(100, |i| i % 2 == 0);
    /// assert_eq!(is_even.count_ones(), 50);
    /// is_even.fill_with(3, |i| i % 2 == 0);
    /// assert_eq!(is_even.iter().collect::<Vec<_>>(), [true, false, true]);
    /// ```
    pub fn fill_with(&mut self, len: usize, mut answer: impl FnMut(usize) -> bool) {
        for (word, first) in self.reset(len).iter_mut().zip((0..).step_by(64)) {
            for i in 0..64.min(len - first) {
                *word |= u64::from(answer(first + i)) << i;
            }
        }
    }

    /// Returns the number of answers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no answers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns answer number `index`.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "answer {index} of {}", self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Replaces answer number `index`.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`len`](Self::len).
    #[inline]
    pub fn set(&mut self, index: usize, is_yes: bool) {
        assert!(index < self.len, "answer {index} of {}", self.len);
        self.words[index / 64] &= !(1 << (index % 64));
        set_answer(&mut self.words, index, is_yes);
    }

    /// Counts the answers that are yes.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the answers as a bit mask. Answer `i` is bit `i % 64` of word `i / 64`. Bits past
    /// the last answer are zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Iterates over all answers in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// Iterates over the indices of the answers that are yes, in order.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        ones(self.words.iter().copied())
    }

    /// Iterates over the indices of the answers that are no, in order.
    pub fn zeros(&self) -> impl Iterator<Item = usize> + '_ {
        let len = self.len;
        ones(self.words.iter().map(|word| !word)).take_while(move |&index| index < len)
    }

    /// Replaces the answers by `len` answers, all no, and returns the mask for writing.
    ///
    /// The caller must leave the bits past `len` zero.
    pub fn reset(&mut self, len: usize) -> &mut [u64] {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
        &mut self.words
    }
}

/// Checks that a mask has one word for each 64 of `len` answers, rounded up.
///
/// # Panics
///
/// If the mask has fewer or more words than `len` answers need.
#[inline(always)]
pub(crate) fn check_words(words: &[u64], len: usize) {
    assert_eq!(words.len(), len.div_ceil(64), "a word for each 64 hashes");
}

/// Sets answer number `index` of a mask to yes if `is_yes` is true.
#[inline(always)]
pub(crate) fn set_answer(words: &mut [u64], index: usize, is_yes: bool) {
    words[index / 64] |= u64::from(is_yes) << (index % 64);
}

/// Writes the answer to each of `items`, in order, to a mask with one word for each 64 items.
#[inline]
pub(crate) fn answer_each<T>(items: &[T], words: &mut [u64], mut answer: impl FnMut(&T) -> bool) {
    for (word, items) in words.iter_mut().zip(items.chunks(64)) {
        *word = answer_word(items, &mut answer);
    }
}

/// Returns the answers to up to 64 items as one word of a mask.
#[inline(always)]
pub(crate) fn answer_word<T>(items: &[T], mut answer: impl FnMut(&T) -> bool) -> u64 {
    items.iter().enumerate().fold(0, |mask, (i, item)| mask | u64::from(answer(item)) << i)
}

/// Iterates over the indices of the set bits of consecutive words.
fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(i, mut word)| {
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                i * 64 + bit
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_and_zeros_share_all_indices() {
        let mut answers = Answers::new();
        answers.reset(130).copy_from_slice(&[1 | 1 << 63, 0, 0b10]);
        assert_eq!(answers.ones().collect::<Vec<_>>(), [0, 63, 129]);
        assert_eq!(answers.zeros().count(), 127);
        assert_eq!(answers.zeros().last(), Some(128));
        assert_eq!(answers.count_ones(), 3);
        assert!(answers.get(63) && !answers.get(64));
    }

    #[test]
    fn a_reset_forgets_earlier_answers() {
        let mut answers = Answers::new();
        answers.reset(64)[0] = u64::MAX;
        answers.reset(1);
        assert_eq!(answers.count_ones(), 0);
        assert_eq!(answers.len(), 1);
    }
}
