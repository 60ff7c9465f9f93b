//! Bitmaps: strings of bytes, bit by bit, as Redis answers.
//!
//! Bit 0 is the high bit of the first byte. A bitmap is what `SET` writes and `GET` reads; only it may be long
//! and empty, so every string is kept in [pages](SparseBytes), and counting, searching and combining skip those that
//! are absent.

mod bit;
mod bitfield;
mod bitop;
mod count;
mod position;
mod range;
mod sparse_bytes;

pub(crate) use bit::{get_bit, set_bit};
pub(crate) use bitfield::{bitfield, bitfield_read_only};
pub use bitop::BitOp;
pub(crate) use count::count;
pub(crate) use position::position;
pub(crate) use range::{is_backwards, places};
pub use sparse_bytes::SparseBytes;
