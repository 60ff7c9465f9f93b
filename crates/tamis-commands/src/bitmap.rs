//! Implements the bitmap commands, compatible with Redis. A bitmap is a string with addressable
//! bits.
//!
//! Bit 0 is the highest bit of the first byte. A bitmap is a string that `SET` can write and `GET`
//! can read. A bitmap may be long and mostly empty, so every string is stored in
//! [pages](SparseBytes). `BITCOUNT`, `BITPOS` and `BITOP` skip absent pages.

mod bit;
mod bitfield;
mod bitop;
mod count;
mod position;
mod range;

pub(crate) use bit::{get_bit, set_bit};
pub(crate) use bitfield::{bitfield, bitfield_read_only};
pub use bitop::BitOp;
pub(crate) use count::count;
pub(crate) use position::position;
pub(crate) use range::{is_backwards, places};
