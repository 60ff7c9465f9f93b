//! `BloomFilterHelper` of Java articles: one bitmap, whose plan only the programs know.

use std::ops::Range;

use tamis_formats::redis_bitmap::RedisBitmapPlan;

use crate::error::RedisItemError;
use crate::layouts::bits::{self, MAX_BITS};
use crate::transport::blocking::Transport;

/// The filter of a Java program with `BloomFilterHelper` and `RedisBloomFilter`, bit for bit.
///
/// An item is the bytes of the program's funnel; [`tamis_formats::Funnel`] computes them from text.
/// Both `add` and `addList` of the Java code set the same bits as [`insert_each`](Self::insert_each),
/// which also answers whether each item is new.
///
/// The bitmap has no metadata. A wrong plan gives wrong answers, and a bitmap that the server lost
/// looks like an empty filter.
///
/// # Examples
///
/// ```no_run
/// use tamis_formats::redis_bitmap::RedisBitmapPlan;
/// use tamis_redis::{HelperFilter, Patience, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisBitmapPlan::new(1_000_000, 0.03);
/// let mut users = HelperFilter::new(node, "bloom", plan).expect("a plan with bits");
/// for result in users.insert_each(&["alice", "bob"]) {
///     println!("new: {}", result?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HelperFilter<T> {
    transport: T,
    key: Vec<u8>,
    plan: RedisBitmapPlan,
}

impl<T: Transport> HelperFilter<T> {
    /// Uses the bitmap under `key`, which need not exist. Returns `None` for a plan without bits,
    /// with which the Java class divides by zero.
    pub fn new(transport: T, key: impl Into<Vec<u8>>, plan: RedisBitmapPlan) -> Option<Self> {
        let _has_bits = plan.offsets(b"")?;
        Some(Self { transport, key: key.into(), plan })
    }

    /// Inserts items. The results are in the order of the items: true if the item is new. One round
    /// trip.
    pub fn insert_each<I: AsRef<[u8]>>(
        &mut self,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, true)
    }

    /// Tests whether items may be in the filter. One round trip.
    pub fn contains_each<I: AsRef<[u8]>>(
        &mut self,
        items: &[I],
    ) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, false)
    }

    fn each<I: AsRef<[u8]>>(
        &mut self,
        items: &[I],
        is_insert: bool,
    ) -> Vec<Result<bool, RedisItemError>> {
        let offsets = |item: &I| {
            let offsets = self.plan.offsets(item.as_ref()).expect("checked by `new`");
            offsets.map(u64::from).collect()
        };
        let offsets: Vec<Vec<u64>> = items.iter().map(offsets).collect();
        let chunks = bits::chunks(&offsets, MAX_BITS);
        let command = if is_insert { bits::set } else { bits::read };
        let request = |chunk: &Range<usize>| command(&self.key, &offsets[chunk.clone()]);
        let requests: Vec<_> = chunks.iter().map(request).collect();
        let replies = self.transport.send(&requests);
        bits::answers(&self.key, &offsets, chunks, replies, is_insert)
    }
}
