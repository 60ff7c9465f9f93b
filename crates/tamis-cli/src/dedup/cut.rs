//! A block of records of one input, split and hashed for the comparison.

use memchr::memchr_iter;
use tamis::Hasher;

use super::digest::Width;
use super::window::{Mark, Odd, Timer};
use crate::key::KeyRule;
use crate::records::Block;

/// The maximum number of records that are compared together. Their digests stay in the L1 cache.
pub const BATCH: usize = 1024;

/// The maximum number of records in a cut. The digests and bounds of short records take more memory
/// than the records, so a limit in bytes is not enough.
const MOST_RECORDS: usize = 8 << 10;

/// The number of records in one call of the hash function.
const HASH_BATCH: usize = 64;

/// The rule that computes the digests of records.
pub struct Rule {
    /// Extracts the key of a record.
    pub key: KeyRule,
    /// Computes the digest of a key.
    pub hasher: Hasher,
    /// The byte that ends a record.
    pub delimiter: u8,
    /// If true, keys are kept beside their digests and compared byte by byte.
    pub keeps_keys: bool,
    /// Assigns records to the slices of a window, if there is a window.
    pub timer: Option<Timer>,
}

/// A position in the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The index of the input.
    pub input: usize,
    /// The byte offset in the input after decompression.
    pub at_bytes: u64,
}

/// Whole records and their digests. The buffers are reused for the next cut.
#[derive(Default)]
pub struct Cut<D> {
    /// The bytes of the records.
    pub block: Block,
    // Record `i` is `block[bounds[i]..bounds[i + 1]]`, its delimiter included.
    bounds: Vec<usize>,
    digests: Vec<D>,
    keys: Keys,
    // The starts of the slices of a window. Invariant: the first mark is at record 0, and the
    // others follow in order.
    marks: Vec<Mark>,
    delimiter: u8,
    /// The number of records without a key. They are compared as whole records.
    pub keyless: u64,
    /// The numbers of records without a time and of late records. Both are in the latest slice.
    pub odd: Odd,
    /// The position in the inputs at which the records end.
    pub end: Place,
    /// The number of bytes read so far from all inputs, before decompression.
    pub consumed_bytes: u64,
    /// If true, the source may block before the next bytes, so the caller should flush results now.
    pub may_wait: bool,
}

/// Keys that are not whole records; empty if every record is its own key.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    // The end of each key, and whether the record has a key. A record without a key is its own key.
    ends: Vec<(usize, bool)>,
}

impl<D: Width> Cut<D> {
    /// Finds the ends of at most [`MOST_RECORDS`] records in `block`, and returns the end of the
    /// last one.
    pub fn find_records(&mut self, delimiter: u8) -> usize {
        self.delimiter = delimiter;
        self.bounds.clear();
        self.bounds.push(0);
        let ends = memchr_iter(delimiter, &self.block).map(|at| at + 1);
        self.bounds.extend(ends.take(MOST_RECORDS));
        let end = self.bounds[self.bounds.len() - 1];
        if end < self.block.len() && self.bounds.len() <= MOST_RECORDS {
            // The last record of an input may lack its delimiter.
            self.bounds.push(self.block.len());
            return self.block.len();
        }
        end
    }

    /// Computes the digests of the records, and assigns the records to slices.
    pub fn digest(&mut self, rule: &mut Rule, scratch: &mut Vec<u8>) {
        (self.keyless, self.odd) = (0, Odd::default());
        self.digests.clear();
        self.keys.bytes.clear();
        self.keys.ends.clear();
        let records = self.bounds.windows(2).map(|bounds| {
            let record = &self.block[bounds[0]..bounds[1]];
            record.strip_suffix(&[rule.delimiter]).unwrap_or(record)
        });
        if let Some(timer) = &mut rule.timer {
            self.odd = timer.mark(records.clone(), &mut self.marks);
        } else if self.marks.is_empty() {
            self.marks.push(Mark::default());
        }
        if rule.key.is_whole() {
            self.digests.resize(records.len(), D::default());
            let mut records = records;
            for digests in self.digests.chunks_mut(HASH_BATCH) {
                let mut keys = [&[][..]; HASH_BATCH];
                keys.iter_mut().zip(&mut records).for_each(|(key, record)| *key = record);
                D::digest_each(&rule.hasher, &keys[..digests.len()], digests);
            }
            return;
        }
        for record in records {
            let key = rule.key.of(record, scratch);
            // A record without a key is compared as a whole, and only with other records without a
            // key. So a missing field loses no record.
            let (text, is_key) = (key.unwrap_or(record), key.is_some());
            let digest = D::digest(&rule.hasher, text);
            self.digests.push(if is_key { digest } else { digest.keyless() });
            self.keyless += u64::from(!is_key);
            if rule.keeps_keys {
                self.keys.bytes.extend_from_slice(text);
                self.keys.ends.push((self.keys.bytes.len(), is_key));
            }
        }
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Estimates the number of distinct records in all inputs. `found` is the number in the part
    /// read so far.
    ///
    /// The estimate is usually too high, since new records become rarer.
    pub fn expected_distinct(&self, found: u64, total_bytes: u64) -> u64 {
        let parts = total_bytes as f64 / self.consumed_bytes.max(1) as f64;
        (found as f64 * parts.max(1.0)) as u64
    }

    /// Returns the records in batches. All records of a batch are in the same slice.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_, D>> {
        let ends = self.marks.iter().skip(1).map(|next| next.from).chain([self.len()]);
        self.marks.iter().zip(ends).flat_map(move |(&Mark { from, slice }, end)| {
            let starts = (from..end).step_by(BATCH);
            starts.map(move |from| Batch { cut: self, from, len: BATCH.min(end - from), slice })
        })
    }
}

/// Consecutive records of a cut.
pub struct Batch<'a, D> {
    cut: &'a Cut<D>,
    from: usize,
    len: usize,
    slice: Option<u64>,
}

impl<'a, D> Batch<'a, D> {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the slice of the window that contains the records. Returns `None` without a window,
    /// or before the first record with a time.
    pub fn slice(&self) -> Option<u64> {
        self.slice
    }

    /// Returns the digests.
    pub fn digests(&self) -> &'a [D] {
        &self.cut.digests[self.from..self.from + self.len]
    }

    /// Returns record `i` without its delimiter.
    #[inline]
    pub fn record(&self, i: usize) -> &'a [u8] {
        let record = self.span(i, i + 1);
        // Only the last record of an input can lack its delimiter.
        record.strip_suffix(&[self.cut.delimiter]).unwrap_or(record)
    }

    /// Returns the key of record `i`, and whether the record has a key. A record without a key is
    /// its own key. Without stored keys, returns the record and true.
    #[inline]
    pub fn key(&self, i: usize) -> (&'a [u8], bool) {
        let keys = &self.cut.keys;
        let at = self.from + i;
        let Some(&(end, is_key)) = keys.ends.get(at) else { return (self.record(i), true) };
        let start = if at == 0 { 0 } else { keys.ends[at - 1].0 };
        (&keys.bytes[start..end], is_key)
    }

    /// Returns the bytes of records `from..to` with their delimiters.
    #[inline]
    pub fn span(&self, from: usize, to: usize) -> &'a [u8] {
        let bounds = &self.cut.bounds[self.from..=self.from + self.len];
        &self.cut.block[bounds[from]..bounds[to]]
    }

    /// Tests whether the last record lacks its delimiter.
    pub fn is_unterminated(&self) -> bool {
        self.span(0, self.len).last() != Some(&self.cut.delimiter)
    }

    /// Returns the byte that ends a record.
    pub fn delimiter(&self) -> u8 {
        self.cut.delimiter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyArgs;
    use crate::records::Blocks;

    fn cut(bytes: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let key = KeyArgs::default().rule();
        let hasher = Hasher::default();
        let mut rule = Rule { key, hasher, delimiter: b'\n', keeps_keys: false, timer: None };
        let mut blocks = Blocks::new(bytes, b'\n');
        let (mut cut, mut found) = (Cut::<u64>::default(), Vec::new());
        while blocks.read_block(&mut cut.block).unwrap() {
            let end = cut.find_records(b'\n');
            blocks.take_back(&mut cut.block, end);
            cut.digest(&mut rule, &mut Vec::new());
            for batch in cut.batches() {
                assert!(batch.len() <= BATCH && batch.len() == batch.digests().len());
                for i in 0..batch.len() {
                    let is_last = i + 1 == batch.len();
                    found.push((batch.record(i).to_vec(), is_last && batch.is_unterminated()));
                    assert_eq!(batch.digests()[i], rule.hasher.hash(batch.record(i)));
                }
            }
        }
        found
    }

    #[test]
    fn half_of_the_input_has_half_of_the_records() {
        let mut cut = Cut::<u64> { consumed_bytes: 500, ..Cut::default() };
        assert_eq!(cut.expected_distinct(30, 1000), 60);
        // A file that grows during the run yields more bytes than its size at the start.
        assert_eq!(cut.expected_distinct(30, 400), 30);
        cut.consumed_bytes = 0;
        assert_eq!(cut.expected_distinct(0, 1000), 0);
    }

    #[test]
    fn batches_hold_every_record_once() {
        assert_eq!(cut(b""), []);
        assert_eq!(cut(b"\n"), [(vec![], false)]);
        assert_eq!(
            cut(b"a\n\nb"),
            [(b"a".to_vec(), false), (vec![], false), (b"b".to_vec(), true)]
        );
        for len in [BATCH, MOST_RECORDS, 2 * MOST_RECORDS] {
            for len in len - 1..=len + 1 {
                assert_eq!(cut(&b"x\n".repeat(len)).len(), len);
                let text = [&b"x\n".repeat(len)[..], b"y"].concat();
                assert_eq!(cut(&text).last(), Some(&(b"y".to_vec(), true)));
            }
        }
    }
}
