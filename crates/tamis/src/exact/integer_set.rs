//! Exact sets of integers. They store one bit for each value and return no false answers.
//!
//! | set | memory | for |
//! | --- | --- | --- |
//! | [`DenseSet`] | 1 bit for each value of its range, 512 MiB for all of `u32` | many values, or a narrow range |
//! | [`CompressedSet`] | 2 bytes a value or less, plus about 50 for each run of 65 536 values touched | few values, wide ranges |
//! | [`RepeatFinder`] | two bits a value: 1 GiB for all of `u32` | which of billions of integers repeat |
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
