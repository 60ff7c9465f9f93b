//! The filter of the class `BloomFilterHelper` of Java articles: one bitmap without metadata. Redis
//! does not store the plan of the filter, only the programs do.

use std::ops::Range;

use tamis_formats::redis_bitmap::RedisBitmapPlan;

use crate::error::RedisItemError;
use crate::layouts::bits::{self, MAX_BITS};
use crate::transport::blocking::Transport;

/// The filter of a Java program with the classes `BloomFilterHelper` and `RedisBloomFilter`. The
/// bits in Redis are the same as with the Java classes.
///
/// An item consists of the bytes that the funnel of the Java program writes.
/// [`tamis_formats::Funnel`] computes the bytes of an item from text. The methods `add`
/// and `addList` of the Java code set the same bits as [`insert_each`](Self::insert_each). Unlike
/// the Java methods, `insert_each` also returns whether each item is new.
///
/// The bitmap has no metadata. If the plan is wrong, the results are wrong. If the server lost the
/// bitmap, the filter looks empty.
///
/// All methods take `&self`. Calls at the same time behave as the calls of several clients.
///
/// # Examples
///
/// ```no_run
/// use tamis_formats::redis_bitmap::RedisBitmapPlan;
/// use tamis_redis::{HelperFilter, Patience, SingleNode};
///
/// let node = SingleNode::new("redis://localhost", Patience::default())?;
/// let plan = RedisBitmapPlan::new(1_000_000, 0.03);
/// let users = HelperFilter::new(node, "bloom", plan).expect("a plan with bits");
/// for result in users.insert_each(&["alice", "bob"]) {
///     println!("new: {}", result?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct HelperFilter<T> {
    transport: T,
    key: Vec<u8>,
    plan: RedisBitmapPlan,
}

impl<T: Transport> HelperFilter<T> {
    /// Creates a client for the bitmap at `key`. The key need not exist. Returns `None` if the plan
    /// has no bits. For a plan without bits, the Java class would divide by zero.
    pub fn new(transport: T, key: impl Into<Vec<u8>>, plan: RedisBitmapPlan) -> Option<Self> {
        let _has_bits = plan.offsets(b"")?;
        Some(Self { transport, key: key.into(), plan })
    }

    /// Inserts items. Returns one result for each item, in the order of the items: true if the item
    /// is new. An insert takes one round trip.
    pub fn insert_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, true)
    }

    /// Tests whether each item may be in the filter, in one round trip.
    pub fn contains_each<I: AsRef<[u8]>>(&self, items: &[I]) -> Vec<Result<bool, RedisItemError>> {
        self.each(items, false)
    }

    fn each<I: AsRef<[u8]>>(
        &self,
        items: &[I],
        is_insert: bool,
    ) -> Vec<Result<bool, RedisItemError>> {
        if items.is_empty() {
            return Vec::new();
        }
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
