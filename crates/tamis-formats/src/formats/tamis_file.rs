//! Tamis' own format: a header, the words, and the checksum of the words. Layout: `docs/formats/tamis.md`.

mod parts;
pub(crate) mod save;
mod stream;

use std::convert::Infallible;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;

use tamis::{
    Answers, AnyFilter, BitView, Bitmap, Bits, Filter as _, FilterWords, Hasher, Kind,
    ParquetBloom, Plan, TryInsert as _,
};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::encoding::header::{Header, MAGIC, header_bytes};
use crate::encoding::metadata::Metadata;
use crate::errors::{ChangeError, CreateError, DecodeError, DecodeErrorKind, ReadError};
use crate::filters::{Contents, FilterInfo, ItemCount, StoredFilter, WindowInfo, hash_each};
use crate::format::{Detection, Format, Items, Sniff};
use crate::formats::tamis_file::parts::{
    CHUNK_BYTES, Parts, TRAILER_BYTES, check_end, check_trailer,
};
use crate::items::Funnel;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "tamis",
    extensions: &["tamis"],
    summary: "every kind of filter, checksummed, used in place when mapped",
    detection: Detection::ByBytes(|bytes| Sniff::yes(bytes.starts_with(&MAGIC))),
    items: Items::Default(Funnel::Bytes),
    decode: |bytes, _| TamisFile::decode(bytes).map(Contents::new),
    encode: |contents, _, out| {
        if let Some(file) = contents.downcast_ref::<TamisFile>() {
            return Ok(file.write_to(out)?);
        }
        let why = match contents.server_image() {
            Some(_) => {
                "the filter has grown beyond its reservation and has two parts, and a Tamis file \
                stores one"
            }
            None => "a Tamis file cannot store the filter of another system",
        };
        let filter = contents.filter::<ParquetBloom>(why)?;
        Ok(TamisFile::new(AnyFilter::Parquet(filter.as_view())).write_to(out)?)
    },
    create: |options| {
        let (items, rate) = options.plan()?;
        let filter =
            Plan::new(items, rate).and_then(|plan| AnyFilter::from_plan(&plan, Hasher::default()));
        let filter = filter.map_err(|error| CreateError::refused(error.to_string()))?;
        Ok(Contents::new(TamisFile::new(filter)))
    },
    ..Format::BASE
};

/// A filter, and all values that a Tamis file stores with the filter. `B` is the storage of the bits.
///
/// Equal [`TamisFile`] values give equal bytes on every machine.
///
/// # Examples
///
/// ```
/// use tamis::{AnyFilter, Hasher, Plan};
/// use tamis_formats::TamisFile;
///
/// let mut filter = AnyFilter::from_plan(&Plan::new(1_000, 0.01)?, Hasher::default())?;
/// filter.try_insert("tamis")?;
/// let mut file = TamisFile::new(filter);
/// file.added = 1;
/// let mut bytes = Vec::new();
/// file.write_to(&mut bytes)?;
/// let back = TamisFile::decode(&bytes)?;
/// assert!(back == file && back.filter.contains("tamis"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TamisFile<B = Bitmap> {
    /// The filter.
    pub filter: AnyFilter<B>,
    /// The number of inserts, including repeated items. The number of inserts does not depend on the order of inserts
    /// or on threads. The number of a merged filter is the sum of the numbers of the two filters.
    pub added: u64,
    /// The metadata of the filter.
    pub metadata: Metadata,
}

impl<B: Bits<Word = u64>> fmt::Debug for TamisFile<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filter, added, metadata } = self;
        f.debug_struct("TamisFile")
            .field("filter", filter)
            .field("added", added)
            .field("metadata", metadata)
            .finish()
    }
}

impl<B: Bits<Word = u64> + PartialEq> PartialEq for TamisFile<B> {
    fn eq(&self, other: &Self) -> bool {
        (self.added, &self.metadata) == (other.added, &other.metadata)
            && self.filter == other.filter
    }
}

impl<B> TamisFile<B> {
    /// Creates a file of `filter`, with a count of 0 and no metadata.
    pub fn new(filter: AnyFilter<B>) -> Self {
        Self { filter, added: 0, metadata: Metadata::new() }
    }
}

impl TamisFile {
    /// Decodes a whole file and checks every byte. Takes linear time and copies the words once.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are exactly one undamaged file.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        // Checks the length before allocating the words.
        Parts::split(bytes)?;
        match Self::read_from(bytes, u64::MAX) {
            Ok(file) => Ok(file),
            Err(ReadError::Decode(error)) => Err(error),
            Err(ReadError::Io(error)) => unreachable!("a slice can be read: {error}"),
        }
    }

    /// Reads one file from a stream, such as a pipe, directly into the memory of the filter. The stream must end at the
    /// end of the file.
    ///
    /// `max_bytes` limits the memory of the bits. The limit `max_bytes` is necessary because the size in the header
    /// cannot be checked before all bytes have arrived. Memory up to the limit is reserved at once. The operating
    /// system provides the pages as bytes arrive.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`] if the stream fails, and [`ReadError::Decode`] if the bytes of the stream are not a file of
    /// Tamis.
    pub fn read_from(stream: impl Read, max_bytes: u64) -> Result<Self, ReadError> {
        let (header, bits) = stream::read(stream, max_bytes)?;
        Ok(Self::restore(header, bits)?)
    }
}

impl<B: Bits<Word = u64>> TamisFile<B> {
    /// Creates a filter that uses the words of a file in place, as [`view`](TamisFile::view) does, over storage that
    /// owns the bytes. `words` receives the range of the words in `bytes`, and returns the storage of these words.
    ///
    /// # Errors
    ///
    /// The errors of [`view`](TamisFile::view).
    ///
    /// # Panics
    ///
    /// Panics if the storage has other words than `bytes`.
    pub fn view_in(
        bytes: &[u8],
        words: impl FnOnce(Range<usize>) -> B,
    ) -> Result<Self, DecodeError> {
        let parts = Parts::split(bytes)?;
        let at = parts.header.len as u64;
        let error = |kind| DecodeError { field: "words", at, kind };
        if cfg!(target_endian = "big") {
            return Err(error(DecodeErrorKind::NotInPlace));
        }
        let in_place: &[u64] = bytemuck::try_cast_slice(parts.words)
            .map_err(|_| error(DecodeErrorKind::NotInPlace))?;
        check_end(in_place, &parts.header.plan, at + in_place.len() as u64 * 8)?;
        let start = parts.header.len;
        let bits = words(start..start + parts.words.len());
        assert!(std::ptr::eq(bits.words(), in_place), "the storage has the words of the file");
        Self::restore(parts.header, bits)
    }

    /// Creates a [`TamisFile`] from a header and words.
    fn restore(header: Header, bits: B) -> Result<Self, DecodeError> {
        let at = header.len as u64;
        let filter = AnyFilter::restore(&header.plan, header.hasher, bits).map_err(|plan| {
            DecodeError { field: "words", at, kind: DecodeErrorKind::of_plan(plan) }
        })?;
        Ok(Self { filter, added: header.added, metadata: header.metadata })
    }
}

impl<'a> TamisFile<BitView<'a>> {
    /// Creates a filter that uses the words of a file in place, for example in a mapped file. Copies no words. Takes
    /// constant time, except for cuckoo and growing filters, whose words are read once.
    ///
    /// Checks the header, the length and the unused bits at the end. Does not check the checksum of the words:
    /// [`verify`](Self::verify) checks all bytes in one pass.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless the checked parts of `bytes` are a file, or if `bytes` do not start at a multiple of 8.
    pub fn view(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::view_in(bytes, |words| BitView::new(bytemuck::cast_slice(&bytes[words])))
    }

    /// Checks every byte of a file without copying. The checks are the same as in [`TamisFile::decode`].
    ///
    /// Takes one pass at the speed of the memory or of the disk: about 0.1 s per GiB in memory.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] unless `bytes` are exactly one undamaged file.
    pub fn verify(bytes: &'a [u8]) -> Result<(), DecodeError> {
        let Parts { header, words, trailer } = Parts::split(bytes)?;
        let end = (header.len + words.len()) as u64;
        check_trailer(xxh3_64_with_seed(words, header.checksum), trailer, end)
    }
}

impl<B: Bits<Word = u64>> TamisFile<B> {
    /// Writes the file without copying the filter. [`save`](Self::save) writes the file to a path.
    ///
    /// # Errors
    ///
    /// The errors of `out`. A partly written file is never accepted as a filter.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        write(&self.filter, self.added, &self.metadata, out)
    }

    /// Writes a range of the bytes of the file, such as `0..1024`. Bytes after the end of the file are omitted.
    ///
    /// Takes time in proportion to the range, independent of its start. If the range includes the checksum at the end
    /// of the file, the method reads all words.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write_range(&self, range: Range<u64>, mut out: impl Write) -> io::Result<()> {
        let len = self.len_bytes();
        if range.start == 0 && range.end >= len {
            return self.write_to(out);
        }
        let (header, seed) = self.header();
        let (words_at, trailer_at) = (header.len() as u64, len - TRAILER_BYTES);
        out.write_all(common(&header, 0, &range))?;
        if range.start < trailer_at && range.end > words_at {
            let first = range.start.saturating_sub(words_at) / 8;
            let mut at = words_at + first * 8;
            let written = each_bytes_from(&self.filter, first, |bytes| {
                out.write_all(common(bytes, at, &range)).map_err(Some)?;
                at += bytes.len() as u64;
                if at < range.end { Ok(()) } else { Err(None) }
            });
            if let Err(Some(error)) = written {
                return Err(error);
            }
        }
        if range.start < len && range.end > trailer_at {
            let mut checksum = Xxh3::with_seed(seed);
            let Ok(()) = each_bytes_from(&self.filter, 0, |bytes| {
                checksum.update(bytes);
                Ok::<(), Infallible>(())
            });
            let trailer = checksum.digest().to_le_bytes();
            out.write_all(common(&trailer, trailer_at, &range))?;
        }
        Ok(())
    }

    /// Returns the header and the checksum of the header.
    fn header(&self) -> (Vec<u8>, u64) {
        header(&self.filter, self.added, &self.metadata)
    }

    /// Tests whether the rate of the filter is above the planned rate. Reads all bits.
    ///
    /// If the number of inserts is known and at most the capacity, the result is false, even if more bits are set than
    /// expected. If the number of inserts is unknown or above the capacity, the set bits determine the result. For
    /// windows and growing filters, the set bits always determine the result.
    #[must_use]
    pub fn is_over_rate(&self) -> bool {
        !self.is_counted_within() && self.filter.is_over_rate()
    }

    /// Tests whether the count of inserts alone proves that the filter holds at most as many items as its capacity.
    #[must_use]
    pub fn is_counted_within(&self) -> bool {
        let plan = self.filter.plan();
        // Windows and growing filters are excluded from the test of the count. The items of a window may have arrived
        // unevenly, which the count does not show. A growing filter computes its own rate.
        let is_counted = !plan.kind().forgets() && !plan.kind().grows();
        is_counted && self.added > 0 && self.added <= plan.items()
    }

    /// Returns the number of items if the filter counts its items. The number may include repeated items.
    #[must_use]
    pub fn counted_items(&self) -> Option<u64> {
        match &self.filter {
            AnyFilter::Growing(filter) => Some(filter.len()),
            AnyFilter::Cuckoo(filter) => Some(filter.len()),
            _ => None,
        }
    }

    /// Returns the report about the filter. The estimates come from `part`, which is the filter itself or a
    /// [sample](AnyFilter::sample) of the filter. `counted` is the number of items to report instead of the estimate.
    /// Reads all bits of `part`.
    #[must_use]
    pub fn info_from<C: Bits<Word = u64>>(
        &self,
        part: &AnyFilter<C>,
        counted: Option<u64>,
    ) -> FilterInfo {
        let (plan, kind) = (self.filter.plan(), self.filter.plan().kind());
        let planned = self.info_of_plan();
        let bytes = planned.bytes;
        let share = plan.bits().max(1) as f64 / part.plan().bits().max(1) as f64;
        let items = counted.map_or_else(|| part.estimate_items() * share, |items| items as f64);
        let is_over_rate = !self.is_counted_within() && part.is_over_rate();
        let is_full = matches!(&self.filter, AnyFilter::Growing(filter) if filter.is_full());
        let is_endless = (kind.grows() || kind.forgets()) && !is_over_rate && !is_full;
        // A filter can contain more items than planned, if the plan rounded the size up.
        let most = plan.items_at(plan.rate()).max(plan.items()) as f64;
        // A window may exceed its rate with fewer items than planned, if the items arrived unevenly.
        let headroom = if is_full || is_over_rate { 0 } else { (most - items).max(0.0) as u64 };
        FilterInfo {
            items,
            items_are: if counted.is_some() { ItemCount::Inserted } else { ItemCount::Estimated },
            fill: part.fill(),
            rate_now: part.estimate_rate(),
            is_over_rate,
            headroom_items: (!is_endless).then_some(headroom),
            refuses: kind == Kind::Cuckoo || is_full,
            bytes_per_new_item: (kind.grows() && items > 0.0).then(|| bytes as f64 / items),
            window: match &self.filter {
                AnyFilter::Window(window) => Some(WindowInfo {
                    span: window.span(),
                    slices: window.slices(),
                    refreshes: window.refreshes(),
                }),
                _ => None,
            },
            ..planned
        }
    }

    /// Returns the part of the report that does not depend on the bits: kind, layout, size, capacity and planned rate.
    /// Constant time.
    #[must_use]
    pub fn info_of_plan(&self) -> FilterInfo {
        let (plan, bits) = (self.filter.plan(), stored_bits(&self.filter));
        FilterInfo {
            kind: plan.kind().name(),
            layout: self.filter.layout().to_string(),
            bits,
            bytes: bits.div_ceil(64) * 8,
            capacity: (!plan.kind().grows()).then_some(plan.items()),
            rate_planned: Some(plan.rate()),
            ..FilterInfo::default()
        }
    }

    /// Returns the number of bytes that [`write_to`](Self::write_to) writes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        header_bytes(self.metadata.len_bytes()) as u64 + self.filter.len_words() * 8 + TRAILER_BYTES
    }
}

impl StoredFilter for TamisFile {
    fn contains_each(&self, keys: &[&[u8]], answers: &mut Answers) {
        let hashes = hash_each(self.filter.hasher(), keys);
        self.filter.contains_hashes(&hashes, answers.reset(keys.len()));
    }

    fn insert_each(&mut self, keys: &[&[u8]], answers: &mut Answers) -> Result<(), ChangeError> {
        let hashes = hash_each(self.filter.hasher(), keys);
        let inserted = self.filter.try_insert_copy_hashes(&hashes, answers.reset(keys.len()));
        let count = inserted.err().map_or(keys.len(), |error| error.inserted);
        self.added = self.added.saturating_add(count as u64);
        inserted.map_err(|error| ChangeError::refused(error.to_string()))
    }

    fn merge(&mut self, other: &Self) -> Result<bool, ChangeError> {
        let refused = |error: tamis::MergeError| ChangeError::refused(error.to_string());
        self.filter.merge(&other.filter).map_err(refused)?;
        self.added = self.added.saturating_add(other.added);
        Ok(true)
    }

    fn info(&self) -> FilterInfo {
        self.info_from(&self.filter, None)
    }

    /// The planned rate in the file is used, even if the caller gives a rate.
    fn exceeded_rate(&self, info: &FilterInfo, _: Option<f64>) -> Option<f64> {
        info.rate_planned.filter(|_| info.is_over_rate)
    }
}

/// Writes a file without copying the filter.
pub(super) fn write(
    filter: &impl FilterWords,
    added: u64,
    metadata: &Metadata,
    out: impl Write,
) -> io::Result<()> {
    let (header, seed) = header(filter, added, metadata);
    // The pages of a growing filter are smaller than a chunk.
    let mut out = BufWriter::with_capacity(CHUNK_BYTES, out);
    let mut checksum = Xxh3::with_seed(seed);
    let written = out
        .write_all(&header)
        .and_then(|()| {
            each_bytes_from(filter, 0, |bytes| {
                checksum.update(bytes);
                out.write_all(bytes)
            })
        })
        .and_then(|()| out.write_all(&checksum.digest().to_le_bytes()))
        .and_then(|()| out.flush());
    if written.is_err() {
        // A drop would write the buffered bytes after the error.
        _ = out.into_parts();
    }
    written
}

/// Returns the header of a file and the checksum of the header.
fn header(filter: &impl FilterWords, added: u64, metadata: &Metadata) -> (Vec<u8>, u64) {
    Header::encode(filter.plan(), stored_bits(filter), filter.hasher(), added, metadata)
}

/// Returns the size of the words in bits. For a growing filter, the size differs from the size in
/// the plan.
fn stored_bits(filter: &impl FilterWords) -> u64 {
    let plan = filter.plan();
    if plan.kind().grows() { filter.len_words() * 64 } else { plan.bits() }
}

/// Passes the words from word `start` to `each`, as bytes of the file.
fn each_bytes_from<E>(
    filter: &impl FilterWords,
    start: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut swapped = Vec::new();
    filter.each_words_from(start, |words| {
        for chunk in words.chunks(CHUNK_BYTES / 8) {
            let chunk = if cfg!(target_endian = "big") {
                swapped.clear();
                swapped.extend(chunk.iter().map(|word| word.to_le()));
                &swapped
            } else {
                chunk
            };
            each(bytemuck::cast_slice(chunk))?;
        }
        Ok(())
    })
}

/// Returns the part of `bytes` that is inside a range of the file. The first byte of `bytes` is at offset `at` of the
/// file.
fn common<'b>(bytes: &'b [u8], at: u64, range: &Range<u64>) -> &'b [u8] {
    let len = bytes.len() as u64;
    let [start, end] = [range.start, range.end].map(|it| it.saturating_sub(at).min(len) as usize);
    bytes.get(start..end).unwrap_or_default()
}
