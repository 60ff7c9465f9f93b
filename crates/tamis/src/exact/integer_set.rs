//! Exact sets of integers, which return no false answers.
//!
//! | set | memory | for |
//! | --- | --- | --- |
//! | [`DenseSet`] | 1 bit for each value of its range, 512 MiB for all of `u32` | many values, or a narrow range |
//! | [`CompressedSet`] | at most 2 bytes for each value, plus about 50 bytes for each block of 65 536 values that contains a value | few values, wide ranges |
//! | [`RepeatFinder`] | two bits for each value: 1 GiB for all of `u32` | finding repeated values among billions of integers |
//!
//! [`DenseSet::to_compressed`] and [`CompressedSet::to_dense`] convert one kind of set into the
//! other.

mod algebra;
mod bytes;
#[cfg(feature = "roaring")]
mod compressed;
mod dense;
mod error;
mod iter;
mod ranges;
mod rank;
mod repeats;

pub use bytes::Order;
#[cfg(feature = "roaring")]
pub use compressed::{CompressedSet, IntoValues};
pub use dense::DenseSet;
pub use error::{OutOfRange, RangeError, RangeMismatch};
pub use iter::{Values, Words};
pub use rank::RankIndex;
pub use repeats::{RepeatFinder, Repeats};
