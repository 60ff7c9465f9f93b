//! Implements `SETBIT` and `GETBIT`, and parses the offsets of bits.

use tamis_resp::Reply;

use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, Text};
use crate::value::{Value, bytes, bytes_or_new};

/// The length of the longest string, 512 MiB, in bits.
const MAX_BITS: u64 = 1 << 32;

/// Runs `GETBIT key offset`.
pub(crate) fn get_bit(value: Option<&Value>, argv: Argv<'_>, _: &Env<'_>) -> Reply {
    let read = || {
        let offset = parse_offset(argv[2])?;
        let byte = bytes(value)?.map_or(0, |bytes| bytes.byte((offset / 8) as usize));
        Ok(byte & mask(offset) != 0)
    };
    read().map_or_else(error, |bit| Reply::Integer(i64::from(bit)))
}

/// Runs `SETBIT key offset value`.
pub(crate) fn set_bit(value: &mut Option<Value>, argv: Argv<'_>, _: &Env<'_>) -> Written {
    let offset = parse_offset(argv[2])?;
    let bit = match argv[3] {
        b"0" => false,
        b"1" => true,
        _ => return Err(text::bitmap::BIT_VALUE.into()),
    };
    let bytes = bytes_or_new(value)?;
    let at = (offset / 8) as usize;
    let byte = bytes.byte(at);
    let changed = if bit { byte | mask(offset) } else { byte & !mask(offset) };
    bytes.write(at, &[changed]);
    Ok(Outcome::changed(Reply::Integer((byte & mask(offset) != 0).into())))
}

/// Parses the offset of a bit.
pub(super) fn parse_offset(word: &[u8]) -> Result<u64, Text> {
    parse_integer(word)
        .and_then(|offset| u64::try_from(offset).ok())
        .and_then(in_string)
        .ok_or(text::bitmap::BIT_OFFSET)
}

/// Returns the offset if a string of the maximum length contains the bit.
pub(super) fn in_string(offset: u64) -> Option<u64> {
    (offset < MAX_BITS).then_some(offset)
}

/// Returns the mask of the bit within its byte.
fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}
