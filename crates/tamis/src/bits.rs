//! Storage of bits: owned, shared between threads, or borrowed.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`, least significant first. On disk a word is
//! little-endian. Storage does not know what a bit means.

mod atomic;
mod borrowed;
mod owned;
mod storage;
mod word;

pub(crate) use crate::arch::memory::Pages;
pub use atomic::AtomicBitmap;
pub use borrowed::BitView;
pub use owned::Bitmap;
pub use storage::{Bits, BitsMut, NewBits, OutOfMemory};
pub(crate) use storage::{heap_bytes, words_from};
pub use word::Word;
pub(crate) use word::{get_bit, set_bit};
