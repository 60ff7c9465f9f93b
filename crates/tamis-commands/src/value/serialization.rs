//! Encodes a value to bytes for snapshots and the log, and decodes a value from the bytes.
//!
//! ```text
//! | tag: u64 | numbers of the kind: u64 or f64, little-endian | bits, to the end |
//! ```
//!
//! If a filter fits a Tamis file (`tamis-formats`), the image of the filter contains this file. The image of a
//! RedisBloom filter contains the header and chunks of its dump. An image contains neither a length nor a checksum. The
//! caller stores the length and the checksum.

mod error;
mod reader;
mod writer;

use std::io::{self, Read, Write};

use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::batch::Family;
use crate::value::Value;
use crate::value::partial_load::PartialLoad;
use crate::value::scalable_bloom::ScalableBloom;
pub use crate::value::serialization::error::ImageError;
pub(crate) use crate::value::serialization::reader::Reader;
pub(crate) use crate::value::serialization::writer::Writer;
use crate::value::sparse_bytes::SparseBytes;

/// The longest string that a command writes, in bytes. The decoder rejects an image of a string that is longer than
/// `MAX_STRING_BYTES`.
pub const MAX_STRING_BYTES: usize = 512 << 20;

/// The tag of each kind of value in an image. Tags never change.
mod tag {
    pub const BLOOM: u64 = 1;
    pub const REDIS_BLOOM: u64 = 2;
    pub const REDIS_CUCKOO: u64 = 3;
    pub const FILTER: u64 = 4;
    pub const BYTES: u64 = 5;
    pub const PARTIAL_LOAD: u64 = 6;
    pub const NEW_BLOOM: u64 = 7;
    pub const NEW_FILTER: u64 = 8;
}

impl Value {
    /// Writes the value as bytes. If other threads insert into a Bloom filter during the call, the
    /// image may or may not contain the bits that these threads set.
    ///
    /// `counted_items` is the number of [items](Self::counted_items) that the caller read at an earlier time. If
    /// `counted_items` is `None`, the image contains the current number of items. After decoding, the caller
    /// [replays](ScalableBloom::restore_hashes) the inserts since the earlier time, and the replay counts the items.
    ///
    /// # Errors
    ///
    /// Any error of `out`.
    pub fn write_image(&self, counted_items: Option<u64>, out: &mut dyn Write) -> io::Result<()> {
        self.write_to(&mut Writer { counted_items, ..Writer::whole(out) })
    }

    /// Returns the bytes that [`write_image`](Self::write_image) writes.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "writing to memory never fails")]
    pub fn to_image(&self) -> Vec<u8> {
        let mut image = Vec::new();
        self.write_image(None, &mut image).expect("writing to memory never fails");
        image
    }

    /// Returns the image of a new filter without items: the parameters without the bits. The image
    /// is short for a filter of any size. [`read_logged_image`](Self::read_logged_image) creates
    /// the same filter from the image.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_commands::{ScalableBloom, Value};
    ///
    /// let new = Value::Bloom(Box::new(ScalableBloom::reserve(1_000_000, 0.01, None)?));
    /// let image = new.new_image();
    /// assert!(image.len() < 200);
    /// let back = Value::read_logged_image(&image).unwrap();
    /// assert_eq!(back.memory_bytes(), new.memory_bytes());
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn new_image(&self) -> Vec<u8> {
        let mut image = Vec::new();
        let mut out = Writer { is_new: true, ..Writer::whole(&mut image) };
        // Writing to memory never fails.
        _ = self.write_to(&mut out);
        image
    }

    /// Returns the length of the image, in bytes, without reading the bits of a Tamis filter.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "nothing is written")]
    pub fn image_bytes(&self) -> u64 {
        let mut nothing = io::sink();
        let mut out = Writer { skipped: u64::MAX, ..Writer::whole(&mut nothing) };
        self.write_to(&mut out).expect("nothing is written");
        u64::MAX - out.skipped
    }

    /// Returns at most `max_bytes` bytes of the image, from byte `start` on. The result is empty past the end of the
    /// image. For a Tamis filter, reads only the requested part of the filter. The last part of an image contains a
    /// checksum, for which this method reads the whole filter.
    pub(crate) fn image_part(&self, start: u64, max_bytes: usize) -> Vec<u8> {
        let mut part = Vec::new();
        // The writer returns an error after the part is complete.
        let mut out = Writer { skipped: start, left: max_bytes as u64, ..Writer::whole(&mut part) };
        _ = self.write_to(&mut out);
        part
    }

    fn write_to(&self, out: &mut Writer<'_>) -> io::Result<()> {
        match self {
            Value::Bloom(filter) => Self::write_bloom(filter, out),
            Value::RedisBloom(filter) => {
                out.u64(tag::REDIS_BLOOM)?;
                out.dump(&filter.header(), |position| filter.chunk(position))
            }
            Value::RedisCuckoo(filter) => {
                out.u64(tag::REDIS_CUCKOO)?;
                out.dump(&filter.header(), |position| filter.chunk(position))
            }
            Value::Filter(filter) if out.is_new => {
                out.u64(tag::NEW_FILTER)?;
                out.new_filter(&filter.filter)
            }
            Value::Filter(filter) => {
                out.u64(tag::FILTER)?;
                out.file(filter)
            }
            Value::Empty(empty) => empty.build().write_to(out),
            Value::Bytes(bytes) => {
                out.u64(tag::BYTES)?;
                out.u64(bytes.len() as u64)?;
                for (start, piece) in bytes.pieces(0..bytes.len()) {
                    if let Some(piece) = piece {
                        out.u64(start as u64)?;
                        out.sized(piece)?;
                    }
                }
                Ok(())
            }
            Value::PartialLoad(part) => {
                out.u64(tag::PARTIAL_LOAD)?;
                out.u64(part.len_bytes())?;
                out.write_all(part.bytes())
            }
        }
    }

    /// Writes the image of the value that holds the given filter.
    pub(crate) fn write_bloom(filter: &ScalableBloom, out: &mut Writer<'_>) -> io::Result<()> {
        out.u64(if out.is_new { tag::NEW_BLOOM } else { tag::BLOOM })?;
        filter.write_image(out)
    }

    /// Decodes a value that a client sends, from the image in a payload of `DUMP` or in chunks of
    /// `BF.SCANDUMP`.
    ///
    /// RedisBloom filters and strings have other dump formats, so this function rejects the images of RedisBloom
    /// filters and strings. The header of a rejected image could request memory without supplying the bytes. A [new
    /// image](Self::new_image) may request up to `max_bytes` of memory, as `BF.RESERVE` does.
    ///
    /// # Errors
    ///
    /// [`ImageError`] if the bytes are not an image. For an image with bits, this function allocates at most a few
    /// times the length of the image.
    pub fn from_dump(mut image: &[u8], max_bytes: u64) -> Result<Self, ImageError> {
        let len = image.len() as u64;
        Self::read_dump(&mut image, len, Some(max_bytes))
    }

    /// Reads a value that a client sends, from the `len` bytes of an image: see
    /// [`from_dump`](Self::from_dump). With `None` for the maximum size, rejects a new image,
    /// because `DUMP` never returns a new image.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`from_dump`](Self::from_dump).
    pub fn read_dump(
        bytes: &mut dyn Read,
        len: u64,
        new_max_bytes: Option<u64>,
    ) -> Result<Self, ImageError> {
        let max_bytes = new_max_bytes.unwrap_or(u64::MAX);
        let mut from = Reader { bytes, left: len, max_bytes, is_new: false };
        match from.u64()? {
            tag @ (tag::BLOOM | tag::FILTER | tag::PARTIAL_LOAD) => from.value(tag),
            tag if new_max_bytes.is_some() => from.new_value(tag),
            _ => Err(ImageError::Value),
        }
    }

    /// Decodes a value from an image. For every value that [`from_dump`](Self::from_dump) returns,
    /// decoding the [image](Self::to_image) of the value returns an equal value.
    ///
    /// # Errors
    ///
    /// This function returns the same errors as [`read_image`](Self::read_image).
    pub fn from_image(mut image: &[u8]) -> Result<Self, ImageError> {
        let len = image.len() as u64;
        Self::read_image(&mut image, len)
    }

    /// Reads a value from the `len` bytes of its image.
    ///
    /// # Errors
    ///
    /// [`ImageError`] if the bytes are not an image. This function allocates at most a few times `len` bytes.
    pub fn read_image(bytes: &mut dyn Read, len: u64) -> Result<Self, ImageError> {
        let mut from = Reader { bytes, left: len, max_bytes: u64::MAX, is_new: false };
        let tag = from.u64()?;
        from.value(tag)
    }

    /// Reads a value from an image that the server itself wrote to the log, such as a [new
    /// image](Self::new_image). For a new image, allocates as much memory as the command that
    /// created the filter.
    ///
    /// # Errors
    ///
    /// [`ImageError`] if the bytes are not an image.
    pub fn read_logged_image(mut image: &[u8]) -> Result<Self, ImageError> {
        let left = image.len() as u64;
        let mut from = Reader { bytes: &mut image, left, max_bytes: u64::MAX, is_new: false };
        match from.u64()? {
            tag @ (tag::NEW_BLOOM | tag::NEW_FILTER) => from.new_value(tag),
            tag => from.value(tag),
        }
    }
}

/// Returns the family and the header of a RedisBloom filter in a [new image](Value::new_image);
/// `None` for a filter with a layout of Tamis.
pub(crate) fn redisbloom_header(new_image: &[u8]) -> Option<(Family, &[u8])> {
    // The image consists of the tag, the length of the header, and the header.
    let (tag, rest) = new_image.split_first_chunk().expect("an image has a tag");
    let family = match u64::from_le_bytes(*tag) {
        tag::REDIS_BLOOM => Family::Bloom,
        tag::REDIS_CUCKOO => Family::Cuckoo,
        _ => return None,
    };
    Some((family, &rest[size_of::<u64>()..]))
}

impl Reader<'_> {
    /// Creates the filter of a [new image](Value::new_image) with the given tag.
    fn new_value(mut self, tag: u64) -> Result<Value, ImageError> {
        match tag {
            tag::NEW_BLOOM => {
                self.is_new = true;
                self.value(tag::BLOOM)
            }
            tag::NEW_FILTER => {
                let value = Value::Filter(Box::new(TamisFile::new(self.new_filter()?)));
                if self.left == 0 { Ok(value) } else { Err(ImageError::Value) }
            }
            _ => Err(ImageError::Value),
        }
    }

    /// Reads the value with the given tag, to the end of the image.
    fn value(mut self, tag: u64) -> Result<Value, ImageError> {
        let from = &mut self;
        let value = match tag {
            tag::BLOOM => Value::Bloom(Box::new(ScalableBloom::read_image(from)?)),
            tag::REDIS_BLOOM => {
                let header = from.sized()?;
                let mut filter = RedisBloom::from_header(&header)?;
                from.chunks(|position, bytes| filter.load_chunk(position, bytes).is_ok())?;
                Value::RedisBloom(Box::new(filter))
            }
            tag::REDIS_CUCKOO => {
                let header = from.sized()?;
                let mut filter = RedisCuckoo::from_header(&header)?;
                from.chunks(|position, bytes| filter.load_chunk(position, bytes).is_ok())?;
                Value::RedisCuckoo(Box::new(filter))
            }
            tag::FILTER => Value::Filter(Box::new(from.filter()?)),
            tag::BYTES => {
                let len = usize::try_from(from.u64()?).ok().filter(|&len| len <= MAX_STRING_BYTES);
                let len = len.ok_or(ImageError::Value)?;
                let mut bytes = SparseBytes::default();
                bytes.grow(len);
                from.chunks(|start, piece| {
                    let start = usize::try_from(start).ok().filter(|&start| start <= len);
                    let fits = start.filter(|start| piece.len() <= len - start);
                    fits.map(|start| bytes.write(start, piece)).is_some()
                })?;
                Value::Bytes(bytes)
            }
            tag::PARTIAL_LOAD => {
                let len_bytes = from.u64()?;
                let bytes = from.exactly(from.left)?;
                let part = PartialLoad::from_parts(len_bytes, bytes).ok_or(ImageError::Value)?;
                Value::PartialLoad(Box::new(part))
            }
            _ => return Err(ImageError::Value),
        };
        if from.left == 0 { Ok(value) } else { Err(ImageError::Value) }
    }
}

#[cfg(test)]
mod tests {
    use tamis::{Answers, AnyFilter, Hasher, Kind, Plan, Span};
    use tamis_redisbloom::{RedisBloomOptions, RedisCuckooOptions};

    use super::*;
    use crate::new_filter::new_filter;

    fn file(filter: AnyFilter) -> Value {
        Value::Filter(Box::new(TamisFile::new(filter)))
    }

    fn values() -> Vec<Value> {
        let items: Vec<Vec<u8>> = (0..500).map(|i| format!("item:{i}").into_bytes()).collect();
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let mut answers = Answers::new();
        let mut scalable = |mut filter: ScalableBloom| {
            filter.insert_each(&items, &mut answers).unwrap();
            Value::Bloom(Box::new(filter))
        };
        let filter = |kind| {
            let plan = Plan::for_kind(kind, 1000, 0.01).unwrap();
            let mut filter = AnyFilter::from_plan(&plan, Hasher::default()).unwrap();
            items.iter().for_each(|item| _ = filter.try_insert(*item).unwrap());
            file(filter)
        };
        let mut bloom = RedisBloom::new(&RedisBloomOptions::default()).unwrap();
        let mut cuckoo = RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap();
        for item in &items {
            bloom.insert(*item).unwrap();
            cuckoo.insert(*item).unwrap();
        }
        let mut sparse = SparseBytes::default();
        sparse.write(1 << 20, b"far");
        vec![
            scalable(ScalableBloom::reserve(1000, 0.01, Some(2)).unwrap()),
            scalable(ScalableBloom::reserve(100, 0.01, Some(2)).unwrap()),
            scalable(ScalableBloom::reserve(1000, 1e-7, None).unwrap()),
            scalable(ScalableBloom::growing(100, 0.01, 2, Hasher::default()).unwrap()),
            scalable(ScalableBloom::reserve_by(100, 0.01, Some(2), Hasher::keyed([1, 2])).unwrap()),
            scalable(ScalableBloom::reserve_by(1000, 0.01, None, Hasher::keyed([1, 2])).unwrap()),
            scalable(ScalableBloom::growing(100, 0.01, 2, Hasher::keyed([1, 2])).unwrap()),
            filter(Kind::Counting),
            filter(Kind::Growing),
            filter(Kind::Window),
            Value::RedisBloom(Box::new(bloom)),
            Value::RedisCuckoo(Box::new(cuckoo)),
            Value::RedisCuckoo(Box::new(RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap())),
            Value::Bytes(b"text".to_vec().into()),
            Value::Bytes(b"text".repeat(5000).into()),
            Value::Bytes(sparse),
            Value::PartialLoad(Box::new(PartialLoad::from_parts(10, b"part".to_vec()).unwrap())),
        ]
    }

    #[test]
    fn every_value_comes_back_from_its_image() {
        for value in values() {
            let image = value.to_image();
            assert_eq!(Value::from_image(&image).unwrap().to_image(), image);
        }
    }

    #[test]
    fn a_new_filter_is_created_again_from_its_parameters() {
        let window = |span, refreshes| {
            let plan = Plan::window(1000, 0.01, 3).unwrap();
            let hasher = Hasher::sip13([1, 2]);
            file(new_filter(&plan, hasher, Some(span), refreshes, 1_700_000_000_000).unwrap())
        };
        let filter = |kind| {
            let plan = Plan::for_kind(kind, 1000, 0.01).unwrap();
            file(AnyFilter::from_plan(&plan, Hasher::xxh3(7)).unwrap())
        };
        let scalable = |made: Result<_, _>| Value::Bloom(Box::new(made.unwrap()));
        let (bloom, cuckoo) = (RedisBloomOptions::default(), RedisCuckooOptions::default());
        let new = [
            scalable(ScalableBloom::reserve(1000, 0.01, Some(2))),
            scalable(ScalableBloom::reserve(1000, 1e-7, None)),
            scalable(ScalableBloom::growing(100, 0.01, 2, Hasher::default())),
            Value::RedisBloom(Box::new(RedisBloom::new(&bloom).unwrap())),
            Value::RedisCuckoo(Box::new(RedisCuckoo::new(&cuckoo).unwrap())),
            filter(Kind::SplitBlock),
            filter(Kind::Cuckoo),
            filter(Kind::Counting),
            filter(Kind::Growing),
            window(Span::Items(1000), false),
            window(Span::Millis(60_000), true),
        ];
        for value in new {
            let short = value.new_image();
            let back = Value::read_logged_image(&short).unwrap();
            assert_eq!(back.to_image(), value.to_image(), "{value:?}");
            assert_eq!(back.new_image(), short);
            let is_foreign = matches!(value, Value::RedisBloom(_) | Value::RedisCuckoo(_));
            let is_refused = Value::from_image(&short).is_err();
            assert!(is_refused || is_foreign, "clients cannot send short images");
        }
    }

    #[test]
    fn fingerprints_that_a_header_does_not_count_are_in_the_image() {
        let mut full = RedisCuckoo::new(&RedisCuckooOptions::default()).unwrap();
        let header = full.header();
        full.insert("item").unwrap();
        // If items are inserted during a dump, the chunks contain fingerprints that the header does
        // not count.
        let mut loaded = RedisCuckoo::from_header(&header).unwrap();
        let (next, chunk) = full.chunk(1).unwrap();
        loaded.load_chunk(next, &chunk).unwrap();
        assert!(loaded.contains("item") && loaded.is_empty());
        let image = Value::RedisCuckoo(Box::new(loaded)).to_image();
        let Value::RedisCuckoo(back) = Value::from_image(&image).unwrap() else { panic!() };
        assert!(back.contains("item"));
    }

    #[test]
    fn an_image_is_the_sum_of_its_parts() {
        for value in values() {
            let whole = value.to_image();
            assert_eq!(value.image_bytes(), whole.len() as u64);
            for max_bytes in [1000, 4097, whole.len(), whole.len() + 1] {
                let mut joined = Vec::new();
                loop {
                    let part = value.image_part(joined.len() as u64, max_bytes);
                    assert!(part.len() <= max_bytes);
                    if part.is_empty() {
                        break;
                    }
                    joined.extend(part);
                }
                assert_eq!(joined, whole);
            }
        }
    }

    #[test]
    fn a_truncated_or_extended_image_is_refused() {
        for value in values() {
            let mut bytes = value.to_image();
            for len in (0..bytes.len()).step_by(97).filter(|&len| len != bytes.len()) {
                // A string may lack chunks, so a string that ends between two chunks is also a
                // valid string.
                let is_text = matches!(value, Value::Bytes(_) | Value::PartialLoad(_)) && len >= 16;
                let is_refused = Value::from_image(&bytes[..len]).is_err();
                assert!(is_refused || is_text || len > bytes.len() - 8, "{value:?} at {len}");
            }
            bytes.extend([1; 9]);
            assert!(Value::from_image(&bytes).is_err());
        }
    }

    #[test]
    fn an_image_with_impossible_parts_is_refused() {
        let mut growing = ScalableBloom::growing(100, 0.01, 2, Hasher::default()).unwrap();
        growing.insert_each(&[b"a".as_slice()], &mut Answers::new()).unwrap();
        let sound = Value::Bloom(Box::new(growing)).to_image();
        // The expansion and the set of parts follow the tag, the rate and the capacity.
        for (at, number) in [(24, 0_u64), (32, 0), (32, 2), (32, 4)] {
            let mut bytes = sound.clone();
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            let refused = Value::from_image(&bytes);
            assert!(matches!(refused, Err(ImageError::Value)), "{number} at {at}");
        }
        assert!(Value::from_image(&sound).is_ok());
    }

    #[test]
    fn items_inserted_while_an_image_is_written_are_counted_once_after_replay() {
        let mut filter = ScalableBloom::reserve(2, 0.01, Some(2)).unwrap();
        let hashes = [b"a", b"b", b"c"].map(|item| Hasher::default().hash(item));
        assert_eq!(filter.insert_hash(hashes[0]), Ok(true));
        let before = Some(filter.items());
        assert_eq!(filter.insert_hash(hashes[1]), Ok(true));
        let mut bytes = Vec::new();
        Value::Bloom(Box::new(filter)).write_image(before, &mut bytes).unwrap();
        let back = Value::from_image(&bytes).unwrap();
        let Value::Bloom(mut back) = back else { panic!() };
        assert_eq!(back.items(), 1);
        back.restore_hashes(&hashes[1..]).unwrap();
        assert_eq!((back.items(), back.parts()), (3, 2), "the last item is in the overflow part");
    }
}
