//! Bloom filters as sets: filters collected from items, and unions by operators.

use std::ops::{BitOr, BitOrAssign};

use crate::batch::extend::extend;
use crate::bits::{AtomicBitmap, Bitmap, Bits, BitsMut};
use crate::filter::Merge;
use crate::filter::bloom::filter::BloomFilter;
use crate::item::Item;
use crate::plan::PlanError;
use crate::strategy::Strategy;

impl<S: Strategy> BloomFilter<S> {
    /// Creates a filter from a known number of items. `rate` is the false positive rate of the
    /// filter, a probability.
    ///
    /// `items` must be an `ExactSizeIterator`: an array, a `Vec` or a `HashSet`, but not `0..n` of
    /// `u64` or `lines()`. For other iterators, use [`for_items`](Self::for_items) and `extend`.
    /// `BloomFilter` does not implement `FromIterator`, because a filter needs its rate and its size
    /// before the first item.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`for_items`](Self::for_items).
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::Bloom;
    ///
    /// let seen = Bloom::from_items(["a", "b"], 0.001)?;
    /// assert!(seen.contains("a") && seen.contains("b") && !seen.contains("c"));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn from_items<T>(items: T, rate: f64) -> Result<Self, PlanError>
    where
        T: IntoIterator<Item: Item, IntoIter: ExactSizeIterator>,
    {
        let items = items.into_iter();
        let mut made = Self::for_items(items.len() as u64, rate)?;
        made.extend(items);
        Ok(made)
    }
}

impl<I: Item, S: Strategy, B: BitsMut> Extend<I> for BloomFilter<S, B> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        extend(self, items);
    }
}

impl<I: Item, S: Strategy> Extend<I> for BloomFilter<S, AtomicBitmap> {
    /// Inserts every item, in batches.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        extend(&mut &*self, items);
    }
}

impl<I: Item, S: Strategy> Extend<I> for &BloomFilter<S, AtomicBitmap> {
    /// Inserts every item, in batches, while other threads may also insert.
    fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
        extend(self, items);
    }
}

impl<S: Strategy, B: BitsMut, C: Bits> BitOrAssign<&BloomFilter<S, C>> for BloomFilter<S, B> {
    /// Merges the items of the other filter into `self`, as [`merge`](BloomFilter::merge) does.
    ///
    /// # Panics
    ///
    /// Panics if the [layouts](BloomFilter::layout) differ. [`merge`](BloomFilter::merge) returns an error
    /// instead of a panic.
    fn bitor_assign(&mut self, other: &BloomFilter<S, C>) {
        if let Err(error) = Merge::merge(self, other) {
            panic!("{error}");
        }
    }
}

impl<S: Strategy, C: Bits> BitOr<&BloomFilter<S, C>> for &BloomFilter<S, Bitmap> {
    type Output = BloomFilter<S, Bitmap>;

    /// Returns a new filter that holds the items of both filters.
    ///
    /// # Panics
    ///
    /// Panics if the [layouts](BloomFilter::layout) differ, or there is no memory for a copy. To get an
    /// error instead of a panic, clone one filter and call [`merge`](BloomFilter::merge).
    fn bitor(self, other: &BloomFilter<S, C>) -> BloomFilter<S, Bitmap> {
        let mut both = self.clone();
        both |= other;
        both
    }
}

#[cfg(test)]
mod tests {
    use crate::filter::bloom::{Bloom, SharedBloom};

    #[test]
    fn the_union_of_two_filters_holds_the_items_of_both() {
        let left = Bloom::from_items((0..1_000_u64).collect::<Vec<_>>(), 0.01).unwrap();
        let mut right = Bloom::for_items(1_000, 0.01).unwrap();
        right.extend(["right", "left"]);
        let both = &left | &right;
        assert!((0..1_000_u64).all(|item| both.contains(&item)) && both.contains("right"));
        let mut assigned = left.clone();
        assigned |= &right.as_view();
        assert_eq!(assigned, both);
        assert_eq!(&left | &left, left);
    }

    #[test]
    #[should_panic(expected = "filters of different layout do not merge")]
    fn the_union_of_filters_of_different_layout_panics() {
        let (one, two) = (Bloom::for_items(1_000, 0.01), Bloom::for_items(2_000, 0.01));
        let _ = &one.unwrap() | &two.unwrap();
    }

    #[test]
    fn an_iterator_of_any_length_loses_no_item() {
        for len in [0, 1, 63, 64, 65, 1023, 1024, 1025, 5000] {
            let mut seen = Bloom::for_items(5000, 0.001).unwrap();
            seen.extend(0..len as u64);
            assert!((0..len as u64).all(|item| seen.contains(&item)), "{len}");
            let mut unknown = Bloom::for_items(5000, 0.001).unwrap();
            unknown.extend((0..len as u64).filter(|_| true).flat_map(|item| [item]));
            assert_eq!(unknown, seen, "{len} items from an iterator of unknown length");
            let mut shared = SharedBloom::for_items(5000, 0.001).unwrap();
            (&shared).extend(0..len as u64 / 2);
            shared.extend(len as u64 / 2..len as u64);
            assert_eq!(shared.into_owned(), seen, "{len}, shared");
        }
    }
}
