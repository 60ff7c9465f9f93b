//! Implements `BITCOUNT`.

use std::ops::Range;

use tamis_resp::Reply;

use crate::bitmap::range::{Unit, is_backwards};
use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, error};
use crate::text::{self, Text};
use crate::value::sparse_bytes::SparseBytes;
use crate::value::{Value, bytes};

/// Runs `BITCOUNT key [start end [BYTE | BIT]]`.
pub(crate) fn count(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    let count = || {
        // As in Redis, the arguments after the key are not checked if the key does not exist.
        let Some(bytes) = bytes(value)? else { return Ok(0) };
        Ok(range(argv, bytes.len())?.map_or(0, |range| count_ones(bytes, range)))
    };
    count().map_or_else(error, |ones| Reply::Integer(ones as i64))
}

fn range(argv: Argv<'_>, len: usize) -> Result<Option<Range<u64>>, Text> {
    let integer = |word| parse_integer(word).ok_or(text::NO_INTEGER);
    let (start, end, unit) = match argv[2..] {
        [] => (0, -1, None),
        [start, end] => (integer(start)?, integer(end)?, None),
        [start, end, unit] => (integer(start)?, integer(end)?, Some(unit)),
        _ => return Err(text::SYNTAX),
    };
    // As in Redis, check the order of the positions before the unit.
    if is_backwards(start, end) {
        return Ok(None);
    }
    Ok(unit.map_or(Ok(Unit::Byte), Unit::parse)?.range(start, end, len))
}

/// Counts the 1 bits in a range of bits.
fn count_ones(bytes: &SparseBytes, range: Range<u64>) -> u64 {
    let whole = (range.start / 8) as usize..range.end.div_ceil(8) as usize;
    let ones: u64 = bytes.pieces(whole.clone()).filter_map(|(_, piece)| piece).map(ones_of).sum();
    let before = bytes.byte(whole.start) & !(0xff >> (range.start % 8));
    let behind = match range.end % 8 {
        0 => 0,
        bits => bytes.byte(whole.end - 1) & (0xff >> bits),
    };
    ones - u64::from(before.count_ones()) - u64::from(behind.count_ones())
}

fn ones_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let ones: u32 = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones()).sum();
    u64::from(ones + rest.iter().map(|byte| byte.count_ones()).sum::<u32>())
}
