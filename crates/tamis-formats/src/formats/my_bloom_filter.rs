//! `MyBloomFilter`, a Java class that articles print and programs copy. Layout: `docs/formats/my-bloom-filter.md`.
//!
//! The class does not work as its author intended:
//!
//! ```text
//! Math.abs(seed * (cap - 1) & ((h = value.hashCode()) ^ (h >>> 16)))
//! ```
//!
//! `*` binds tighter than `&`, so the seed becomes a mask and the bits are not mixed. All six probes are copies of one
//! number, and each copy has different bits cleared. Two of the six masks keep the sign bit. If only the sign bit is
//! left, `abs` returns a negative number and `BitSet` throws an exception. The code below reproduces the defects of the
//! Java class, because existing filters depend on the defects.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use tamis::{Answers, OutOfMemory};

use crate::encoding::{ones, words_of};
use crate::errors::{ChangeError, DecodeError, EncodeError};
use crate::filters::{Contents, FilterInfo, StoredFilter, answer_each, try_answer_each};
use crate::format::{DecodeOptions, Detection, Format, ItemDomain, Parameters};

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "my-bloom-filter",
    extensions: &["bitset"],
    summary: "MyBloomFilter of Java articles, by BitSet.toByteArray",
    detection: Detection::ByOption,
    item_domain: ItemDomain::HashCodes,
    parameters: Parameters { planning: &[], ..Parameters::NONE },
    decode: |bytes, _| MyBloomFilter::from_bytes(bytes).map(Contents::new),
    encode,
    create: |_| Ok(Contents::new(MyBloomFilter::default())),
    ..Format::BASE
};

/// The number of bits that the author of the Java class intended.
const MEANT_BITS: u32 = 2 << 24;

const SEEDS: [u32; 6] = [3, 13, 46, 71, 91, 134];

/// The masks that result from the seeds.
const MASKS: [u32; 6] = {
    let mut masks = SEEDS;
    let mut i = 0;
    while i < masks.len() {
        masks[i] = masks[i].wrapping_mul(MEANT_BITS - 1);
        i += 1;
    }
    masks
};

/// The largest number of bits that the filter can have.
const MAX_BITS: u64 = 1 << 31;

/// A filter with the same answers and exceptions as the Java class.
///
/// An item is given as its `hashCode`, which is 0 for null: see [`JavaType`](crate::JavaType). The size grows to the
/// highest set bit, and is at most 256 MiB.
///
/// # Examples
///
/// ```
/// use tamis_formats::JavaType;
/// use tamis_formats::my_bloom_filter::MyBloomFilter;
///
/// let mut seen = MyBloomFilter::default();
/// seen.add(JavaType::String.hash_code("Aa").unwrap())?;
/// assert_eq!(seen.contains(JavaType::String.hash_code("BB").unwrap()), Ok(true), "one hash code");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MyBloomFilter {
    // Invariant: the last word is not zero, and there are at most 2³¹ bits.
    words: Vec<u64>,
}

/// The error for an item for which the class throws `IndexOutOfBoundsException: bitIndex < 0: -2147483648`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throws;

impl std::fmt::Display for Throws {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "MyBloomFilter throws here (bitIndex < 0: -2147483648): it cannot hold this item, use \
            another filter",
        )
    }
}

impl std::error::Error for Throws {}

/// Returns the bit numbers that the class computes from a `hashCode`, in order. `None` stands for -2147483648. The
/// class throws an exception for the number -2147483648.
///
/// # Examples
///
/// ```
/// use tamis_formats::my_bloom_filter::positions;
///
/// let near = [13421, 13411, 13378, 13353, 13349, 13418];
/// assert!(positions(13423).eq(near.map(Some)));
/// ```
pub fn positions(hash_code: i32) -> impl Iterator<Item = Option<u32>> {
    let h = hash_code.cast_unsigned();
    let x = h ^ h >> 16;
    MASKS.into_iter().map(move |mask| position(mask, x))
}

fn position(mask: u32, x: u32) -> Option<u32> {
    (mask & x).cast_signed().checked_abs().map(i32::cast_unsigned)
}

impl MyBloomFilter {
    /// Decodes the result of `BitSet.toByteArray`. Empty input is an empty filter.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if there are more bytes than the class can produce.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() as u64 > MAX_BITS / 8 {
            return Err(DecodeError::too_long("bits", MAX_BITS / 8));
        }
        let mut words = Vec::new();
        let memory = OutOfMemory { bytes: bytes.len() as u64 };
        words
            .try_reserve_exact(bytes.len().div_ceil(8))
            .map_err(|_| DecodeError::memory("bits", 0)(memory))?;
        words.extend(words_of(bytes));
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        words.truncate(used);
        Ok(Self { words })
    }

    /// Inserts an item as the Java method `add` does. Returns true if a bit changed.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the class throws an exception or if the allocation fails. If the class throws, the bits
    /// before the failing probe stay set.
    pub fn add(&mut self, hash_code: i32) -> Result<bool, ChangeError> {
        let mut is_new = false;
        for bit in positions(hash_code) {
            let bit = bit.ok_or_else(|| ChangeError::refused(Throws.to_string()))?;
            let word = self.word_mut(bit as usize / 64)?;
            is_new |= *word >> (bit % 64) & 1 == 0;
            *word |= 1 << (bit % 64);
        }
        Ok(is_new)
    }

    /// Tests whether an item may be in the filter, as the Java method `contains` does.
    ///
    /// # Errors
    ///
    /// [`Throws`] if the class throws an exception. The class throws no exception if the bit of a probe before the
    /// failing probe is not set.
    pub fn contains(&self, hash_code: i32) -> Result<bool, Throws> {
        for bit in positions(hash_code) {
            if !self.is_set(bit.ok_or(Throws)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts the bits that are set, as the Java method `cardinality` does.
    #[must_use]
    pub fn count_ones(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the number of the highest set bit plus one, as the Java method `length` does.
    #[must_use]
    pub fn len_bits(&self) -> u64 {
        self.words
            .last()
            .map_or(0, |word| self.words.len() as u64 * 64 - u64::from(word.leading_zeros()))
    }

    /// Estimates the number of hash codes, out of all 2³², for which the filter returns true. The number of inserted
    /// items is at most about the estimated number of hash codes.
    #[must_use]
    pub fn estimate_hash_codes(&self) -> f64 {
        let (found, step) = self.found();
        found.len() as f64 * step as f64
    }

    /// Estimates the number of inserted hash codes. Returns `None` if the bits do not determine the number.
    ///
    /// A hash code is certain if a set bit can only come from this hash code. The estimate is the number of hash codes
    /// that are needed to explain all set bits. The method returns the estimate only if three quarters of the needed
    /// hash codes are certain. If three quarters of the needed hash codes are certain, the error of the estimate is at
    /// most a tenth.
    ///
    /// If the hash codes are random, 94 % of the hash codes are certain. Consecutive numbers, and texts that end in
    /// numbers, set the same bits many times. If items set the same bits many times, few hash codes are certain, and
    /// many numbers of items are possible. For more than about 16,000 items, the method returns no estimate.
    #[must_use]
    pub fn estimate_items(&self) -> Option<f64> {
        let (found, step) = self.found();
        if step > 1 {
            return None;
        }
        let bits_of = |x: u32| MASKS.into_iter().filter_map(move |mask| position(mask, x));
        let mut codes_of = HashMap::<u32, u32>::new();
        for bit in found.iter().flat_map(|&x| bits_of(x)) {
            *codes_of.entry(bit).or_default() += 1;
        }
        // Hash codes are sorted by the lowest number of hash codes that explain one of their bits. Hash codes that are
        // the only explanation of a bit come first.
        let mut found: Vec<(u32, u32)> = found
            .into_iter()
            .map(|x| (bits_of(x).map(|bit| codes_of[&bit]).min().unwrap_or(0), x))
            .collect();
        found.sort_unstable();
        let certain = found.iter().take_while(|&&(codes, _)| codes == 1).count();
        let mut set = HashSet::new();
        let needed = found.iter().filter(|(_, x)| {
            // Inserts all bits of the hash code, even if the first bit is new.
            bits_of(*x).filter(|&bit| set.insert(bit)).count() > 0
        });
        let needed = needed.count();
        (certain * 4 >= needed * 3).then_some(needed as f64)
    }

    /// Returns mixed hashes for which the filter returns true, and a step. If the step is 1, the result contains all
    /// mixed hashes for which the filter returns true. If the step is n, the result contains the hashes for every n-th
    /// set bit.
    fn found(&self) -> (Vec<u32>, usize) {
        // With the mask below, the probe of a present hash code is a set bit. The hash code is the number of the set
        // bit plus any combination of the bits that the mask clears. A set bit has 128 possible hash codes, so all
        // possible hash codes can be tested. If many bits are set, only the hash codes for an even sample of the bits
        // are tested.
        let mask = MASKS[2];
        let bits = || {
            let words = self.words.iter().enumerate();
            let words = words.filter(|&(i, &word)| word != 0 && (i as u32 * 64) & !mask == 0);
            let bits =
                words.flat_map(|(i, &word)| ones(word).map(move |bit| (i * 64 + bit) as u32));
            bits.filter(|bit| bit & !mask == 0)
        };
        let step = bits().count().div_ceil(TESTED_BITS).max(1);
        let completions = |bit: u32| {
            let missing = !mask;
            // Iterates over all subsets of the bits that the mask clears.
            let mut next = Some(0_u32);
            std::iter::from_fn(move || {
                let subset = next?;
                next = Some(subset.wrapping_sub(missing) & missing).filter(|&subset| subset != 0);
                Some(bit | subset)
            })
        };
        let is_in = |x: &u32| {
            MASKS.into_iter().all(|mask| position(mask, *x).is_some_and(|bit| self.is_set(bit)))
        };
        (bits().step_by(step).flat_map(completions).filter(is_in).collect(), step)
    }

    fn is_set(&self, bit: u32) -> bool {
        self.words.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Returns a mutable word. If the word is missing, appends zero words up to this word. If the word is the last
    /// word, the caller must make the word nonzero.
    fn word_mut(&mut self, at: usize) -> Result<&mut u64, ChangeError> {
        if let Some(missing) = (at + 1).checked_sub(self.words.len()) {
            let failed = |_| ChangeError::Memory(OutOfMemory { bytes: missing as u64 * 8 });
            self.words.try_reserve(missing).map_err(failed)?;
            self.words.resize(at + 1, 0);
        }
        Ok(&mut self.words[at])
    }
}

impl StoredFilter for MyBloomFilter {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        // If the class throws for an item, the item may still be in the filter. The insert of the item may have set the
        // bits before the failing probe.
        answer_each(keys, answers, |key| {
            hash_code(key).is_some_and(|it| self.contains(it) != Ok(false))
        });
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        try_answer_each(keys, answers, |key| {
            let why = "its items are hash codes of Java, of 4 bytes";
            let code = hash_code(key).ok_or_else(|| ChangeError::refused(why))?;
            self.add(code)
        })
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        if let Some(last) = other.words.len().checked_sub(1) {
            self.word_mut(last)?;
        }
        for (to, from) in self.words.iter_mut().zip(&other.words) {
            *to |= from;
        }
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        let (ones, bits) = (self.count_ones(), self.len_bits());
        let codes = self.estimate_hash_codes();
        FilterInfo {
            layout: "hashCode and six masks".into(),
            bits,
            probes: Some(SEEDS.len() as u32),
            fill: if bits == 0 { 0.0 } else { ones as f64 / bits as f64 },
            items: self.estimate_items().unwrap_or(f64::NAN),
            rate_now: codes / 2_f64.powi(32),
            details: vec![
                ("bits set", ones.to_string()),
                ("matches", format!("{codes:.0} of all 4294967296 hash codes")),
            ],
            warnings: vec![
                "its six probes are the same number with some bits cleared, because * binds \
                tighter than & in its hash: it takes up to 256 MiB, not 4 MiB"
                    .into(),
                "items with the same hashCode are the same item, such as null, 0, 0.0 and the \
                empty text"
                    .into(),
                "it throws for some items, such as the Integer -2147450880, after it has set some \
                of their bits"
                    .into(),
                "use another filter for new data: tamis build creates one".into(),
            ],
            ..FilterInfo::default()
        }
    }
}

/// The largest number of bits for which all 128 hash codes per bit are tested. The test takes a few milliseconds, and
/// the error of the estimate is a few percent.
const TESTED_BITS: usize = 1 << 14;

/// Returns the hash code in a key of [`Funnel::HashCode`](crate::Funnel::HashCode).
fn hash_code(key: &[u8]) -> Option<i32> {
    key.try_into().ok().map(i32::from_le_bytes)
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let filter = contents.filter::<MyBloomFilter>(
        "MyBloomFilter sets other bits for an item than any other filter",
    )?;
    let Some((&last, words)) = filter.words.split_last() else { return Ok(()) };
    crate::encoding::write_words(words, out, u64::to_le_bytes)?;
    let used = 8 - last.leading_zeros() as usize / 8;
    Ok(out.write_all(&last.to_le_bytes()[..used])?)
}
