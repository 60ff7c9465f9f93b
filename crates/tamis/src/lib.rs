//! Filters and exact sets that test whether an item was seen before, at any size.
//!
//! ```
//! use tamis::Bloom;
//!
//! // Capacity: a million items. False positive rate: one percent.
//! let mut seen = Bloom::for_items(1_000_000, 0.01)?;
//! assert!(seen.insert("https://example.org/"), "new");
//! assert!(seen.contains("https://example.org/"));
//! assert!(!seen.contains("https://example.com/"));
//! # Ok::<(), tamis::PlanError>(())
//! ```
//!
//! # Which type
//!
//! | question | type |
//! | --- | --- |
//! | Is this item in a set I built? | [`Bloom`] |
//! | Is this item in a set that several threads fill? | [`SharedBloom`] |
//! | Is this item in a set that must take the fewest bits, or have Parquet's layout? | [`ClassicBloom`], [`ParquetBloom`] |
//! | Is this item in a set that removes items or counts copies? | [`Cuckoo`], [`Counting`] |
//! | Is this item in a set of unknown size? | [`Growing`] |
//! | Is this item in a filter whose kind is chosen at run time? | [`AnyFilter`] |
//! | Was this item inserted recently? | [`Window`] |
//! | Was exactly this item inserted? | [`DigestSet`], by hashes of 64 or 128 bits |
//! | Is exactly this integer in the set? Which integers, how many, and which is the n-th? | [`DenseSet`], [`CompressedSet`] |
//! | Which of billions of integers occur twice? | [`RepeatFinder`] |
//! | How many bits does a number of items need at a given rate? | [`Plan`] |
//!
//! # Terms
//!
//! Data flows in one direction: **item → hash → probes → bits → answer**. Each name below has the
//! same meaning for every type.
//!
//! | name | means |
//! | --- | --- |
//! | `capacity()` | the number of distinct items that a filter was planned for: [`Plan::items`] |
//! | `estimate_items()` | an estimate of the number of distinct items; reads all bits of the filter |
//! | `len()` | the number of items: exact ([`Answers::len`], [`DigestSet::len`], [`DenseSet::len`]), or as counted by a filter ([`Cuckoo::len`], [`Growing::len`]) |
//! | `count(item)` | how often one item was inserted: [`Counting::count`], [`Cuckoo::count`] |
//! | `rate` | a false positive rate, a probability: 0.01 is one percent |
//! | `insert` | inserts an item and returns true if the item is new; filters that may refuse items have `try_insert` |
//! | `…_each` | a batch, with an answer for each item in [`Answers`] |
//! | `…_all` | a batch, with one answer: whether all items are present, or how many items were new or removed |
//!
//! All methods that take items are inherent, so callers import no trait for these methods. Only the
//! traits have the methods for batches of hashes ([`Insert::insert_hashes`]). For generic code, the
//! traits ([`Filter`], [`Insert`], [`TryInsert`], [`Remove`], [`Count`], [`Clear`], [`Merge`]) have
//! the same methods as the types.
//!
//! # Features
//!
//! | feature | gives |
//! | --- | --- |
//! | `std` (default) | CPU detection at run time, threads, huge pages; without `std`, the crate needs only `alloc` and the feature `libm` |
//! | `libm` | mathematics for builds without `std` |
//! | `roaring` | `CompressedSet` |
//! | `rayon` (enables `std`) | `par_contains_each` of every filter, `par_extend` of Bloom filters |
//! | `serde` | serialization of plans, filters, exact sets and hashers without a key |
//! | `uuid` | `uuid::Uuid` as an [`Item`] |
//!
//! The crate `tamis-formats` saves filters to files and reads the files of other systems. The crate
//! `tamis-redisbloom` contains the filters of RedisBloom.
#![deny(unsafe_code)]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

#[cfg(not(any(feature = "std", feature = "libm")))]
compile_error!("without the feature `std`, the crate tamis needs the feature `libm`");

/// Compiles the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

extern crate alloc;
// `core` contains most of the `std` items that this crate uses, under the same path as in `std`.
#[cfg(not(any(feature = "std", test)))]
extern crate core as std;

mod arch;
mod batch;
mod bits;
mod exact;
mod filter;
mod hash;
mod item;
#[cfg(not(any(feature = "std", test)))]
mod no_std;
mod plan;
#[cfg(all(feature = "serde", not(loom)))]
mod serde_impl;
mod strategy;

#[cfg(feature = "std")]
pub use arch::use_global_allocator;
pub use arch::{allocation_bytes, allocation_bytes_of_glibc, prefetch};
pub use batch::answers::Answers;
pub use bits::{AtomicBitmap, BitView, Bitmap, Bits, BitsMut, NewBits, OutOfMemory};
pub use exact::digest_set::{Digest, DigestSet, expected_collisions};
#[cfg(feature = "roaring")]
pub use exact::integer_set::{CompressedSet, IntoValues};
pub use exact::integer_set::{
    DenseSet, Order, OutOfRange, RangeError, RangeMismatch, RankIndex, RepeatFinder, Repeats,
    Values, Words,
};
pub use filter::any::AnyFilter;
pub use filter::bloom::{
    Bloom, BloomBuilder, BloomFilter, ClassicBloom, Counting, ParquetBloom, SharedBloom,
};
pub use filter::cuckoo::Cuckoo;
pub use filter::growing::Growing;
pub use filter::window::{Span, Window};
pub use filter::{
    Clear, Count, Filter, FilterWords, Insert, InsertError, Merge, MergeError, NoRoom, Remove,
    Removed, TryInsert,
};
pub use hash::{HashFunction, Hasher};
pub use item::{Item, ItemBytes};
pub use plan::input::PlanInput;
pub use plan::layout::Layout;
pub use plan::{Geometry, Kind, Plan, PlanError};
pub use strategy::modulus::Modulus;
pub use strategy::{Classic, Parquet, SplitBlock, Strategy};
