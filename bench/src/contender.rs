//! The contenders behind one trait: Tamis and the rivals. Each contender is used as its
//! documentation recommends.

use std::borrow::Borrow as _;

use foldhash::fast::FixedState;
use tamis::{Answers, Bits as _, BloomFilter, Hasher, Kind, Plan, Strategy};

use crate::items::Source;

/// A set that is filled and queried in a loop. The compiler sees the whole loop.
pub trait Contender<S: Source>: Sized {
    /// The name in the tables.
    const NAME: &'static str;

    /// True if the set never reports an absent item as present.
    const EXACT: bool = false;

    /// True if the set accepts no planned size. Only a filled set then shows its memory.
    const GROWS: bool = Self::EXACT;

    /// Creates an empty set for `items` items at `rate`.
    fn empty(items: u64, rate: f64) -> Self;

    /// Inserts one item.
    fn add(&mut self, item: S::Item<'_>);

    /// Looks up one item.
    fn has(&self, item: S::Item<'_>) -> bool;

    /// Returns the memory in bits.
    fn memory_bits(&self) -> u64;

    /// Inserts many items, in a batch if the set supports batches.
    fn add_each(&mut self, items: &[S::Item<'_>]) {
        for &item in items {
            self.add(item);
        }
    }

    /// Counts the items that the set reports as present, in a batch if the set supports batches.
    fn count_each(&self, items: &[S::Item<'_>], _: &mut Answers) -> u64 {
        items.iter().map(|&item| u64::from(self.has(item))).sum()
    }
}

impl<S: Source, T: Strategy> Contender<S> for BloomFilter<T> {
    const NAME: &'static str = match T::KIND {
        Kind::SplitBlock => "tamis",
        Kind::Parquet => "tamis parquet",
        _ => "tamis classic",
    };

    fn empty(items: u64, rate: f64) -> Self {
        let plan = Plan::for_kind(T::KIND, items, rate).expect("a sound plan");
        BloomFilter::from_plan(&plan, Hasher::default()).expect("memory for the filter")
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        self.insert(&item);
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.contains(&item)
    }

    fn memory_bits(&self) -> u64 {
        self.bits().len_bits()
    }

    fn add_each(&mut self, items: &[S::Item<'_>]) {
        self.insert_all(items);
    }

    fn count_each(&self, items: &[S::Item<'_>], answers: &mut Answers) -> u64 {
        self.contains_each(items, answers);
        answers.count_ones() as u64
    }
}

/// `sbbf-rs-safe`: the filter of Parquet with vector instructions. This crate accepts only hashes,
/// so rapidhash computes the hashes.
pub struct Sbbf(sbbf_rs_safe::Filter);

impl<S: Source> Contender<S> for Sbbf {
    const NAME: &'static str = "sbbf-rs";

    fn empty(items: u64, rate: f64) -> Self {
        // The filter accepts only a whole number of bits per item. This is the smallest number that
        // keeps the rate.
        let plan = Plan::for_kind(Kind::Parquet, items, rate).expect("a sound plan");
        Self(sbbf_rs_safe::Filter::new(plan.bits_per_item().ceil() as usize, items as usize))
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        self.0.insert_hash(S::rapidhash(item.borrow()));
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.0.contains_hash(S::rapidhash(item.borrow()))
    }

    fn memory_bits(&self) -> u64 {
        self.0.as_bytes().len() as u64 * 8
    }
}

/// `fastbloom` with foldhash, which its documentation recommends for speed.
pub struct Fastbloom(fastbloom::BloomFilter<FixedState>);

impl<S: Source> Contender<S> for Fastbloom {
    const NAME: &'static str = "fastbloom";

    fn empty(items: u64, rate: f64) -> Self {
        let builder = fastbloom::BloomFilter::with_false_pos(rate);
        Self(builder.hasher(FixedState::with_seed(1)).expected_items(items as usize))
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        self.0.insert(item.borrow());
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.0.contains(item.borrow())
    }

    fn memory_bits(&self) -> u64 {
        self.0.num_bits() as u64
    }
}

/// `bloomfilter`, the rival with the most downloads.
pub struct Bloomfilter<S: Source>(bloomfilter::Bloom<S::Key>);

impl<S: Source> Contender<S> for Bloomfilter<S> {
    const NAME: &'static str = "bloomfilter";

    fn empty(items: u64, rate: f64) -> Self {
        // The two keys differ, because the double hashing of this crate requires different keys.
        let seed = std::array::from_fn(|i| i as u8);
        let filter = bloomfilter::Bloom::new_for_fp_rate_with_seed(items as usize, rate, &seed);
        Self(filter.expect("a sound plan"))
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        self.0.set(item.borrow());
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.0.check(item.borrow())
    }

    fn memory_bits(&self) -> u64 {
        self.0.len()
    }
}

/// `hashbrown` with foldhash: the exact set that a program would use without a filter.
pub struct Hashbrown<S: Source> {
    set: hashbrown::HashSet<<S::Key as ToOwned>::Owned, FixedState>,
    key_bytes: u64,
}

impl<S: Source> Contender<S> for Hashbrown<S> {
    const NAME: &'static str = "hashbrown";
    const EXACT: bool = true;

    fn empty(_: u64, _: f64) -> Self {
        // The set is created without a capacity. A program seldom knows the size of a set, so the
        // measurement includes the cost of doubling.
        Self { set: hashbrown::HashSet::with_hasher(FixedState::with_seed(1)), key_bytes: 0 }
    }

    #[inline(always)]
    fn add(&mut self, item: S::Item<'_>) {
        let key: &S::Key = item.borrow();
        // A byte string is stored outside of the table, and an integer is stored inside the table.
        if size_of::<<S::Key as ToOwned>::Owned>() > 8 {
            self.key_bytes += size_of_val(key) as u64;
        }
        self.set.insert(key.to_owned());
    }

    #[inline(always)]
    fn has(&self, item: S::Item<'_>) -> bool {
        self.set.contains(item.borrow())
    }

    fn memory_bits(&self) -> u64 {
        (self.set.allocation_size() as u64 + self.key_bytes) * 8
    }
}
