//! The value of a key.

pub(crate) mod empty_filter;
pub(crate) mod heap;
pub(crate) mod partial_load;
pub(crate) mod scalable_bloom;
pub(crate) mod serialization;
pub(crate) mod small_bytes;
pub(crate) mod sparse_bytes;

use tamis::{AnyFilter, FilterWords as _};
use tamis_formats::TamisFile;
use tamis_redisbloom::{RedisBloom, RedisCuckoo};

use crate::text::{self, Text};
use crate::value::heap::{boxed_bytes, file_heap_bytes};
use crate::value::partial_load::PartialLoad;
use crate::value::scalable_bloom::ScalableBloom;
use crate::value::sparse_bytes::SparseBytes;

/// The value of a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum Value {
    /// A filter that `BF.RESERVE` creates in the layout of Tamis.
    Bloom(Box<ScalableBloom>),
    /// RedisBloom's scaling Bloom filter.
    RedisBloom(Box<RedisBloom>),
    /// RedisBloom's cuckoo filter.
    RedisCuckoo(Box<RedisCuckoo>),
    /// A filter of any kind, with the metadata of its file. `TM.RESERVE` and `TM.LOAD` create
    /// filters of this variant.
    Filter(Box<TamisFile>),
    /// A string: text, a number or a bitmap.
    Bytes(SparseBytes),
    /// The chunks that `BF.LOADCHUNK` has received so far.
    PartialLoad(Box<PartialLoad>),
    /// A small filter without items, stored as parameters. The server [builds](Self::build) the filter before running a
    /// command, so no command receives the variant `Empty`.
    Empty(EmptyFilter),
}

/// A small filter without items, stored as its [new image](Value::new_image). Equal images result
/// in equal filters.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct EmptyFilter(pub(crate) Box<[u8]>);

impl Value {
    /// Returns the reply of `TYPE`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            // Use the type names of RedisBloom, because clients check these names.
            Value::Bloom(_) | Value::RedisBloom(_) | Value::PartialLoad(_) => "MBbloom--",
            Value::RedisCuckoo(_) => "MBbloomCF",
            Value::Filter(_) => "tamis-flt",
            Value::Bytes(_) => "string",
            Value::Empty(empty) => empty.build().type_name(),
        }
    }

    /// Returns the name of the filter's kind for `TM.INFO` and for errors.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Value::Bloom(filter) => filter.kind_name(),
            Value::RedisBloom(_) => "bloom (RedisBloom)",
            Value::RedisCuckoo(_) => "cuckoo (RedisBloom)",
            Value::Filter(file) => file.filter.plan().kind().name(),
            Value::Bytes(_) => "string",
            Value::PartialLoad(_) => "bloom (incomplete)",
            Value::Empty(empty) => empty.build().kind_name(),
        }
    }

    /// Returns the reply of `OBJECT ENCODING`.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        "raw"
    }

    /// Returns the memory of the value, in bytes. For a filter, returns the size of the filter
    /// without metadata, even if the bits are not allocated yet.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Value::Bloom(filter) => filter.memory_bytes(),
            Value::RedisBloom(filter) => filter.size_bytes(),
            Value::RedisCuckoo(filter) => filter.size_bytes(),
            Value::Filter(file) => match &file.filter {
                AnyFilter::Growing(filter) => filter.memory_bytes(),
                filter => filter.len_words() * 8,
            },
            Value::Bytes(bytes) => bytes.memory_bytes(),
            Value::PartialLoad(part) => part.bytes().len() as u64,
            Value::Empty(empty) => empty.build().memory_bytes(),
        }
    }
}

impl Value {
    /// Tests whether the value is a window filter with a clock more than a minute ahead of `now_millis`, in
    /// milliseconds since 1970. A window with a clock ahead loses the items that are added before the time of its
    /// clock. The synchronized clocks of two machines differ by less than a minute. Returns false if `now_millis` is 0,
    /// which means that the time is unknown ([`Env::now_millis`]).
    ///
    /// [`Env::now_millis`]: crate::Env
    #[must_use]
    pub fn is_ahead(&self, now_millis: u64) -> bool {
        let Value::Filter(file) = self else { return false };
        let AnyFilter::Window(window) = &file.filter else { return false };
        window.began_millis().is_some_and(|began| is_ahead(began, now_millis))
    }

    /// Returns the start time of the current slice of a window by time, in milliseconds since 1970. Returns `None` if
    /// the value is not a window by time.
    #[must_use]
    pub fn window_began_millis(&self) -> Option<u64> {
        match self {
            Value::Filter(file) => match &file.filter {
                AnyFilter::Window(window) => window.began_millis(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the start time of the slice that got the last insert into a window by time, in milliseconds since 1970.
    /// Returns `None` if the value is not a window by time.
    #[must_use]
    pub fn window_stored_millis(&self) -> Option<u64> {
        match self {
            Value::Filter(file) => match &file.filter {
                AnyFilter::Window(window) => window.stored_millis(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The maximum time by which the clock of a loaded window may be ahead of the server's clock.
const MAX_AHEAD_MILLIS: u64 = 60_000;

/// Tests whether a time is more than a minute ahead of `now_millis`.
pub(crate) fn is_ahead(millis: u64, now_millis: u64) -> bool {
    now_millis > 0 && millis > now_millis.saturating_add(MAX_AHEAD_MILLIS)
}

impl Value {
    /// Returns the heap memory of the value, in bytes, computed by
    /// [`allocation_bytes`](crate::allocation_bytes). The result includes all allocations of the
    /// value. [`memory_bytes`](Self::memory_bytes) returns the size of the filter alone. Takes time
    /// proportional to the number of layers.
    #[must_use]
    pub fn heap_bytes(&self) -> u64 {
        match self {
            Value::Bloom(filter) => boxed_bytes(&**filter) + filter.heap_bytes(),
            Value::RedisBloom(filter) => boxed_bytes(&**filter) + filter.heap_bytes(),
            Value::RedisCuckoo(filter) => boxed_bytes(&**filter) + filter.heap_bytes(),
            Value::Filter(file) => boxed_bytes(&**file) + file_heap_bytes(file),
            Value::Bytes(bytes) => bytes.memory_bytes(),
            Value::PartialLoad(part) => boxed_bytes(&**part) + part.heap_bytes(),
            Value::Empty(empty) => empty.heap_bytes(),
        }
    }

    /// Returns an upper bound of the length of a reply with the contents of the value, in bytes. The length of a sparse
    /// string may be far larger than the memory of the string. A file is slightly longer than the filter in the file.
    #[must_use]
    pub fn longest_reply_bytes(&self) -> u64 {
        match self {
            Value::Bytes(bytes) => bytes.len() as u64,
            value => value.memory_bytes().saturating_add(4096),
        }
    }

    /// Limits the size of one growth step of a filter that grows by whole layers, such as the filters of RedisBloom.
    /// The filter rejects an insert that needs a growth step above `max_bytes`. Filters that grow by pages ignore the
    /// limit.
    pub fn limit_growth(&mut self, max_bytes: u64) {
        match self {
            Value::RedisBloom(filter) => filter.limit_growth(max_bytes),
            Value::RedisCuckoo(filter) => filter.limit_growth(max_bytes),
            _ => {}
        }
    }
}

/// Returns the string of a key; `None` if the key does not exist.
pub(crate) fn bytes(value: Option<&Value>) -> Result<Option<&SparseBytes>, Text> {
    match value {
        None => Ok(None),
        Some(Value::Bytes(bytes)) => Ok(Some(bytes)),
        Some(_) => Err(text::WRONG_TYPE),
    }
}

/// Returns the string of a key. If the key does not exist, creates an empty string.
pub(crate) fn bytes_or_new(value: &mut Option<Value>) -> Result<&mut SparseBytes, Text> {
    match value.get_or_insert_with(|| Value::Bytes(SparseBytes::default())) {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(text::WRONG_TYPE),
    }
}

#[cfg(test)]
mod tests {
    use tamis::Answers;

    use super::*;

    fn insert_shared(filter: &ScalableBloom, items: &[&[u8]], answers: &mut Answers) -> bool {
        let hashes: Vec<u64> = items.iter().map(|item| filter.hasher().hash(item)).collect();
        filter.insert_hashes_shared(&hashes, answers)
    }

    #[test]
    fn a_value_takes_three_words_and_a_small_string_has_no_heap_memory() {
        assert_eq!(size_of::<Option<Value>>(), 24);
        let text = Value::Bytes(b"1234567890123456789012".to_vec().into());
        assert_eq!(text.heap_bytes(), 0);
    }

    #[test]
    fn a_full_filter_answers_repeats_under_shared_access() {
        let mut filter = ScalableBloom::reserve(100, 0.01, None).unwrap();
        let items: Vec<Vec<u8>> = (0..200_u8).map(|i| vec![i]).collect();
        let items: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
        let mut answers = Answers::new();
        assert!(filter.insert_each(&items, &mut answers).is_err(), "it does not expand");
        assert_eq!(filter.items(), 100);
        assert!(insert_shared(&filter, &items[..90], &mut answers));
        assert_eq!((answers.count_ones(), filter.items()), (0, 100));
        assert!(!insert_shared(&filter, &items, &mut answers), "new ones do not fit");
        assert_eq!(filter.items(), 100);
    }

    #[test]
    fn a_repeat_inside_a_batch_is_counted_once() {
        let mut filter = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
        let mut answers = Answers::new();
        filter.insert_each(&[b"first"], &mut answers).unwrap();
        assert!(insert_shared(&filter, &[b"a", b"first", b"a"], &mut answers));
        assert_eq!((answers.count_ones(), filter.items()), (1, 2));
    }

    #[test]
    fn an_empty_filter_allocates_no_bits_and_answers_like_one_with_bits() {
        let filter = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
        let items: [&[u8]; 2] = [b"a", b"b"];
        let mut answers = Answers::new();
        filter.contains_each(&items, &mut answers);
        assert_eq!((answers.count_ones(), filter.items(), filter.parts()), (0, 0, 1));
        assert_eq!((filter.estimate_rate(), filter.fill(), filter.heap_bytes()), (0.0, 0.0, 0));
        let empty = Value::Bloom(Box::new(filter));
        assert_eq!(empty.heap_bytes(), 160, "one allocation");
        let bytes = empty.to_image();
        let Ok(Value::Bloom(mut filter)) = Value::from_dump(&bytes, u64::MAX) else { panic!() };
        assert_eq!(filter.heap_bytes(), 0, "the image has no set bit");
        assert!(!insert_shared(&filter, &items, &mut answers));
        assert_eq!(filter.insert_each(&items, &mut answers), Ok(()));
        assert!(insert_shared(&filter, &items, &mut answers));
        assert_eq!((answers.count_ones(), filter.items()), (0, 2));
        let full = Value::Bloom(filter).to_image();
        assert_eq!(full.len(), bytes.len(), "bits have their place in every image");
        let Value::Bloom(back) = Value::from_dump(&full, u64::MAX).unwrap() else { panic!() };
        back.contains_each(&items, &mut answers);
        assert_eq!((answers.count_ones(), back.items()), (2, 2));
    }
}
