//! Kernels of the cuckoo filter. A register contains four items, but each bucket is read
//! separately.

use std::arch::x86_64::*;

use crate::arch::avx2::batches::PREFETCH_FROM_BYTES;
use crate::arch::avx2::split_block::{load_4, multiply_32, store_4};
use crate::arch::cuckoo_keys::{BATCH, Keys, Pairs};
use crate::arch::prefetch::prefetch_address;

/// The values that are computed for a batch before its buckets are accessed.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Located {
    /// For the left and the right buckets: the number of the first byte to read, and the first bit
    /// of the bucket in this byte.
    bytes: [[u64; BATCH]; 2],
    shifts: [[u64; BATCH]; 2],
    /// For each item, the content of a bucket that has the item's fingerprint in every slot.
    patterns: [u64; BATCH],
}

const NONE: Located =
    Located { bytes: [[0; BATCH]; 2], shifts: [[0; BATCH]; 2], patterns: [0; BATCH] };

/// Tests a batch of items.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn contains_pairs(
    words: &[u64],
    pairs: &Pairs,
    hashes: &[u64],
    answers: &mut [u64],
) {
    let last = (pairs.right + pairs.starts - 1) * pairs.width / 8;
    assert!(last + 8 <= words.len() as u64 * 8, "buckets past the end");
    let rule = Rule::new(pairs);
    let is_large = size_of_val(words) > PREFETCH_FROM_BYTES;
    let words = words.as_ptr().cast::<u8>();
    let mut ring = [NONE; 2];
    let mut batches = hashes.chunks(BATCH).zip(answers).enumerate().peekable();
    if let Some((_, (first, _))) = batches.peek() {
        rule.locate(first, &mut ring[0]);
        if is_large {
            (0..BATCH).step_by(4).for_each(|i| prefetch_4(words, &ring[0], i));
        }
    }
    while let Some((i, (batch, word))) = batches.next() {
        let next = batches.peek().map(|(_, (next, _))| *next);
        if let Some(next) = next {
            rule.locate(next, &mut ring[(i + 1) % 2]);
        }
        let (located, coming) = (&ring[i % 2], &ring[(i + 1) % 2]);
        let mut mask = 0;
        for i in (0..BATCH).step_by(4) {
            if is_large && next.is_some() {
                prefetch_4(words, coming, i);
            }
            // SAFETY: for each byte offset that `locate` wrote, the eight bytes from this offset
            // are inside `words`; the assertion above checks this bound. Entries after the end of
            // the batch are from a previous batch, or zero.
            mask |= unsafe { rule.contains_4(words, located, i) } << i;
        }
        *word = if batch.len() == BATCH { mask } else { mask & ((1 << batch.len()) - 1) };
    }
}

/// Computes the keys of hashes, as `Table::key` does.
#[target_feature(enable = "avx2")]
pub(in crate::arch) fn keys(pairs: &Pairs, hashes: &[u64], keys: &mut Keys) {
    let rule = Rule::new(pairs);
    each_4(hashes, |i, hashes| {
        let (fingerprint, left, right) = rule.keys(hashes);
        store_4(&mut keys.fingerprints[i..], fingerprint);
        store_4(&mut keys.starts[0][i..], left);
        store_4(&mut keys.starts[1][i..], right);
    });
}

/// Calls `each` with four hashes at a time and the number of the first hash. The last group of
/// hashes is padded with zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn each_4(hashes: &[u64], mut each: impl FnMut(usize, __m256i)) {
    let (hashes_4, last) = hashes.as_chunks::<4>();
    for (i, hashes) in hashes_4.iter().enumerate() {
        each(i * 4, load_4(hashes));
    }
    if !last.is_empty() {
        let mut rest = [0; 4];
        rest[..last.len()].copy_from_slice(last);
        each(hashes_4.len() * 4, load_4(&rest));
    }
}

#[inline(always)]
fn prefetch_4(words: *const u8, located: &Located, i: usize) {
    for bytes in &located.bytes {
        for &byte in &bytes[i..i + 4] {
            prefetch_address(words.wrapping_add(byte as usize));
        }
    }
}

/// The parameters of a cuckoo table, each copied to every lane.
#[derive(Clone, Copy)]
struct Rule {
    starts: __m256i,
    right: __m256i,
    fingerprints: __m256i,
    multiplier: __m256i,
    multiplier_high: __m256i,
    width: __m256i,
    spread: __m256i,
    spread_high: __m256i,
    offsets: __m256i,
    ones: __m256i,
    highs: __m256i,
}

impl Rule {
    /// # Panics
    ///
    /// Panics if the slot numbers of the table do not fit in 31 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(pairs: &Pairs) -> Self {
        assert!(pairs.starts <= pairs.right && pairs.right < 1 << 31 && pairs.width <= 32);
        let all = |number: u64| _mm256_set1_epi64x(number as i64);
        Self {
            starts: all(pairs.starts),
            right: all(pairs.right),
            fingerprints: all(pairs.fingerprints),
            multiplier: all(pairs.multiplier),
            multiplier_high: all(pairs.multiplier >> 32),
            width: all(pairs.width),
            spread: all(pairs.spread),
            spread_high: all(pairs.spread >> 32),
            offsets: all(pairs.offsets),
            ones: all(pairs.ones),
            highs: all(pairs.highs),
        }
    }

    /// Computes the buckets of up to [`BATCH`] hashes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn locate(&self, hashes: &[u64], located: &mut Located) {
        let seven = _mm256_set1_epi64x(7);
        each_4(hashes, |i, hashes| {
            let (fingerprint, left, right) = self.keys(hashes);
            for (half, start) in [left, right].into_iter().enumerate() {
                let bit = multiply_32(start, self.width);
                store_4(&mut located.bytes[half][i..], _mm256_srli_epi64::<3>(bit));
                store_4(&mut located.shifts[half][i..], _mm256_and_si256(bit, seven));
            }
            let low = multiply_32(fingerprint, self.spread);
            let high = _mm256_slli_epi64::<32>(multiply_32(fingerprint, self.spread_high));
            let pattern = _mm256_add_epi64(_mm256_add_epi64(low, high), self.offsets);
            store_4(&mut located.patterns[i..], pattern);
        });
    }

    /// Returns the fingerprints and the left and right buckets of hashes, as `Table::key` does.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn keys(&self, hash: __m256i) -> (__m256i, __m256i, __m256i) {
        let (left, rest) = product(hash, self.starts);
        let (fingerprint, _) = product(rest, self.fingerprints);
        let x = _mm256_add_epi64(fingerprint, _mm256_set1_epi64x(1));
        // `x` is below 2³², so its high half is zero and needs no multiplication.
        let high = _mm256_slli_epi64::<32>(multiply_32(x, self.multiplier_high));
        let x = _mm256_add_epi64(multiply_32(x, self.multiplier), high);
        let upper = _mm256_srli_epi64::<32>(x);
        let x = _mm256_xor_si256(x, upper);
        let high = _mm256_add_epi64(
            multiply_32(x, self.multiplier_high),
            multiply_32(upper, self.multiplier),
        );
        let low = multiply_32(x, self.multiplier);
        let x = _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high));
        let (sum, _) = product(x, self.starts);
        let start = _mm256_sub_epi64(sum, left);
        let is_negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), start);
        let start = _mm256_add_epi64(start, _mm256_and_si256(is_negative, self.starts));
        (fingerprint, left, _mm256_add_epi64(start, self.right))
    }

    /// Tests the four items that start at item number `i`.
    ///
    /// # Safety
    ///
    /// For each of the four items, eight bytes are readable, starting at the item's byte number.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn contains_4(&self, words: *const u8, located: &Located, i: usize) -> u64 {
        let pattern = load_4(&located.patterns[i..]);
        let zero = |half: usize| {
            let bytes = &located.bytes[half][i..i + 4];
            // SAFETY: the caller guarantees eight readable bytes, starting at each byte number.
            let read =
                |j: usize| unsafe { words.add(bytes[j] as usize).cast::<i64>().read_unaligned() };
            let lanes = _mm256_set_epi64x(read(3), read(2), read(1), read(0));
            let lanes = _mm256_srlv_epi64(lanes, load_4(&located.shifts[half][i..]));
            let lanes = _mm256_xor_si256(lanes, pattern);
            // As in `Lanes::either_holds`, only a zero slot causes a borrow.
            _mm256_andnot_si256(lanes, _mm256_sub_epi64(lanes, self.ones))
        };
        let found = _mm256_and_si256(_mm256_or_si256(zero(0), zero(1)), self.highs);
        let absent = _mm256_cmpeq_epi64(found, _mm256_setzero_si256());
        u64::from(!_mm256_movemask_pd(_mm256_castsi256_pd(absent)) as u32 & 15)
    }
}

/// Returns the high and the low half of the product of 64-bit numbers and numbers below 2³², in two
/// steps.
#[inline]
#[target_feature(enable = "avx2")]
fn product(a: __m256i, b: __m256i) -> (__m256i, __m256i) {
    let low = multiply_32(a, b);
    let high = multiply_32(_mm256_srli_epi64::<32>(a), b);
    let upper = _mm256_add_epi64(high, _mm256_srli_epi64::<32>(low));
    let lower = _mm256_add_epi64(low, _mm256_slli_epi64::<32>(high));
    (_mm256_srli_epi64::<32>(upper), lower)
}
