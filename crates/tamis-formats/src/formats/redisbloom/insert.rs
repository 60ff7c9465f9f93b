//! Inserts batches of items into RedisBloom's filters, and limits the growth of the filters.

use tamis::Answers;
use tamis_redisbloom::RedisInsertError;

use crate::errors::ChangeError;

/// The reason why filters of RedisBloom cannot merge.
pub(super) const NO_MERGE: &str = "RedisBloom's filters count their items, and a union of bits \
    does not count: insert the items of both into one; of the filters in Redis, those of \
    redis-bitmap, redis-bitmaps and redisson merge";

/// Returns the maximum size, in bytes, of the next layer or sub-filter of a filter. `bytes` is the present size of the
/// filter.
///
/// A small hostile file can state that the filter grows by a factor of 32,768 at the first insert. Real filters grow by
/// a factor of 2 or 4.
pub(super) fn most_growth_bytes(bytes: u64) -> u64 {
    (64 * bytes).max(64 << 20)
}

/// Inserts items one after the other. Stops at the first error.
pub(super) fn insert_each(
    keys: &[&[u8]],
    answers: &mut Answers,
    insert: impl FnOnce(&[&[u8]], &mut dyn FnMut(Result<bool, RedisInsertError>) -> bool),
) -> Result<(), ChangeError> {
    answers.reset(keys.len());
    let (mut i, mut failed) = (0, Ok(()));
    insert(keys, &mut |answer| {
        match answer {
            Ok(is_new) => answers.set(i, is_new),
            Err(RedisInsertError::Memory(error)) => failed = Err(ChangeError::Memory(error)),
            // All other errors say that the filter cannot grow.
            Err(error) => failed = Err(ChangeError::Full(error.to_string().into())),
        }
        i += 1;
        failed.is_ok()
    });
    failed
}
