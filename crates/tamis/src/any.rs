//! A filter whose kind is known only at run time, for programs and files.

use std::fmt;

use crate::answers::Answers;
use crate::bits::{BitView, Bitmap, Bits, BitsMut, words_from};
use crate::bloom::{Bloom, Counting};
use crate::cuckoo::Cuckoo;
use crate::filter::{Clear, Filter, InsertError, Merge, MergeError, Removed, TryInsert};
use crate::growing::Growing;
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::{Plan, PlanError};
use crate::strategy::{Classic, Kind, Parquet, SplitBlock};
use crate::window::{Span, Window};

/// One of the concrete filters, over storage `B`. The kind is matched once a batch, not once an item.
///
/// # Examples
///
/// ```
/// use tamis::{AnyFilter, Hasher, Kind, Plan};
///
/// let mut seen = AnyFilter::new(&Plan::for_kind(Kind::Classic, 1_000, 0.01)?, Hasher::default())?;
/// seen.try_insert("tamis")?;
/// assert!(seen.contains("tamis"));
/// assert_eq!(seen.plan().kind(), Kind::Classic);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub enum AnyFilter<B = Bitmap> {
    /// The default.
    SplitBlock(Bloom<SplitBlock, B>),
    /// Parquet's geometry.
    Parquet(Bloom<Parquet, B>),
    /// Any number of bits and probes.
    Classic(Bloom<Classic, B>),
    /// Counters for bits: items can be deleted.
    Counting(Counting<B>),
    /// Fingerprints: items can be deleted, in few bits.
    Cuckoo(Cuckoo<B>),
    /// Any number of items.
    Growing(Growing<B>),
    /// Items are forgotten.
    Window(Window<B>),
}

/// Runs an expression on whichever concrete filter it is.
macro_rules! with_filter {
    ($any:expr, $filter:ident => $body:expr) => {
        match $any {
            AnyFilter::SplitBlock($filter) => $body,
            AnyFilter::Parquet($filter) => $body,
            AnyFilter::Classic($filter) => $body,
            AnyFilter::Counting($filter) => $body,
            AnyFilter::Cuckoo($filter) => $body,
            AnyFilter::Growing($filter) => $body,
            AnyFilter::Window($filter) => $body,
        }
    };
}

impl AnyFilter<Bitmap> {
    /// Makes an empty filter of the plan's kind. A window is one of as many items as were planned.
    ///
    /// # Errors
    ///
    /// [`PlanError::Memory`] if there is not enough of it.
    pub fn new(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
        Ok(match plan.kind() {
            Kind::SplitBlock => AnyFilter::SplitBlock(Bloom::new(plan, hasher)?),
            Kind::Parquet => AnyFilter::Parquet(Bloom::new(plan, hasher)?),
            Kind::Classic => AnyFilter::Classic(Bloom::new(plan, hasher)?),
            Kind::Counting => AnyFilter::Counting(Counting::new(plan, hasher)?),
            Kind::Cuckoo => AnyFilter::Cuckoo(Cuckoo::new(plan, hasher)?),
            Kind::Growing => AnyFilter::Growing(Growing::new(plan, hasher)?),
            Kind::Window => {
                AnyFilter::Window(Window::new(plan, hasher, Span::Items(plan.items()))?)
            }
        })
    }
}

impl<'a> AnyFilter<BitView<'a>> {
    /// Uses words that lie elsewhere, such as in a mapped file, without a copy.
    ///
    /// # Errors
    ///
    /// As for [`restore`](Self::restore).
    pub fn view(plan: &Plan, hasher: Hasher, words: &'a [u64]) -> Result<Self, PlanError> {
        Self::restore(plan, hasher, BitView::new(words))
    }
}

impl<B: Bits<Word = u64>> AnyFilter<B> {
    /// Makes a filter of the words that [`each_words`](Self::each_words) handed out.
    ///
    /// # Errors
    ///
    /// [`PlanError::Geometry`] if the plan has not as many bits; [`PlanError::Words`] if they are not those
    /// of such a filter.
    pub fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
        Ok(match plan.kind() {
            Kind::SplitBlock => AnyFilter::SplitBlock(Bloom::restore(plan, hasher, bits)?),
            Kind::Parquet => AnyFilter::Parquet(Bloom::restore(plan, hasher, bits)?),
            Kind::Classic => AnyFilter::Classic(Bloom::restore(plan, hasher, bits)?),
            Kind::Counting => AnyFilter::Counting(Counting::restore(plan, hasher, bits)?),
            Kind::Cuckoo => AnyFilter::Cuckoo(Cuckoo::restore(plan, hasher, bits)?),
            Kind::Growing => AnyFilter::Growing(Growing::restore(plan, hasher, bits)?),
            Kind::Window => AnyFilter::Window(Window::restore(plan, hasher, bits)?),
        })
    }

    /// Hands on all words of the filter, in order and in as many parts as it likes: all that its plan and
    /// its hasher do not say.
    ///
    /// # Errors
    ///
    /// Those of `each`.
    pub fn each_words<E>(&self, each: impl FnMut(&[u64]) -> Result<(), E>) -> Result<(), E> {
        self.each_words_from(0, each)
    }

    /// Hands on the words from the one numbered `start` on. Those before it cost nothing, except in a filter that
    /// has grown, where each page before it has its head looked at.
    ///
    /// # Errors
    ///
    /// Those of `each`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Plan};
    ///
    /// let filter = AnyFilter::new(&Plan::new(1_000, 0.01)?, Hasher::default())?;
    /// let mut words = 0;
    /// let Ok(()) = filter.each_words_from(100, |part| {
    ///     words += part.len() as u64;
    ///     Ok::<(), std::convert::Infallible>(())
    /// });
    /// assert_eq!(words, filter.len_words() - 100);
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    pub fn each_words_from<E>(
        &self,
        start: u64,
        mut each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            AnyFilter::SplitBlock(filter) => each(words_from(filter.bits().words(), start)),
            AnyFilter::Parquet(filter) => each(words_from(filter.bits().words(), start)),
            AnyFilter::Classic(filter) => each(words_from(filter.bits().words(), start)),
            AnyFilter::Counting(filter) => each(words_from(filter.bits().words(), start)),
            AnyFilter::Cuckoo(filter) => each(words_from(filter.bits().words(), start)),
            AnyFilter::Growing(filter) => filter.each_words(start, each),
            AnyFilter::Window(filter) => filter.each_words(start, each),
        }
    }

    /// Returns how many words [`each_words`](Self::each_words) hands on.
    pub fn len_words(&self) -> u64 {
        match self {
            AnyFilter::Growing(filter) => filter.len_words(),
            _ => self.plan().bits().div_ceil(64),
        }
    }

    /// Returns the memory behind the filter, in bytes, as [`allocation_bytes`](crate::allocation_bytes) counts it.
    /// Constant time.
    pub fn heap_bytes(&self) -> u64 {
        match self {
            AnyFilter::Growing(filter) => filter.heap_bytes(),
            filter => crate::bits::heap_bytes(filter.plan().bits()),
        }
    }

    /// Borrows the filter as one whose storage is elsewhere; `None` of a growing one that has grown, since it is
    /// no longer in one run of words then. Constant time.
    pub fn as_view(&self) -> Option<AnyFilter<BitView<'_>>> {
        Some(match self {
            AnyFilter::SplitBlock(filter) => AnyFilter::SplitBlock(filter.as_view()),
            AnyFilter::Parquet(filter) => AnyFilter::Parquet(filter.as_view()),
            AnyFilter::Classic(filter) => AnyFilter::Classic(filter.as_view()),
            AnyFilter::Counting(filter) => AnyFilter::Counting(filter.as_view()),
            AnyFilter::Cuckoo(filter) => AnyFilter::Cuckoo(filter.as_view()),
            AnyFilter::Growing(filter) => AnyFilter::Growing(filter.as_view()?),
            AnyFilter::Window(filter) => AnyFilter::Window(filter.as_view()),
        })
    }

    /// Copies the first `max_bytes` of the filter as one of their own, which holds its share of the items: see
    /// [`Plan::part`]. Its estimates say of a large filter, in little time, what reading all bits would.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    ///
    /// let plan = Plan::for_kind(Kind::SplitBlock, 1_000_000, 0.01)?;
    /// let mut seen = AnyFilter::new(&plan, Hasher::default())?;
    /// (0..500_000_u64).for_each(|item| _ = seen.try_insert(&item));
    /// let part = seen.sample(64 << 10).expect("it is larger");
    /// let share = part.plan().bits() as f64 / plan.bits() as f64;
    /// let items = part.estimate_items() / share;
    /// assert!((490_000.0..510_000.0).contains(&items));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn sample(&self, max_bytes: u64) -> Option<AnyFilter> {
        let plan = self.plan().part(max_bytes)?;
        let mut bits = Bitmap::zeroed(plan.bits()).ok()?;
        let mut rest = bits.words_mut();
        _ = self.each_words(|words| {
            let len = words.len().min(rest.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(len);
            now.copy_from_slice(&words[..len]);
            rest = later;
            if rest.is_empty() { Err(()) } else { Ok(()) }
        });
        AnyFilter::restore(&plan, self.hasher(), bits).ok()
    }

    /// Tells the filter what time it is, if it is one that forgets: see [`Window::advance`].
    pub fn advance(&mut self, now_millis: u64) {
        if let AnyFilter::Window(filter) = self {
            filter.advance(now_millis);
        }
    }

    /// Returns how often an item with this hash is in, at most, as [`Count::count_hash`](crate::Count::count_hash) does; `None` if
    /// this kind does not count.
    pub fn count_hash(&self, hash: u64) -> Option<u64> {
        match self {
            AnyFilter::Counting(filter) => Some(filter.count_hash(hash)),
            AnyFilter::Cuckoo(filter) => Some(filter.count_hash(hash)),
            _ => None,
        }
    }

    /// Returns the number at which counting ends, as [`Count::max_count`](crate::Count::max_count) does; `None` if this kind does not
    /// count.
    pub fn max_count(&self) -> Option<u64> {
        match self {
            AnyFilter::Counting(filter) => Some(filter.max_count()),
            AnyFilter::Cuckoo(filter) => Some(filter.max_count()),
            _ => None,
        }
    }
}

impl<B: BitsMut> AnyFilter<B> {
    /// Deletes an item by its hash, as [`Remove::remove_hash`](crate::Remove::remove_hash) does; `None` if this kind cannot.
    pub fn remove_hash(&mut self, hash: u64) -> Option<Removed> {
        match self {
            AnyFilter::Counting(filter) => Some(filter.remove_hash(hash)),
            AnyFilter::Cuckoo(filter) => Some(filter.remove_hash(hash)),
            _ => None,
        }
    }
}

/// A filter of a known kind as one of any kind, such as to write it to a file.
macro_rules! from_filters {
    ($($kind:ident: $filter:ty;)*) => { $(
        impl<B> From<$filter> for AnyFilter<B> {
            fn from(filter: $filter) -> Self {
                AnyFilter::$kind(filter)
            }
        }
    )* };
}

from_filters! {
    SplitBlock: Bloom<SplitBlock, B>;
    Parquet: Bloom<Parquet, B>;
    Classic: Bloom<Classic, B>;
    Counting: Counting<B>;
    Cuckoo: Cuckoo<B>;
    Growing: Growing<B>;
    Window: Window<B>;
}

impl<B: Bits<Word = u64>> fmt::Debug for AnyFilter<B> {
    /// Shows the filter as its own type does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_filter!(self, filter => filter.fmt(f))
    }
}

impl<B: Bits<Word = u64> + PartialEq> PartialEq for AnyFilter<B> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (AnyFilter::SplitBlock(one), AnyFilter::SplitBlock(two)) => one == two,
            (AnyFilter::Parquet(one), AnyFilter::Parquet(two)) => one == two,
            (AnyFilter::Classic(one), AnyFilter::Classic(two)) => one == two,
            (AnyFilter::Counting(one), AnyFilter::Counting(two)) => one == two,
            (AnyFilter::Cuckoo(one), AnyFilter::Cuckoo(two)) => one == two,
            (AnyFilter::Growing(one), AnyFilter::Growing(two)) => one == two,
            (AnyFilter::Window(one), AnyFilter::Window(two)) => one == two,
            _ => false,
        }
    }
}

impl<B: Bits<Word = u64>> Filter for AnyFilter<B> {
    fn plan(&self) -> &Plan {
        with_filter!(self, filter => filter.plan())
    }

    fn hasher(&self) -> Hasher {
        with_filter!(self, filter => filter.hasher())
    }

    fn contains_hash(&self, hash: u64) -> bool {
        with_filter!(self, filter => filter.contains_hash(hash))
    }

    fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
        with_filter!(self, filter => filter.contains_hashes(hashes, answers));
    }

    fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        with_filter!(self, filter => filter.contains_each(items, answers));
    }

    fn is_empty(&self) -> bool {
        with_filter!(self, filter => filter.is_empty())
    }

    fn estimate_items(&self) -> f64 {
        with_filter!(self, filter => filter.estimate_items())
    }

    fn estimate_rate(&self) -> f64 {
        with_filter!(self, filter => filter.estimate_rate())
    }

    fn fill(&self) -> f64 {
        with_filter!(self, filter => filter.fill())
    }
}

impl<B: BitsMut> TryInsert for AnyFilter<B> {
    fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        with_filter!(self, filter => filter.try_insert_hash(hash))
    }

    fn try_insert_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        with_filter!(self, filter => filter.try_insert_hashes(hashes, answers))
    }

    fn try_insert_each<I: Item>(
        &mut self,
        items: &[I],
        answers: &mut Answers,
    ) -> Result<(), InsertError> {
        with_filter!(self, filter => filter.try_insert_each(items, answers))
    }
}

impl<B: BitsMut> Clear for AnyFilter<B> {
    fn clear(&mut self) {
        with_filter!(self, filter => filter.clear());
    }
}

impl<B: BitsMut, C: Bits<Word = u64>> Merge<AnyFilter<C>> for AnyFilter<B> {
    fn merge(&mut self, other: &AnyFilter<C>) -> Result<(), MergeError> {
        match (&mut *self, other) {
            (AnyFilter::SplitBlock(one), AnyFilter::SplitBlock(two)) => one.merge(two),
            (AnyFilter::Parquet(one), AnyFilter::Parquet(two)) => one.merge(two),
            (AnyFilter::Classic(one), AnyFilter::Classic(two)) => one.merge(two),
            (AnyFilter::Counting(one), AnyFilter::Counting(two)) => one.merge(two),
            (AnyFilter::Cuckoo(one), AnyFilter::Cuckoo(two)) => one.merge(two),
            (AnyFilter::Growing(one), AnyFilter::Growing(two)) => one.merge(two),
            (AnyFilter::Window(one), AnyFilter::Window(two)) => one.merge(two),
            _ => Err(MergeError::Layout { expected: self.layout(), found: other.layout() }),
        }
    }
}
