//! A filter whose kind is known only at run time.

use std::fmt;

use crate::batch::answers::Answers;
use crate::bits::{AtomicBitmap, BitView, Bitmap, Bits, BitsMut};
use crate::filter::FilterWords;
use crate::filter::bloom::{BloomFilter, Counting};
use crate::filter::cuckoo::Cuckoo;
use crate::filter::growing::Growing;
use crate::filter::variant::Variant;
use crate::filter::window::Window;
use crate::filter::{Clear, Filter, InsertError, Merge, MergeError, Removed, TryInsert};
use crate::hash::Hasher;
use crate::item::Item;
use crate::plan::kind_table::kinds;
use crate::plan::{Kind, Plan, PlanError};
use crate::strategy::{Classic, Parquet, SplitBlock, Strategy};

macro_rules! define_any_filter {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $filter:ty, $create:path, $sizing:path, $row:tt;)*) => {
        /// A filter of any kind, over storage `B`. A call with a batch matches on the kind once,
        /// not once for each item.
        ///
        /// # Examples
        ///
        /// ```
        /// use tamis::{AnyFilter, Hasher, Kind, Plan};
        ///
        /// let mut seen = AnyFilter::from_plan(&Plan::for_kind(Kind::Classic, 1_000, 0.01)?, Hasher::default())?;
        /// seen.try_insert("tamis")?;
        /// assert!(seen.contains("tamis"));
        /// assert_eq!(seen.plan().kind(), Kind::Classic);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone)]
        #[non_exhaustive]
        pub enum AnyFilter<B = Bitmap> {
            $($(#[$doc])* $kind($filter),)*
        }

        impl AnyFilter<Bitmap> {
            /// Creates an empty filter that keeps `rate` until the filter holds `items` distinct
            /// items. [`Plan::new`] chooses the kind.
            ///
            /// # Errors
            ///
            /// Returns the errors of [`Plan::new`], and [`PlanError::Memory`] if there is not enough
            /// memory.
            pub fn for_items(items: impl TryInto<u64>, rate: f64) -> Result<Self, PlanError> {
                Self::from_plan(&Plan::new(items, rate)?, Hasher::default())
            }

            /// Creates an empty filter of the plan's kind. A window filter remembers the planned
            /// number of items.
            ///
            /// # Errors
            ///
            /// [`PlanError::Memory`] if there is not enough memory.
            pub fn from_plan(plan: &Plan, hasher: Hasher) -> Result<Self, PlanError> {
                Ok(match plan.kind() {
                    $(Kind::$kind => AnyFilter::$kind($create(plan, hasher)?),)*
                })
            }
        }

        impl<B: Bits<Word = u64>> AnyFilter<B> {
            /// Creates a filter from the words that
            /// [`each_words_from`](FilterWords::each_words_from) passes to its callback.
            ///
            /// # Errors
            ///
            /// [`PlanError::Geometry`] if `bits` has another number of bits than the plan;
            /// [`PlanError::Words`] if no filter of the plan's kind can have the words of `bits`.
            pub fn restore(plan: &Plan, hasher: Hasher, bits: B) -> Result<Self, PlanError> {
                Ok(match plan.kind() {
                    $(Kind::$kind => AnyFilter::$kind(<$filter>::restore(plan, hasher, bits)?),)*
                })
            }

            /// Borrows the filter. Returns `None` for a growing filter that has grown, because its
            /// words are no longer contiguous. Takes constant time.
            pub fn as_view(&self) -> Option<AnyFilter<BitView<'_>>> {
                Some(match self {
                    $(AnyFilter::$kind(filter) => AnyFilter::$kind(Variant::<B>::view(filter)?),)*
                })
            }
        }

        $(impl<B: Bits<Word = u64>> TryFrom<AnyFilter<B>> for $filter {
            type Error = PlanError;

            /// Returns the filter if its kind is the kind of the type. Returns
            /// [`PlanError::OtherKind`] otherwise.
            fn try_from(filter: AnyFilter<B>) -> Result<Self, PlanError> {
                match filter {
                    AnyFilter::$kind(filter) => Ok(filter),
                    other => Err(other.plan().other_kind(Kind::$kind)),
                }
            }
        })*

        $(impl<B> From<$filter> for AnyFilter<B> {
            /// Wraps a filter of a known kind, for example to write the filter to a file.
            fn from(filter: $filter) -> Self {
                AnyFilter::$kind(filter)
            }
        })*

        /// Runs an expression on the concrete filter.
        macro_rules! with_filter {
            ($any:expr, $concrete:ident => $body:expr) => {
                match $any {
                    $(AnyFilter::$kind($concrete) => $body,)*
                }
            };
        }

        /// Runs an expression on two concrete filters of the same kind. Runs the expression
        /// `$differ` if the kinds of the two filters differ.
        macro_rules! with_filters {
            ($any:expr, $other:expr, ($one:ident, $two:ident) => $body:expr, else $differ:expr) => {
                match ($any, $other) {
                    $((AnyFilter::$kind($one), AnyFilter::$kind($two)) => $body,)*
                    _ => $differ,
                }
            };
        }
    };
}
kinds!(define_any_filter);

impl<B: Bits<Word = u64>> AnyFilter<B> {
    /// Returns the heap memory of the filter, in bytes, as
    /// [`allocation_bytes`](crate::allocation_bytes) counts it. Takes constant time.
    pub fn heap_bytes(&self) -> u64 {
        with_filter!(self, filter => Variant::<B>::heap_bytes(filter))
    }

    /// Copies the first `max_bytes` of the filter into a new filter: see [`Plan::part`]. The copy
    /// holds a proportional part of the items. Estimates from the copy are close to the estimates
    /// from the whole filter, and take less time than estimates from the whole filter. Returns
    /// `None` if the filter is not larger than `max_bytes`, or if [`Plan::part`] returns `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    ///
    /// let plan = Plan::for_kind(Kind::SplitBlock, 1_000_000, 0.01)?;
    /// let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// (0..500_000_u64).for_each(|item| _ = seen.try_insert(&item));
    /// let part = seen.sample(64 << 10).expect("the filter is larger");
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
        _ = self.each_words_from(0, |words| {
            let len = words.len().min(rest.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(len);
            now.copy_from_slice(&words[..len]);
            rest = later;
            if rest.is_empty() { Err(()) } else { Ok(()) }
        });
        AnyFilter::restore(&plan, self.hasher(), bits).ok()
    }

    /// Sets the current time of a filter that forgets items: see [`Window::advance`]. Filters that
    /// do not forget items ignore the time.
    pub fn advance(&mut self, now_millis: u64) {
        with_filter!(self, filter => Variant::<B>::advance(filter, now_millis));
    }

    /// Returns an upper bound of the number of times that an item with this hash was inserted, as
    /// [`Count::count_hash`](crate::Count::count_hash) does. Returns `None` if the kind of the
    /// filter does not count items.
    pub fn count_hash(&self, hash: u64) -> Option<u64> {
        with_filter!(self, filter => Variant::<B>::count_hash(filter, hash))
    }

    /// Returns the highest count, as [`Count::max_count`](crate::Count::max_count) does. Returns
    /// `None` if the kind of the filter does not count items.
    pub fn max_count(&self) -> Option<u64> {
        with_filter!(self, filter => Variant::<B>::max_count(filter))
    }
}

impl<B: BitsMut> AnyFilter<B> {
    /// Removes an item by its hash, as [`Remove::remove_hash`](crate::Remove::remove_hash) does.
    /// Returns `None` if the kind of the filter does not support removal.
    pub fn remove_hash(&mut self, hash: u64) -> Option<Removed> {
        with_filter!(self, filter => Variant::<B>::remove_hash(filter, hash))
    }
}

#[cfg(not(loom))]
impl<S: Strategy> TryFrom<AnyFilter> for BloomFilter<S, AtomicBitmap>
where
    BloomFilter<S>: TryFrom<AnyFilter, Error = PlanError>,
{
    type Error = PlanError;

    /// Returns the filter, shared, if its kind is the kind of the type. Copies no bits. Returns
    /// [`PlanError::OtherKind`] otherwise.
    fn try_from(filter: AnyFilter) -> Result<Self, PlanError> {
        BloomFilter::<S>::try_from(filter).map(BloomFilter::into_shared)
    }
}

impl<B: Bits<Word = u64>> FilterWords for AnyFilter<B> {
    fn each_words_from<E>(
        &self,
        start: u64,
        each: impl FnMut(&[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        with_filter!(self, filter => filter.each_words_from(start, each))
    }

    fn len_words(&self) -> u64 {
        with_filter!(self, filter => filter.len_words())
    }
}

impl<B: Bits<Word = u64>> fmt::Debug for AnyFilter<B> {
    /// Formats the filter as its concrete type does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_filter!(self, filter => filter.fmt(f))
    }
}

impl<B: Bits<Word = u64> + PartialEq> PartialEq for AnyFilter<B> {
    fn eq(&self, other: &Self) -> bool {
        with_filters!(self, other, (one, two) => one == two, else false)
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

    #[inline]
    fn try_insert_copy_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
        with_filter!(self, filter => filter.try_insert_copy_hash(hash))
    }

    fn try_insert_copy_hashes(
        &mut self,
        hashes: &[u64],
        answers: &mut [u64],
    ) -> Result<(), InsertError> {
        with_filter!(self, filter => filter.try_insert_copy_hashes(hashes, answers))
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
        MergeError::check_layouts(self.layout(), other.layout())?;
        with_filters!(self, other, (one, two) => one.merge(two), else {
            unreachable!("filters of one layout are of one kind")
        })
    }
}
