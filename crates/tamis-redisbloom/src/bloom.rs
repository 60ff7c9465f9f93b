//! The scaling Bloom filter of RedisBloom, with identical bits.
//!
//! A filter is a list of layers. Each layer is a Bloom filter of a fixed capacity. When the newest
//! layer is full, the filter appends a layer with `expansion` times the capacity and half the rate.
//! The half rates make the sum of the planned rates of all layers at most the requested rate:
//!
//! ```text
//!  rate p, capacity n, expansion 2      | n, p/2 | 2n, p/4      | 4n, p/8                      | ...
//!                                         oldest                  newest: takes the inserts
//! ```
//!
//! Invariants: a filter has at least one layer. All layers except the newest layer are full, unless
//! the filter was loaded from a header.
//!
//! Limits: a lookup of an absent item searches every layer. If a filter has grown to a thousand
//! times the first capacity, a lookup is ten times slower than with one layer.
//! [`Bloom`](tamis::Bloom) is smaller and several times faster than this filter. Use this filter
//! for existing data and clients of Redis.
//!
//! Source: Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters" (2007). The constants
//! and byte layouts are the same as in RedisBloom.

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

/// The options of a [`RedisBloom`], which are the arguments of `BF.RESERVE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedisBloomOptions {
    /// The number of items at which the first layer is full, at least 1. RedisBloom 8 accepts a
    /// capacity of at most 2³⁰.
    pub capacity: u64,
    /// The false positive rate, above 0 and below 1. RedisBloom 8 reduces a rate above 0.25 to
    /// 0.25.
    pub rate: f64,
    /// The capacity of a new layer divided by the capacity of the previous layer. With an expansion
    /// of 0, the filter has only one layer. RedisBloom 8 accepts an expansion of at most 32,768.
    pub expansion: u32,
    /// Whether the filter adds a layer when the newest layer is full. A full filter that adds no
    /// layers rejects new items.
    pub is_scaling: bool,
}

impl Default for RedisBloomOptions {
    /// Returns the options that a server uses if `BF.ADD` creates the key: 100 items, a rate of 1 %
    /// and an expansion of 2.
    fn default() -> Self {
        Self { capacity: 100, rate: 0.01, expansion: 2, is_scaling: true }
    }
}

/// The scaling Bloom filter of RedisBloom. The same inserts produce the same bits, answers and
/// dumps as in RedisBloom.
///
/// The filter always finds an inserted item. The filter reports an absent item as present at about
/// the requested rate. If the first capacity was far too small, the rate is higher than requested,
/// because double hashing repeats probes in small layers. A filter with a first capacity of 10 had
/// twice the requested rate at 10,000 items. In each layer, a lookup reads one cache line per probe
/// until a bit is 0.
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
/// // Dumps the filter like BF.SCANDUMP, and loads the dump like BF.LOADCHUNK.
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
    // Invariant: the filter has at least one layer. The oldest layer is first.
    layers: Vec<Layer>,
    items: u64,
    /// A combination of the `OPTION_*` bits.
    options: u32,
    expansion: u32,
    growth_limit: NotCompared<GrowthLimit>,
}

impl RedisBloom {
    /// Creates an empty filter. Accepts the options of all RedisBloom versions. RedisBloom 2 has no
    /// upper limits for options.
    ///
    /// # Errors
    ///
    /// [`RedisBloomError`] if an option is out of range, if half the rate rounds to zero, or if
    /// there is not enough memory.
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

    /// Creates an empty filter with the same parameters as this filter, and with a first layer of
    /// the same size.
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
        // The code copies the layer's size, because in a forged header the capacity may not match
        // the number of bits.
        let first = Layer::zeroed(RedisLayer { items: 0, ..*self.layers[0].numbers() })?;
        Ok(Self { layers: vec![first], items: 0, ..*self })
    }

    /// Returns the hash of an item. Filters of very old servers have another hash function than new
    /// filters. The caller may pass the hash to several methods of this filter.
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

    /// Tests whether `item` may have been inserted. If the answer is false, the item is certainly
    /// absent.
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

    /// Tests a batch of items with overlapping memory accesses. Answer `i` belongs to `items[i]`.
    pub fn contains_each<I: Item>(&self, items: &[I], answers: &mut Answers) {
        let words = answers.reset(items.len());
        let mut hashes = [RedisHash::default(); BATCH];
        for (word, items) in words.iter_mut().zip(items.chunks(BATCH)) {
            let hashes = self.hash_batch(items, &mut hashes);
            *word = contains_batch(&self.layers, hashes);
        }
    }

    /// Tests whether every item of `items` may have been inserted. Returns true for an empty slice.
    pub fn contains_all<I: Item>(&self, items: &[I]) -> bool {
        let mut hashes = [RedisHash::default(); BATCH];
        items.chunks(BATCH).all(|items| {
            let hashes = self.hash_batch(items, &mut hashes);
            contains_batch(&self.layers, hashes).count_ones() as usize == items.len()
        })
    }

    /// Inserts `item`. Returns true if the item was certainly absent. If the filter reports the
    /// item as present, this method changes nothing and does not count the item.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] if the item is new, the newest layer is full and the filter cannot add
    /// a layer. After an error, the filter is unchanged.
    #[inline]
    pub fn insert<I: Item + ?Sized>(&mut self, item: &I) -> Result<bool, RedisInsertError> {
        self.insert_hash(self.hash(item))
    }

    /// Inserts an item with this hash. Returns true if the item was certainly absent.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`insert`](Self::insert).
    pub fn insert_hash(&mut self, hash: RedisHash) -> Result<bool, RedisInsertError> {
        self.insert_past(0, hash)
    }

    /// Inserts a batch of items in order, with overlapping memory accesses. Calls `answer` with the
    /// result of each item.
    ///
    /// After a rejected item, this method continues with the next item, because the items after a
    /// rejected item may already be present. To stop at the first rejected item like `BF.MADD`,
    /// return false from `answer`.
    pub fn insert_each<I: Item>(
        &mut self,
        items: &[I],
        mut answer: impl FnMut(Result<bool, RedisInsertError>) -> bool,
    ) {
        let mut hashes = [RedisHash::default(); BATCH];
        for items in items.chunks(BATCH) {
            let hashes = self.hash_batch(items, &mut hashes);
            // Only the newest layer accepts new items, so the answers of all other layers stay
            // valid during the batch. The code tests all hashes of the batch in one layer before
            // the next layer.
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

    /// Inserts a batch of items in order, like [`insert_each`](Self::insert_each). Returns how many
    /// items were certainly absent.
    ///
    /// # Errors
    ///
    /// [`RedisInsertError`] at the first rejected item. After this error, the filter contains all
    /// items before the rejected item.
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

    /// Removes all items. Keeps the memory of the first layer, and frees all other layers.
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

    /// Tests whether the item count is zero. Constant time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Inserts an item. The caller has tested that the `tested` oldest layers do not contain the
    /// item.
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
        // The addition saturates, because a forged header may contain any number.
        self.items = self.items.saturating_add(u64::from(is_new));
        Ok(is_new)
    }

    /// Hashes at most [`BATCH`] items.
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
        // A layer has too few bits only if the header is forged. Without a check for too few bits,
        // a header of a few bytes could cause an allocation of gigabytes. RedisBloom 2 stores an
        // expansion of 2³² as 0. A filter with expansion 0 cannot grow.
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

    /// Sets the maximum number of bytes that one growth step may allocate. Comparisons of filters
    /// ignore the growth limit, and dumps do not contain the growth limit.
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

    /// Returns how many new items the filter has inserted, like `BF.CARD`.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Returns the sum of the capacities of all layers.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layers().fold(0, |sum, layer| sum.saturating_add(layer.capacity))
    }

    /// Returns the capacity of a new layer divided by the capacity of the previous layer.
    /// Returns `None` if the filter never adds a layer.
    #[must_use]
    pub fn expansion(&self) -> Option<u32> {
        self.is_scaling().then_some(self.expansion)
    }

    /// Tests whether the filter adds a layer when the newest layer is full.
    #[must_use]
    pub fn is_scaling(&self) -> bool {
        self.options & OPTION_FIXED == 0
    }

    /// Returns the width of each hash of an item, in bits: 64, or 32 in very old filters.
    #[must_use]
    pub fn hash_bits(&self) -> u32 {
        if self.options & OPTION_HASH_64 != 0 { 64 } else { 32 }
    }

    /// Returns the parameters of each layer, oldest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &RedisLayer> + DoubleEndedIterator {
        self.layers.iter().map(Layer::numbers)
    }

    /// Returns the `Size` of `BF.INFO`: the size of the server's structures, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        32 + 64 * self.layers.len() as u64 + self.len_bytes()
    }

    /// Returns the heap memory of the layers, in bytes. Counts memory with
    /// [`tamis::allocation_bytes`].
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        let bits = self.layers.iter().map(Layer::heap_bytes).sum::<u64>();
        bits + allocation_bytes(self.layers.capacity() * size_of::<Layer>())
    }
}

impl fmt::Debug for RedisBloom {
    /// Formats the number of items and the parameters of each layer, without reading the bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBloom")
            .field("capacity", &self.capacity())
            .field("items", &self.items)
            .field("expansion", &self.expansion())
            .field("layers", &self.layers().collect::<Vec<_>>())
            .finish()
    }
}

/// Tests at most 64 hashes. Bit `i` of the result is set if at least one layer may contain
/// hash `i`.
fn contains_batch(layers: &[Layer], hashes: &[RedisHash]) -> u64 {
    let all = if hashes.is_empty() { 0 } else { u64::MAX >> (64 - hashes.len()) };
    layers.iter().rev().fold(0, |found, layer| found | layer.contains_batch(hashes, all & !found))
}

/// An option in a header: the server did not round the sizes of layers up to powers of two.
const OPTION_NO_ROUND: u32 = 1;
/// An option in a header: hashes have 64 bits.
const OPTION_HASH_64: u32 = 4;
/// An option in a header: the filter never adds a layer.
const OPTION_FIXED: u32 = 8;

/// The number of items that the filter hashes and tests together. The answers of a batch fill one
/// word of 64 bits.
const BATCH: usize = 64;

#[cfg(test)]
mod tests;
