//! The scaling Bloom filter of RedisBloom, identical bit for bit.
//!
//! A filter is a list of layers. Each layer is a Bloom filter of a fixed capacity. When the newest
//! layer is full, another one is appended, with `expansion` times the capacity and half the rate.
//! So the planned rates of all layers sum to at most the requested rate:
//!
//! ```text
//!  rate p, capacity n, expansion 2      | n, p/2 | 2n, p/4      | 4n, p/8                      | ...
//!                                         oldest                  newest: takes the inserts
//! ```
//!
//! Invariants: there is at least one layer. All layers except the newest are full. A filter from a
//! header may have other layers that are not full.
//!
//! Limits: a lookup of an absent item searches every layer. So a lookup in a filter that has grown
//! to a thousand times its first capacity is ten times slower. [`Bloom`](tamis::Bloom) is smaller
//! and several times as fast. Use this type for data and clients of Redis.
//!
//! Source: Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters" (2007). The constants
//! and byte layouts are those of RedisBloom.

mod dump;
mod layer;

use std::fmt;

use tamis::{Answers, Item, OutOfMemory, allocation_bytes};

use crate::double_hashing::RedisHash;
use crate::error::{RedisBloomError, RedisInsertError};
use crate::memory_limit::GrowthLimit;
use crate::not_compared::NotCompared;
use layer::Layer;
pub use layer::RedisLayer;

/// The options of a [`RedisBloom`]: the arguments of `BF.RESERVE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedisBloomOptions {
    /// Items until the first layer is full, at least 1. RedisBloom 8 accepts up to 2³⁰.
    pub capacity: u64,
    /// The false positive rate, between 0 and 1. RedisBloom 8 reduces a rate above 0.25 to 0.25.
    pub rate: f64,
    /// The factor between the capacities of the next layer and the last. With 0 there is only one
    /// layer. RedisBloom 8 accepts up to 32,768.
    pub expansion: u32,
    /// Whether to add a layer when the newest is full. If false, the full filter rejects new items.
    pub is_scaling: bool,
}

impl Default for RedisBloomOptions {
    /// The options that a server uses for `BF.ADD` to an absent key: 100 items at 1 %, and a factor
    /// of two.
    fn default() -> Self {
        Self { capacity: 100, rate: 0.01, expansion: 2, is_scaling: true }
    }
}

/// The scaling Bloom filter of RedisBloom: equal inserts give equal bits, answers and dumps.
///
/// An inserted item is always found. An absent item is reported as present at about the requested
/// rate. A filter whose first capacity was far too small exceeds the rate, because double hashing
/// repeats its probes in small layers. Twice the rate was measured at 10,000 items from a capacity
/// of 10. A lookup reads a cache line for each probe of each layer, until a bit is missing.
///
/// # Examples
///
/// ```
/// use tamis_redisbloom::{RedisBloom, RedisBloomOptions};
///
/// let mut seen = RedisBloom::new(&RedisBloomOptions { capacity: 20, ..Default::default() })?;
/// for number in 0..50_u32 {
///     seen.insert(&number)?;
/// }
/// assert!((0..50_u32).all(|number| seen.contains(&number)));
/// assert_eq!((seen.layers().len(), seen.capacity()), (2, 60));
///
/// // Dumped as BF.SCANDUMP does, and loaded again as BF.LOADCHUNK does.
/// let mut copy = RedisBloom::from_header(&seen.header())?;
/// let mut position = 1;
/// while let Some((next, bytes)) = seen.chunk(position) {
///     copy.load_chunk(next, &bytes)?;
///     position = next;
/// }
/// assert_eq!(copy, seen);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct RedisBloom {
    // Invariant: there is at least one layer, and the oldest is first.
    layers: Vec<Layer>,
    items: u64,
    /// The bits of `OPTION_*`.
    options: u32,
    expansion: u32,
    growth_limit: NotCompared<GrowthLimit>,
}

impl RedisBloom {
    /// Creates an empty filter. Accepts the options of every version of RedisBloom: RedisBloom 2 has
    /// no upper limits.
    ///
    /// # Errors
    ///
    /// [`RedisBloomError`] if an option is out of its range, half the rate is zero, or there is not
    /// enough memory.
    pub fn new(options: &RedisBloomOptions) -> Result<Self, RedisBloomError> {
        let &RedisBloomOptions { capacity, rate, expansion, is_scaling } = options;
        if !(rate > 0.0 && rate < 1.0) {
            return Err(RedisBloomError::Rate { rate });
        }
        if capacity == 0 {
            return Err(RedisBloomError::Capacity { capacity });
        }
        let is_scaling = is_scaling && expansion != 0;
        let (first_rate, fixed) = if is_scaling { (rate * 0.5, 0) } else { (rate, OPTION_FIXED) };
        let first = Layer::new(capacity, first_rate).map_err(|error| match error {
            RedisInsertError::Memory(error) => RedisBloomError::Memory(error),
            RedisInsertError::Rate => RedisBloomError::Rate { rate },
            _ => RedisBloomError::Capacity { capacity },
        })?;
        let options = OPTION_NO_ROUND | OPTION_HASH_64 | fixed;
        let growth_limit = NotCompared::default();
        Ok(Self { layers: vec![first], items: 0, options, expansion, growth_limit })
    }

    /// Creates an empty filter with the parameters of this one and the size of its first layer.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`] if there is not enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redisbloom::RedisBloom;
    ///
    /// let mut seen = RedisBloom::new(&Default::default())?;
    /// let empty = seen.clone();
    /// seen.insert("user:1001")?;
    /// assert_eq!(seen.emptied()?, empty);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn emptied(&self) -> Result<Self, OutOfMemory> {
        // The layer keeps its size, because the capacity in a forged header may not match its bits.
        let first = Layer::zeroed(RedisLayer { items: 0, ..*self.layers[0].numbers() })?;
        Ok(Self { layers: vec![first], items: 0, ..*self })
    }

    /// Hashes an item with this filter's function. The hash can be used for several calls.
    #[inline]
    #[must_use]
    pub fn hash<I: Item + ?Sized>(&self, item: &I) -> RedisHash {
        let bytes = item.stable_bytes();
        if self.options & OPTION_HASH_64 != 0 {
            RedisHash::of(bytes.as_ref())
        } else {
            RedisHash::of_32_bits(bytes.as_ref())
        }
    }

    /// Tests whether `item` may have been inserted. The answer false is always correct.
    #[inline]
    pub fn contains<I: Item + ?Sized>(&self, item: &I) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// Tests whether an item with this hash may have been inserted.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: RedisHash) -> bool {
        self.layers.iter().rev().any(|layer| layer.contains(hash))
    }

    /// Tests many items. The memory accesses of the items overlap. Answer `i` is the answer for
    /// `items[i]`.
    pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let words = answers.reset(items.len());
        let mut hashes = [RedisHash::default(); BATCH];
        for (word, items) in words.iter_mut().zip(items.chunks(BATCH)) {
            let hashes = self.hash_batch(items, &mut hashes);
            *word = contains_batch(&self.layers, hashes);
        }
    }

    /// Returns true if every item of `items` may have been inserted. Returns true for an empty
    /// slice.
    pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
        let mut hashes = [RedisHash::default(); BATCH];
        items.chunks(BATCH).all(|items| {
            let hashes = self.hash_batch(items, &mut hashes);
            contains_batch(&self.layers, hashes).count_ones() as usize == items.len()
        })
    }

    /// Inserts `item`. Returns true if it was certainly absent. If the filter reports the item as
    /// present, nothing changes and the item is not counted.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] if the item is new, the newest layer is full and no layer can be added.
    /// The filter is unchanged then.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisInsertError> {
        self.insert_hash(self.hash(item))
    }

    /// Inserts an item by its hash. Returns true if it was certainly absent.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: RedisHash) -> Result<bool, RedisInsertError> {
        self.insert_past(0, hash)
    }

    /// Inserts many items in order. The memory accesses of the items overlap. Calls `each` with the
    /// result of each item.
    ///
    /// After a rejected item, later items are still processed, because they may be present already.
    /// To stop at the first rejected item, as `BF.MADD` does, the caller returns false from `each`.
    pub fn insert_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<bool, RedisInsertError>) -> bool,
    ) {
        let mut hashes = [RedisHash::default(); BATCH];
        for items in items.chunks(BATCH) {
            let hashes = self.hash_batch(items, &mut hashes);
            // The older layers accept no more items, so their answers stay valid. All hashes of the
            // batch are tested in one layer after the other.
            let older = self.layers.len() - 1;
            let present = contains_batch(&self.layers[..older], hashes);
            for (i, &hash) in hashes.iter().enumerate() {
                if present >> i & 1 == 0 {
                    self.layers[older].prefetch(hash);
                }
            }
            for (i, &hash) in hashes.iter().enumerate() {
                let is_present = present >> i & 1 == 1;
                let inserted = if is_present { Ok(false) } else { self.insert_past(older, hash) };
                if !answer(inserted) {
                    return;
                }
            }
        }
    }

    /// Inserts many items in order, as [`insert_each`](Self::insert_each) does. Returns how many
    /// were certainly absent.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] at the first rejected item. The items before it were inserted.
    pub fn insert_all<I: Item>(&mut self, items: &[I]) -> Result<usize, RedisInsertError> {
        let mut new = Ok(0);
        self.insert_each(items, |inserted| {
            match (inserted, &mut new) {
                (Ok(is_new), Ok(new)) => *new += usize::from(is_new),
                (Err(error), new) => *new = Err(error),
                (Ok(_), Err(_)) => {}
            }
            new.is_ok()
        });
        new
    }

    /// Removes all items. Keeps the first layer and its memory, and frees later ones.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redisbloom::RedisBloom;
    ///
    /// let mut seen = RedisBloom::new(&Default::default())?;
    /// let empty = seen.clone();
    /// assert_eq!(seen.insert_all(&["a", "b", "a"])?, 2);
    /// assert!(seen.contains_all(&["a", "b"]) && !seen.contains_all(&["a", "c"]));
    /// seen.clear();
    /// assert!(seen.is_empty() && seen == empty);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self) {
        self.layers.truncate(1);
        self.layers[0].clear();
        self.items = 0;
    }

    /// Returns true if no item was counted as new. Constant time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Inserts an item that is absent from the `tested` oldest layers.
    fn insert_past(&mut self, tested: usize, hash: RedisHash) -> Result<bool, RedisInsertError> {
        let (newest, older) = self.layers.split_last_mut().expect("a filter has a layer");
        if older[tested..].iter().rev().any(|layer| layer.contains(hash)) {
            return Ok(false);
        }
        if newest.is_full() {
            if newest.contains(hash) {
                return Ok(false);
            }
            self.grow()?;
        }
        let newest = self.layers.last_mut().expect("a filter has a layer");
        let is_new = newest.insert(hash);
        // Saturating, because a forged header may contain any number.
        self.items = self.items.saturating_add(u64::from(is_new));
        Ok(is_new)
    }

    /// Hashes up to [`BATCH`] items.
    fn hash_batch<'h, I: Item>(&self, items: &[I], hashes: &'h mut [RedisHash]) -> &'h [RedisHash] {
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = self.hash(item);
        }
        &hashes[..items.len()]
    }

    /// Appends a layer.
    #[cold]
    fn grow(&mut self) -> Result<(), RedisInsertError> {
        if !self.is_scaling() {
            return Err(RedisInsertError::Full { items: self.items });
        }
        let newest = *self.layers.last().expect("a filter has a layer").numbers();
        // Only a forged header has too few bits. Without this check, a header of a few bytes could
        // cause an allocation of gigabytes. RedisBloom 2 stores an expansion of 2³² as 0, and then
        // cannot grow.
        if self.expansion == 0 || newest.has_too_few_bits() {
            return Err(RedisInsertError::TooLarge);
        }
        let capacity = newest
            .capacity
            .checked_mul(u64::from(self.expansion))
            .ok_or(RedisInsertError::TooLarge)?;
        let bytes = size_of::<Layer>() as u64;
        self.layers.try_reserve(1).map_err(|_| RedisInsertError::Memory(OutOfMemory { bytes }))?;
        self.layers.push(Layer::within(capacity, newest.rate * 0.5, self.growth_limit.0)?);
        Ok(())
    }

    /// Sets the maximum number of bytes that one growth may take. The limit is not part of the
    /// filter's value or of its dumps.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_redisbloom::{RedisBloom, RedisBloomOptions, RedisInsertError};
    ///
    /// let mut seen = RedisBloom::new(&RedisBloomOptions { capacity: 1, ..Default::default() })?;
    /// seen.limit_growth(0);
    /// seen.insert("first")?;
    /// assert!(matches!(seen.insert("second"), Err(RedisInsertError::OverLimit { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limit_growth(&mut self, max_bytes: u64) {
        self.growth_limit.0 = GrowthLimit { max_bytes };
    }

    /// Returns how many items were counted as new: `BF.CARD`.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Returns the sum of the layers' capacities.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layers().fold(0, |sum, layer| sum.saturating_add(layer.capacity))
    }

    /// Returns the factor between the capacities of the next layer and the last. Returns `None` if
    /// there is no next layer.
    #[must_use]
    pub fn expansion(&self) -> Option<u32> {
        self.is_scaling().then_some(self.expansion)
    }

    /// Returns true if the filter grows when it is full.
    #[must_use]
    pub fn is_scaling(&self) -> bool {
        self.options & OPTION_FIXED == 0
    }

    /// Returns the width of the two hashes of an item in bits: 64, or 32 in very old filters.
    #[must_use]
    pub fn hash_bits(&self) -> u32 {
        if self.options & OPTION_HASH_64 != 0 { 64 } else { 32 }
    }

    /// Returns the parameters of each layer, oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &RedisLayer> + DoubleEndedIterator {
        self.layers.iter().map(Layer::numbers)
    }

    /// Returns the `Size` of `BF.INFO` in bytes, which is the size of the server's structures.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        32 + 64 * self.layers.len() as u64 + self.len_bytes()
    }

    /// Returns the memory of the layers, in bytes, as [`tamis::allocation_bytes`] counts it.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let bits = self.layers.iter().map(Layer::heap_bytes).sum::<u64>();
        bits + allocation_bytes(self.layers.capacity() * size_of::<Layer>())
    }
}

impl fmt::Debug for RedisBloom {
    /// Formats the items and the parameters of each layer. Reads no bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBloom")
            .field("capacity", &self.capacity())
            .field("items", &self.items)
            .field("expansion", &self.expansion())
            .field("layers", &self.layers().collect::<Vec<_>>())
            .finish()
    }
}

/// Tests up to 64 hashes. Bit `i` is set if one of the layers may contain hash `i`.
fn contains_batch(layers: &[Layer], hashes: &[RedisHash]) -> u64 {
    let all = if hashes.is_empty() { 0 } else { u64::MAX >> (64 - hashes.len()) };
    layers.iter().rev().fold(0, |found, layer| found | layer.contains_batch(hashes, all & !found))
}

/// An option in a header: the sizes of layers are not rounded up to powers of two.
const OPTION_NO_ROUND: u32 = 1;
/// An option in a header: hashes have 64 bits.
const OPTION_HASH_64: u32 = 4;
/// An option in a header: the filter never adds a layer.
const OPTION_FIXED: u32 = 8;

/// The number of items that are hashed and then tested together. The answers of a batch fill one
/// word.
const BATCH: usize = 64;

#[cfg(test)]
mod tests;
