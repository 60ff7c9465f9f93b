//! Merges scalable filters.
//!
//! A merge joins reserved parts of one layout bit by bit, and overflow parts prefix by prefix. A merge loses no item.
//! The rate of the merged filter is at most the sum of the rates of both filters. After a merge, the reserved part may
//! contain more items than planned, and [`is_over_rate`](ScalableBloom::is_over_rate) reports this state. An item in
//! the reserved part of one filter and in the overflow part of another filter is counted twice. A merge cannot compute
//! the bits of an item from the prefix of the item in an overflow part.

use std::sync::atomic::Ordering;

use tamis::{AnyFilter, Growing, MergeError, NoRoom, PlanError};
use tamis_formats::TamisFile;

use crate::value::scalable_bloom::{Reserved, ScalableBloom};

impl ScalableBloom {
    /// Tests whether both filters were created with the same parameters. A merge requires the same
    /// parameters.
    #[must_use]
    pub fn is_made_as(&self, other: &Self) -> bool {
        let made = |it: &Self| (it.rate, it.expansion.is_some(), it.hasher(), it.layouts().0);
        made(self) == made(other)
    }

    /// Inserts all items of other filters with the [same parameters](Self::is_made_as). After an
    /// error, the filter is unchanged.
    ///
    /// # Errors
    ///
    /// [`MergeError::NoRoom`] if the merged overflow parts do not fit.
    ///
    /// # Panics
    ///
    /// Panics if one of the other filters has different parameters than this filter.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{Answers, MergeError};
    /// use tamis_commands::ScalableBloom;
    ///
    /// let mut answers = Answers::new();
    /// let mut seen = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
    /// let mut others = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
    /// others.insert_each(&[b"a".as_slice()], &mut answers).unwrap();
    /// seen.merge(&[&others])?;
    /// seen.contains_each(&[b"a".as_slice()], &mut answers);
    /// assert_eq!(answers.count_ones(), 1);
    /// # Ok::<(), MergeError>(())
    /// ```
    pub fn merge(&mut self, others: &[&Self]) -> Result<(), MergeError> {
        assert!(others.iter().all(|other| self.is_made_as(other)), "they were compared");
        // The steps that can fail come before the first change.
        if let Some(reserved) = &mut self.reserved
            && others.iter().filter_map(|it| it.reserved.as_ref()).any(Reserved::has_bits)
        {
            reserved.make_bits().map_err(no_memory)?;
        }
        self.merge_overflows(others)?;
        if let Some(reserved) = &mut self.reserved {
            for other in others.iter().filter_map(|other| other.reserved.as_ref()) {
                if other.has_bits() {
                    reserved.join(other);
                }
            }
        }
        Ok(())
    }

    fn merge_overflows(&mut self, others: &[&Self]) -> Result<(), MergeError> {
        let overflows: Vec<_> = others.iter().filter_map(|it| it.overflow.as_deref()).collect();
        let hasher = self.hasher();
        match (&mut self.overflow, overflows.as_slice()) {
            (_, []) => Ok(()),
            // A failed merge changes nothing.
            (Some(own), [other]) => own.filter.merge(&other.filter),
            (own, overflows) => {
                let made = Growing::from_plan(overflows[0].filter.plan(), hasher);
                let made = AnyFilter::Growing(made.map_err(no_memory)?);
                let mut merged = Box::new(TamisFile::new(made));
                for file in own.as_deref().into_iter().chain(overflows.iter().copied()) {
                    merged.filter.merge(&file.filter)?;
                }
                *own = Some(merged);
                Ok(())
            }
        }
    }

    /// Tests whether the filter contains more items than the planned rate allows. Ignores an excess
    /// within statistical noise. Inserts without a merge never exceed the planned rate. Reads no
    /// bits.
    pub(crate) fn is_over_rate(&self) -> bool {
        let limit = self.reserved_plan().map(|plan| plan.rate_limit());
        let is_part_over =
            self.expected().0.zip(limit).is_some_and(|(part, limit)| part.rate > limit)
                || self.overflow.as_ref().is_some_and(|file| file.filter.is_over_rate());
        is_part_over && self.expected_rate() > self.rate
    }
}

fn no_memory(error: PlanError) -> MergeError {
    match error {
        PlanError::Memory(memory) => MergeError::NoRoom(NoRoom::Memory(memory)),
        error => unreachable!("there is a filter of this plan: {error}"),
    }
}

impl Reserved {
    /// Sets the bits of another filter with the same layout. No thread may insert during the call.
    fn join(&self, other: &Self) {
        for (word, other) in self.words().iter().zip(other.words()) {
            // The merging thread has exclusive access to both filters, so relaxed ordering and a separate load and
            // store are sufficient.
            word.store(
                word.load(Ordering::Relaxed) | other.load(Ordering::Relaxed),
                Ordering::Relaxed,
            );
        }
        // The number of items that both filters contain can only be estimated from the bits.
        let (one, two) = (self.items.load(Ordering::Relaxed), other.items.load(Ordering::Relaxed));
        let items = (self.estimate_items() as u64).clamp(one.max(two), one.saturating_add(two));
        self.items.store(items, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Answers, Hasher};

    use super::*;

    fn filled(mut filter: ScalableBloom, items: std::ops::Range<u32>) -> ScalableBloom {
        for item in items {
            filter.insert_each(&[item.to_le_bytes().as_slice()], &mut Answers::new()).unwrap();
        }
        filter
    }

    fn has_all(filter: &ScalableBloom, items: std::ops::Range<u32>) -> bool {
        let items: Vec<_> = items.map(u32::to_le_bytes).collect();
        let items: Vec<&[u8]> = items.iter().map(<[u8; 4]>::as_slice).collect();
        let mut answers = Answers::new();
        filter.contains_each(&items, &mut answers);
        answers.count_ones() == items.len()
    }

    #[test]
    fn a_merged_filter_contains_the_items_of_all_sources() {
        let made: [fn() -> ScalableBloom; 4] = [
            || ScalableBloom::reserve(1000, 0.01, Some(2)).unwrap(),
            || ScalableBloom::reserve(5000, 0.000_01, None).unwrap(),
            || ScalableBloom::reserve(300, 0.01, Some(4)).unwrap(),
            || ScalableBloom::growing(100, 0.01, 2, Hasher::default()).unwrap(),
        ];
        for made in made {
            for split in [0, 100, 500, 900, 2000] {
                let mut one = filled(made(), 0..split);
                let others = [filled(made(), split..2000), filled(made(), 1900..2300)];
                for others in [vec![], vec![&others[0]], vec![&others[0], &others[1]]] {
                    one.merge(&others).unwrap();
                }
                assert!(has_all(&one, 0..2300), "{one:?}");
                let share = one.items() as f64 / 2300.0;
                assert!((0.97..1.2).contains(&share), "{share}");
                // The merged filter accepts items that the filter already contains. If the merged filter can grow, it
                // also accepts new items.
                if one.expansion().is_some() {
                    assert!(has_all(&filled(one, 2000..4000), 0..4000));
                }
            }
        }
    }

    #[test]
    fn items_of_both_filters_are_counted_about_once() {
        let made = || ScalableBloom::reserve(10_000, 0.01, None).unwrap();
        let mut one = filled(made(), 0..9000);
        one.merge(&[&filled(made(), 0..9000)]).unwrap();
        assert!((8900..9300).contains(&one.items()), "{}", one.items());
        assert!(!one.is_over_rate());
    }

    #[test]
    fn a_merge_of_too_many_items_is_over_the_rate() {
        for expansion in [None, Some(2)] {
            let made = || ScalableBloom::reserve(10_000, 0.01, expansion).unwrap();
            let mut one = filled(made(), 0..10_000);
            assert!(!one.is_over_rate());
            one.merge(&[&filled(made(), 10_000..20_000)]).unwrap();
            assert!(one.is_over_rate() && one.estimate_rate() > 0.01);
        }
    }

    /// Creates a filter with a plan of one block of 512 bits. Only an edited image or an image of another version
    /// contains a plan of one block.
    fn with_another_plan(capacity: u64) -> ScalableBloom {
        let mut filter = ScalableBloom::reserve(capacity, 0.01, Some(2)).unwrap();
        let plan = tamis::Plan::for_kind(tamis::Kind::SplitBlock, 1, 0.01).unwrap();
        filter.reserved = Some(Reserved::new(&plan, filter.hasher()).unwrap());
        filter
    }

    #[test]
    fn the_capacity_is_computed_at_once_for_any_image() {
        for (capacity, expansion) in [(0, 2), (0, 1), (1, 0), (u64::MAX, 2)] {
            let mut filter = ScalableBloom::reserve(10, 0.01, Some(expansion)).unwrap();
            filter.capacity = capacity;
            filter.reserved.as_ref().unwrap().items.store(u64::MAX, Ordering::Relaxed);
            assert_eq!((filter.capacity(), filter.items()), (u64::MAX, u64::MAX), "{capacity}");
        }
        let filter = filled(ScalableBloom::reserve(10, 0.01, Some(1)).unwrap(), 0..1000);
        assert!((990..=1000).contains(&filter.capacity()), "{}", filter.capacity());
    }

    #[test]
    fn a_filter_with_another_plan_merges_into_its_emptied_copy() {
        let other = filled(with_another_plan(1000), 0..200);
        let mut made = other.emptied().unwrap();
        assert!(made.is_made_as(&other) && made.items() == 0);
        made.merge(&[&other]).unwrap();
        assert!(has_all(&made, 0..200));
    }

    #[test]
    fn different_plans_are_distinguished() {
        let made = |items, rate, growth| ScalableBloom::reserve(items, rate, growth).unwrap();
        let one = made(1000, 0.01, Some(2));
        assert!(one.is_made_as(&filled(made(1000, 0.01, Some(4)), 0..2000)));
        for other in [
            made(2000, 0.01, Some(2)),
            made(1000, 0.02, Some(2)),
            made(1000, 0.01, None),
            ScalableBloom::growing(1000, 0.01, 2, Hasher::default()).unwrap(),
            ScalableBloom::reserve_by(1000, 0.01, Some(2), Hasher::keyed([1, 2])).unwrap(),
        ] {
            assert!(!one.is_made_as(&other) && !other.is_made_as(&one), "{other:?}");
        }
    }
}
