//! A probe rule whose type is known only at run time.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::filters::filter_info::FilterInfo;
use crate::rules::probe_rule::ProbeRule;
use crate::rules::probing;
use crate::rules::rates::EstimatedRate;

/// The rule of a filter: the hash, the number of bits, the number of probes, and the seeds. Two filters with equal
/// rules give each bit the same meaning.
///
/// If the rules of two formats are equal, a filter can be converted between the two formats by copying its bits.
#[derive(Clone)]
pub struct Rule(Arc<dyn AnyRule>);

impl Rule {
    pub(crate) fn new(rule: impl ProbeRule) -> Self {
        Self(Arc::new(rule))
    }

    /// Returns the rule as the rule type of one system, such as [`Bip37`](crate::formats::bip37::Bip37). Returns `None`
    /// if the type of the rule is not `R`.
    #[must_use]
    pub fn downcast_ref<R: 'static>(&self) -> Option<&R> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.0.sizes().0
    }

    /// Returns the number of probes of an item.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.0.sizes().1
    }

    /// Returns the bit numbers of an item, one for each probe. A bit number may repeat.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::RedisBitmaps;
    ///
    /// let rule = RedisBitmaps::plan(10, 0.1)?;
    /// assert_eq!((rule.bits(), rule.probes()), (64, 3));
    /// assert_eq!(rule.offsets(b"x1").len(), 3);
    /// # Ok::<(), tamis_formats::CreateError>(())
    /// ```
    #[must_use]
    pub fn offsets(&self, key: &[u8]) -> Vec<u64> {
        self.0.offsets(key)
    }

    /// Returns the length in bytes that every item has. Returns `None` if items can have any length.
    pub(crate) fn item_bytes(&self) -> Option<usize> {
        self.0.item_bytes()
    }

    pub(crate) fn any(&self) -> &dyn AnyRule {
        &*self.0
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Rule {
    /// Writes the name of the hash and its parameters, without the sizes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name())
    }
}

/// [`ProbeRule`] as a trait object. One call of a method handles a whole batch, so that the loops over items and probes
/// are compiled for each rule.
pub(crate) trait AnyRule: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn sizes(&self) -> (u64, u32);
    fn name(&self) -> String;
    fn item_bytes(&self) -> Option<usize>;
    /// Returns the bit numbers of an item.
    fn offsets(&self, key: &[u8]) -> Vec<u64>;
    /// Tests one item.
    fn contains(&self, words: &[u64], key: &[u8]) -> bool;
    /// Inserts one item. Returns the number of changed bits.
    fn insert(&self, words: &mut [u64], key: &[u8]) -> u32;
    /// Tests a batch of items and writes the answers to a bit mask.
    fn contains_each(&self, words: &[u64], keys: &[&[u8]], answers: &mut [u64]);
    /// Inserts a batch of items in order. Sets a bit of the mask for each item that changed a bit of the filter.
    fn insert_each(&self, words: &mut [u64], keys: &[&[u8]], answers: &mut [u64]);
    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate;
    fn estimate_items(&self, words: &[u64]) -> f64;
    fn describe(&self, info: &mut FilterInfo);
}

impl<R: ProbeRule> AnyRule for R {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<R>().is_some_and(|other| self == other)
    }

    fn sizes(&self) -> (u64, u32) {
        ProbeRule::sizes(self)
    }

    fn name(&self) -> String {
        ProbeRule::name(self)
    }

    fn item_bytes(&self) -> Option<usize> {
        R::ITEM_BYTES
    }

    fn offsets(&self, key: &[u8]) -> Vec<u64> {
        self.each_probe(self.hash(key)).collect()
    }

    fn contains(&self, words: &[u64], key: &[u8]) -> bool {
        probing::contains(self, words, self.hash(key))
    }

    fn insert(&self, words: &mut [u64], key: &[u8]) -> u32 {
        probing::insert(self, words, self.hash(key))
    }

    fn contains_each(&self, words: &[u64], keys: &[&[u8]], answers: &mut [u64]) {
        probing::contains_each(self, words, keys, answers);
    }

    fn insert_each(&self, words: &mut [u64], keys: &[&[u8]], answers: &mut [u64]) {
        probing::insert_each(self, words, keys, answers);
    }

    fn estimate_rate(&self, words: &[u64]) -> EstimatedRate {
        ProbeRule::estimate_rate(self, words)
    }

    fn estimate_items(&self, words: &[u64]) -> f64 {
        ProbeRule::estimate_items(self, words)
    }

    fn describe(&self, info: &mut FilterInfo) {
        ProbeRule::describe(self, info);
    }
}
