//! Implements `BITPOS`.

use std::ops::Range;

use tamis_resp::Reply;

use crate::bitmap::range::Unit;
use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, error};
use crate::text::{self, Text};
use crate::value::sparse_bytes::SparseBytes;
use crate::value::{Value, bytes};

/// Runs `BITPOS key bit [start [end [BYTE | BIT]]]`.
pub(crate) fn position(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    let position = || {
        let bit = match integer(argv[2])? {
            0 => false,
            1 => true,
            _ => return Err(text::bitmap::SOUGHT_BIT),
        };
        // As in Redis, the arguments after the key are not checked if the key does not exist.
        let Some(bytes) = bytes(value)? else { return Ok(if bit { -1 } else { 0 }) };
        find(bytes, bit, &argv[3..])
    };
    position().map_or_else(error, Reply::Integer)
}

fn find(bytes: &SparseBytes, bit: bool, argv: Argv<'_>) -> Result<i64, Text> {
    let (start, end, unit) = match *argv {
        [] => (0, -1, Unit::Byte),
        [start] => (integer(start)?, -1, Unit::Byte),
        [start, end] => (integer(start)?, integer(end)?, Unit::Byte),
        [start, end, unit] => {
            let (start, unit) = (integer(start)?, Unit::parse(unit)?);
            (start, integer(end)?, unit)
        }
        _ => return Err(text::SYNTAX),
    };
    let Some(range) = unit.range(start, end, bytes.len()) else { return Ok(-1) };
    let has_end = argv.len() > 1;
    Ok(match first(bytes, bit, range) {
        Some(at) => at as i64,
        // If the command gives no end, the string counts as followed by zeros.
        None if !bit && !has_end => bytes.len() as i64 * 8,
        None => -1,
    })
}

fn integer(word: &[u8]) -> Result<i64, Text> {
    parse_integer(word).ok_or(text::NO_INTEGER)
}

/// Finds the first bit in the range that equals `bit`.
fn first(bytes: &SparseBytes, bit: bool, range: Range<u64>) -> Option<u64> {
    // To find a 0 bit, invert the bytes and search for a 1 bit.
    let turn = if bit { 0 } else { 0xff };
    let whole = (range.start / 8) as usize..range.end.div_ceil(8) as usize;
    let head = (bytes.byte(whole.start) ^ turn) & (0xff >> (range.start % 8));
    let at = if head == 0 {
        let mut pieces = bytes.pieces(whole.start + 1..whole.end);
        pieces.find_map(|(start, piece)| match piece {
            None => (!bit).then_some(start as u64 * 8),
            Some(piece) => first_one(piece, turn).map(|at| start as u64 * 8 + at),
        })?
    } else {
        whole.start as u64 * 8 + u64::from(head.leading_zeros())
    };
    (at < range.end).then_some(at)
}

/// Finds the first 1 bit after each byte is XORed with `turn`.
fn first_one(bytes: &[u8], turn: u8) -> Option<u64> {
    // Test whole words before single bytes, because most words do not contain the bit.
    let (words, _) = bytes.as_chunks::<8>();
    let skipped = words.iter().take_while(|word| **word == [turn; 8]).count() * 8;
    let at = skipped + bytes[skipped..].iter().position(|byte| *byte != turn)?;
    Some(at as u64 * 8 + u64::from((bytes[at] ^ turn).leading_zeros()))
}
