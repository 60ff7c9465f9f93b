//! A block of records of one input, split and hashed for the comparison.

use tamis::Hasher;

use crate::commands::dedup::digest::Width;
use crate::commands::dedup::window::{OddTimes, SliceStart, Timer};
use crate::records::key::{KeyRule, RecordForm};
use crate::records::record_reader::InputPosition;
use crate::records::split::{BlockBuffer, RecordEnd};

/// The maximum number of records in a part. The digests of a part stay in the L1 cache.
pub const BATCH: usize = 1024;

/// The maximum number of records in a batch. The digests and bounds of short records take more
/// memory than the records, so a limit in bytes is not enough.
const MOST_RECORDS: usize = 8 << 10;

/// The number of records in one call of the hash function.
const HASH_BATCH: usize = 64;

/// The rule that computes the digests of records.
pub struct RecordRule {
    /// Extracts the key of a record.
    pub key: KeyRule,
    /// Computes the digest of a key.
    pub hasher: Hasher,
    /// The form in which records are read.
    pub form: RecordForm,
    /// If true, keys are stored beside their digests and compared byte by byte.
    pub keeps_keys: bool,
    /// Assigns records to the slices of a window, if there is a window.
    pub timer: Option<Timer>,
}

impl RecordRule {
    /// Finds the columns of CSV in the header of an input.
    ///
    /// # Errors
    ///
    /// Returns a message if the header lacks a column.
    pub fn set_header(&mut self, header: &[u8]) -> Result<(), String> {
        self.key.set_header(header)?;
        self.timer.as_mut().map_or(Ok(()), |timer| timer.set_header(header))
    }
}

/// Complete records and their digests. The buffers are reused for the next batch.
#[derive(Default)]
pub struct RecordBatch<D> {
    /// The bytes of the records.
    pub block: BlockBuffer,
    // Record `i` is `block[bounds[i]..bounds[i + 1]]`, its delimiter included.
    bounds: Vec<usize>,
    digests: Vec<D>,
    keys: BatchKeys,
    // The starts of the slices of a window. Invariant: the first mark is at record 0, and the other
    // marks follow in order.
    marks: Vec<SliceStart>,
    delimiter: u8,
    /// True if the block is the header of the output, which has no records.
    pub is_output_header: bool,
    /// The number of records without a key. A record without a key is compared as a whole record.
    pub keyless: u64,
    /// The numbers of records without a time and of late records. The timer assigns records without
    /// a time and late records to the latest slice.
    pub odd: OddTimes,
    /// The position in the inputs at which the last record ends.
    pub end: InputPosition,
    /// The number of bytes read so far from all inputs, before decompression.
    pub consumed_bytes: u64,
    /// If true, reading the next bytes may block, so the caller should flush its results before the
    /// read.
    pub may_wait: bool,
}

/// Keys that are not whole records. If every record is its own key, this buffer is empty.
#[derive(Default)]
struct BatchKeys {
    bytes: Vec<u8>,
    // The end of each key, and whether the record has a key. A record without a key is its own key.
    ends: Vec<(usize, bool)>,
}

impl<D: Width> RecordBatch<D> {
    /// Finds the ends of at most [`MOST_RECORDS`] records in `block`, and returns the end of the
    /// last record.
    pub fn find_records(&mut self, end: RecordEnd) -> usize {
        self.is_output_header = false;
        self.delimiter = end.byte();
        self.bounds.clear();
        self.bounds.push(0);
        self.bounds.extend(end.ends(&self.block).take(MOST_RECORDS));
        self.bounds[self.bounds.len() - 1]
    }

    /// Marks the block as a header, which has no records, and returns the end of the
    /// block. `is_of_output` is true if the block is the header of the output.
    pub fn set_header(&mut self, is_of_output: bool) -> usize {
        self.is_output_header = is_of_output;
        self.bounds.clear();
        self.bounds.push(0);
        self.block.len()
    }

    /// Computes the digests of the records, and assigns the records to slices.
    pub fn digest(&mut self, rule: &mut RecordRule, scratch: &mut Vec<u8>) {
        (self.keyless, self.odd) = (0, OddTimes::default());
        self.digests.clear();
        self.keys.bytes.clear();
        self.keys.ends.clear();
        let records = self.bounds.windows(2).map(|bounds| {
            let record = &self.block[bounds[0]..bounds[1]];
            record.strip_suffix(&[rule.form.end.byte()]).unwrap_or(record)
        });
        if let Some(timer) = &mut rule.timer {
            self.odd = timer.mark(records.clone(), &mut self.marks);
        } else if self.marks.is_empty() {
            self.marks.push(SliceStart::default());
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
            // key. A missing field therefore causes no lost record.
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

    /// Estimates the number of distinct records in all inputs. `found` is the number of distinct
    /// records in the bytes read so far.
    ///
    /// The estimate is usually too high, because new records become rarer during a run.
    pub fn expected_distinct(&self, found: u64, total_bytes: u64) -> u64 {
        let parts = total_bytes as f64 / self.consumed_bytes.max(1) as f64;
        (found as f64 * parts.max(1.0)) as u64
    }

    /// Returns the records in parts. All records of a part are in the same slice.
    pub fn parts(&self) -> impl Iterator<Item = BatchPart<'_, D>> {
        let ends = self.marks.iter().skip(1).map(|next| next.from).chain([self.len()]);
        self.marks.iter().zip(ends).flat_map(move |(&SliceStart { from, slice }, end)| {
            let starts = (from..end).step_by(BATCH);
            starts.map(move |from| BatchPart {
                batch: self,
                from,
                len: BATCH.min(end - from),
                slice,
                delimiter: self.delimiter,
            })
        })
    }
}

/// Consecutive records of a batch.
pub struct BatchPart<'a, D> {
    batch: &'a RecordBatch<D>,
    from: usize,
    len: usize,
    /// The slice of the window that contains the records. `None` without a window, or before the
    /// first record with a time.
    pub slice: Option<u64>,
    /// The byte that ends a record.
    pub delimiter: u8,
}

impl<'a, D> BatchPart<'a, D> {
    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the digests.
    pub fn digests(&self) -> &'a [D] {
        &self.batch.digests[self.from..self.from + self.len]
    }

    /// Returns record `i` without its delimiter.
    #[inline]
    pub fn record(&self, i: usize) -> &'a [u8] {
        let record = self.span(i, i + 1);
        // Only the last record of an input can lack its delimiter.
        record.strip_suffix(&[self.delimiter]).unwrap_or(record)
    }

    /// Returns the key of record `i`, and whether the record has a key. A record without a key is
    /// its own key. If no keys are stored, returns the record and true.
    #[inline]
    pub fn key(&self, i: usize) -> (&'a [u8], bool) {
        let keys = &self.batch.keys;
        let at = self.from + i;
        let Some(&(end, is_key)) = keys.ends.get(at) else { return (self.record(i), true) };
        let start = if at == 0 { 0 } else { keys.ends[at - 1].0 };
        (&keys.bytes[start..end], is_key)
    }

    /// Returns the bytes of records `from..to` with their delimiters.
    #[inline]
    pub fn span(&self, from: usize, to: usize) -> &'a [u8] {
        let bounds = &self.batch.bounds[self.from..=self.from + self.len];
        &self.batch.block[bounds[from]..bounds[to]]
    }

    /// Tests whether the last record lacks its delimiter.
    pub fn is_unterminated(&self) -> bool {
        self.span(0, self.len).last() != Some(&self.delimiter)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::records::key::{KeyArgs, RecordArgs};
    use crate::records::split::BlockReader;

    /// Reads lines in batches. Calls `each` with the parts of the batches, until it returns an error.
    pub fn each_part<E>(
        bytes: &[u8],
        keeps_keys: bool,
        mut each: impl FnMut(&BatchPart<'_, u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (key, hasher) = (KeyArgs::default().rule(), Hasher::default());
        let form = RecordArgs::default().lines();
        let mut rule = RecordRule { key, hasher, form, keeps_keys, timer: None };
        let mut blocks = BlockReader::new(bytes, rule.form.end);
        let mut batch = RecordBatch::<u64>::default();
        while blocks.read_block(&mut batch.block).unwrap() {
            let end = batch.find_records(rule.form.end);
            blocks.take_back(&mut batch.block, end);
            batch.digest(&mut rule, &mut Vec::new());
            batch.parts().try_for_each(|part| each(&part))?;
        }
        Ok(())
    }

    fn records_of(bytes: &[u8]) -> Vec<(Vec<u8>, bool)> {
        let mut found = Vec::new();
        let Ok(()) = each_part(bytes, false, |part| {
            assert!(part.len() <= BATCH && part.len() == part.digests().len());
            for i in 0..part.len() {
                let is_last = i + 1 == part.len();
                found.push((part.record(i).to_vec(), is_last && part.is_unterminated()));
                assert_eq!(part.digests()[i], Hasher::default().hash(part.record(i)));
            }
            Ok::<(), std::convert::Infallible>(())
        });
        found
    }

    #[test]
    fn half_of_the_input_has_half_of_the_records() {
        let mut batch = RecordBatch::<u64> { consumed_bytes: 500, ..RecordBatch::default() };
        assert_eq!(batch.expected_distinct(30, 1000), 60);
        // A file that grows during the run yields more bytes than its size at the start.
        assert_eq!(batch.expected_distinct(30, 400), 30);
        batch.consumed_bytes = 0;
        assert_eq!(batch.expected_distinct(0, 1000), 0);
    }

    #[test]
    fn batches_hold_every_record_once() {
        assert_eq!(records_of(b""), []);
        assert_eq!(records_of(b"\n"), [(vec![], false)]);
        assert_eq!(
            records_of(b"a\n\nb"),
            [(b"a".to_vec(), false), (vec![], false), (b"b".to_vec(), true)]
        );
        for len in [BATCH, MOST_RECORDS, 2 * MOST_RECORDS] {
            for len in len - 1..=len + 1 {
                assert_eq!(records_of(&b"x\n".repeat(len)).len(), len);
                let text = [&b"x\n".repeat(len)[..], b"y"].concat();
                assert_eq!(records_of(&text).last(), Some(&(b"y".to_vec(), true)));
            }
        }
    }
}
