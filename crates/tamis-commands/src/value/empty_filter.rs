//! Stores a small filter without items as the parameters of the filter.
//!
//! A server may hold millions of filters that are reserved but not yet used. The structures and
//! bits of a filter for a hundred items take 300 bytes to 1 KiB. The parameters of the filter take
//! about a hundred bytes.

use tamis::allocation_bytes;

use crate::value::{EmptyFilter, Value};

/// The maximum size, in bytes, of a filter that is stored as parameters. A filter above `MAX_BYTES` keeps its bits,
/// because every lookup in a filter stored as parameters builds the bits.
const MAX_BYTES: u64 = 4096;

impl EmptyFilter {
    /// Builds the filter. Takes about a microsecond.
    ///
    /// # Panics
    ///
    /// This method never panics, because the image was decoded successfully when the `EmptyFilter` was created.
    #[must_use]
    pub fn build(&self) -> Value {
        Value::read_logged_image(&self.0).expect("it was built from this image before")
    }

    /// Returns the heap memory of the parameters, in bytes.
    pub(crate) fn heap_bytes(&self) -> u64 {
        allocation_bytes(self.0.len())
    }
}

impl Value {
    /// Converts a small filter without items to [`Value::Empty`]. Returns the value unchanged if the value is not a
    /// small filter without items.
    ///
    /// The filter that is built from the result has the same image as the original filter. A filter
    /// of `BF.RESERVE` is returned unchanged, because the filter allocates its bits at the first
    /// insert.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis::{AnyFilter, Hasher, Kind, Plan};
    /// use tamis_commands::Value;
    /// use tamis_formats::TamisFile;
    ///
    /// let plan = Plan::for_kind(Kind::Counting, 100, 0.01)?;
    /// let filter = AnyFilter::from_plan(&plan, Hasher::default())?;
    /// let mut value = Value::Filter(Box::new(TamisFile::new(filter))).without_bits();
    /// assert!(value.heap_bytes() <= 192);
    /// value.build();
    /// assert!(matches!(value, Value::Filter(_)));
    /// # Ok::<(), tamis::PlanError>(())
    /// ```
    #[must_use]
    pub fn without_bits(self) -> Self {
        let has_items = match &self {
            Value::Bloom(_) => return self,
            Value::Filter(file) => file.added > 0,
            other => other.counted_items() != Some(0),
        };
        if has_items || self.memory_bytes() > MAX_BYTES {
            return self;
        }
        let image = self.new_image();
        let built = Value::read_logged_image(&image);
        let is_new = built.is_ok_and(|built| built.to_image() == self.to_image());
        if is_new { Value::Empty(EmptyFilter(image.into())) } else { self }
    }

    /// Builds the filter of a [`Value::Empty`] in place and returns the previous value. If the value is not a
    /// [`Value::Empty`], returns `None` without a change.
    pub fn build(&mut self) -> Option<Self> {
        let Value::Empty(empty) = self else { return None };
        let built = empty.build();
        Some(std::mem::replace(self, built))
    }

    /// Returns the parameters of a [`Value::Empty`]; `None` for any other value, which commands can
    /// use directly.
    #[must_use]
    pub fn as_empty(&self) -> Option<&EmptyFilter> {
        if let Value::Empty(empty) = self { Some(empty) } else { None }
    }

    /// Calls `run` with a value that commands can use. For a [`Value::Empty`], builds a temporary filter for the call.
    pub fn with_built<R>(&self, run: impl FnOnce(&Value) -> R) -> R {
        match self.as_empty() {
            Some(empty) => run(&empty.build()),
            None => run(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use tamis::{AnyFilter, Hasher, Kind, Plan, Span, Window};
    use tamis_formats::TamisFile;
    use tamis_redisbloom::{RedisBloom, RedisBloomOptions, RedisCuckoo, RedisCuckooOptions};

    use super::*;

    fn file(filter: AnyFilter) -> Value {
        Value::Filter(Box::new(TamisFile::new(filter)))
    }

    fn filter(kind: Kind, items: u64) -> AnyFilter {
        let plan = Plan::for_kind(kind, items, 0.01).unwrap();
        AnyFilter::from_plan(&plan, Hasher::keyed([1, 2])).unwrap()
    }

    /// Returns new filters of every kind for `items` items.
    fn new_filters(items: u64) -> Vec<Value> {
        let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Window);
        let mut all: Vec<Value> = kinds.map(|kind| file(filter(kind, items))).collect();
        for span in [Span::Items(items), Span::Millis(60_000)] {
            let plan = Plan::window(items, 0.01, 4).unwrap();
            let mut window =
                Window::from_plan(&plan, Hasher::keyed([1, 2]), span).unwrap().refreshing();
            window.advance(1_700_000_000_000);
            all.push(file(AnyFilter::Window(window)));
        }
        let options = RedisBloomOptions { capacity: items, ..Default::default() };
        all.push(Value::RedisBloom(Box::new(RedisBloom::new(&options).unwrap())));
        let options = RedisCuckooOptions { capacity: items, ..Default::default() };
        all.push(Value::RedisCuckoo(Box::new(RedisCuckoo::new(&options).unwrap())));
        all
    }

    #[test]
    fn an_empty_filter_of_every_kind_takes_little_memory_and_is_rebuilt_exactly() {
        for new in new_filters(100) {
            let (image, kind, bytes) = (new.to_image(), new.kind_name(), new.memory_bytes());
            let mut empty = new.without_bits();
            assert!(matches!(empty, Value::Empty(_)), "{kind}");
            assert!(empty.heap_bytes() <= 192, "{kind}: {}", empty.heap_bytes());
            assert_eq!((empty.kind_name(), empty.memory_bytes()), (kind, bytes));
            assert_eq!(empty.to_image(), image, "{kind}");
            assert!(matches!(empty.build(), Some(Value::Empty(_))));
            assert!(!matches!(empty, Value::Empty(_)));
            assert_eq!(empty.to_image(), image, "{kind}");
        }
    }

    #[test]
    fn large_filters_and_filters_with_items_keep_their_bits() {
        for large in new_filters(100_000) {
            // A growing filter allocates no memory in advance.
            let is_small = large.memory_bytes() <= MAX_BYTES;
            assert_eq!(matches!(large.without_bits(), Value::Empty(_)), is_small);
        }
        let mut used = filter(Kind::SplitBlock, 100);
        used.try_insert("item").unwrap();
        // A filter with set bits is not converted, even if the insert count of the filter is 0.
        assert!(matches!(file(used).without_bits(), Value::Filter(_)));
        let text = Value::Bytes(b"text".to_vec().into());
        assert!(matches!(text.without_bits(), Value::Bytes(_)));
    }

    #[test]
    fn a_filter_with_metadata_keeps_it() {
        let mut named = TamisFile::new(filter(Kind::Classic, 100));
        named.metadata.insert("name", "value").unwrap();
        let value = Value::Filter(Box::new(named)).without_bits();
        let Value::Filter(named) = value else { panic!("{value:?}") };
        assert_eq!(named.metadata.iter().count(), 1);
    }
}
