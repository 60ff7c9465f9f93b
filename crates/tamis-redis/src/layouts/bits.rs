//! Reads and sets the bits of items in the bitmaps of Java programs, which have no header.

use crate::error::RedisItemError;
use crate::transport::request::{NodeReply, NodeRequest, integers};

/// The largest number of bits in a command. The server needs about a millisecond for a command with
/// 4096 bits.
pub(crate) const MAX_BITS: usize = 4096;

/// The largest number of bits that a script sets. A script can pass about 8000 arguments to a
/// command, and each bit needs four arguments.
pub(crate) const MAX_SCRIPT_BITS: usize = 1500;

/// Splits items into ranges. A range has at most `most` bits, or a single item.
pub(crate) fn chunks(offsets: &[Vec<u64>], most: usize) -> Vec<std::ops::Range<usize>> {
    let (mut chunks, mut start, mut bits) = (Vec::new(), 0, 0);
    for (i, item) in offsets.iter().enumerate() {
        if i > start && bits + item.len() > most {
            chunks.push(start..i);
            (start, bits) = (i, 0);
        }
        bits += item.len();
    }
    if start < offsets.len() {
        chunks.push(start..offsets.len());
    }
    chunks
}

/// Returns the request that reads the bits of items.
pub(crate) fn read(key: &[u8], offsets: &[Vec<u64>]) -> NodeRequest {
    let mut request = NodeRequest::new("BITFIELD_RO", key.to_vec());
    for offset in offsets.iter().flatten() {
        request.command.arg("GET").arg("u1").arg(offset);
    }
    request
}

/// Appends the arguments that set the bits of items.
pub(crate) fn append_sets(request: &mut NodeRequest, offsets: &[Vec<u64>]) {
    for offset in offsets.iter().flatten() {
        request.command.arg("SET").arg("u1").arg(offset).arg(1);
    }
}

/// Returns the request that sets the bits of items. The reply contains the old bits.
pub(crate) fn set(key: &[u8], offsets: &[Vec<u64>]) -> NodeRequest {
    let mut request = NodeRequest::new("BITFIELD", key.to_vec());
    append_sets(&mut request, offsets);
    request
}

/// Returns the number of unset bits for each item, from a reply to [`read`] or [`set`].
pub(crate) fn clear_bits(
    key: &[u8],
    offsets: &[Vec<u64>],
    reply: NodeReply,
) -> Result<Vec<u64>, RedisItemError> {
    let bits = integers(key, reply)?;
    if bits.len() != offsets.iter().map(Vec::len).sum::<usize>() {
        return Err(RedisItemError::unexpected(key, "has a wrong number of values"));
    }
    let mut bits = bits.into_iter();
    let clear = |item: &Vec<u64>| bits.by_ref().take(item.len()).filter(|&bit| bit == 0).count();
    Ok(offsets.iter().map(clear).map(|count| count as u64).collect())
}

/// Decodes the replies to requests for chunks of items. After an insert, the result of an item is
/// true if the insert changed a bit. After a lookup, the result of an item is true if all bits of
/// the item are set.
pub(crate) fn answers(
    key: &[u8],
    offsets: &[Vec<u64>],
    chunks: Vec<std::ops::Range<usize>>,
    replies: Vec<NodeReply>,
    is_insert: bool,
) -> Vec<Result<bool, RedisItemError>> {
    let mut results = Vec::with_capacity(offsets.len());
    for (chunk, reply) in chunks.into_iter().zip(replies) {
        match clear_bits(key, &offsets[chunk.clone()], reply) {
            Ok(clear) => results.extend(clear.iter().map(|&clear| Ok((clear > 0) == is_insert))),
            Err(error) => results.extend(chunk.map(|_| Err(error.clone()))),
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_whole_items() {
        let items = |lens: &[usize]| lens.iter().map(|&len| vec![0; len]).collect::<Vec<_>>();
        assert_eq!(chunks(&items(&[3, 3, 3]), 6), [0..2, 2..3]);
        assert_eq!(chunks(&items(&[9, 1, 9]), 6), [0..1, 1..2, 2..3]);
        assert_eq!(chunks(&[], 6), []);
    }
}
