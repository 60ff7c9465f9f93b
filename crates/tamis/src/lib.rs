//! Answers "have I seen this?" for any set, at any size.
//!
//! ```
//! use tamis::Bloom;
//!
//! // For a million items, of which one absent in a hundred is taken for present.
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
//! | Is this item in a set I built? | [`Bloom`] with the [`SplitBlock`] strategy, the default |
//! | The same, in a set that several threads fill? | [`SharedBloom`] |
//! | The same, with the fewest bits, or in Parquet's layout? | [`Bloom`] with [`Classic`] or [`Parquet`] |
//! | Is it in a set from which items are removed, or whose copies are counted? | [`Cuckoo`], [`Counting`] |
//! | Is it in a set of unknown size? | [`Growing`] |
//! | Is it in a filter whose kind is chosen at run time? | [`AnyFilter`] |
//! | Have I seen this lately? | [`Window`] |
//! | Have I seen exactly this one? | [`DigestSet`], by hashes of 64 or 128 bits |
//! | Is this integer in, exactly? Which of them, how many, the n-th? | [`DenseSet`], [`CompressedSet`] |
//! | Which of billions of integers occur twice? | [`RepeatFinder`] |
//! | How many bits for how many items at what rate? | [`Plan`] |
//!
//! # Terms
//!
//! Bytes go one way: **item → hash → probes → bits → answer**. Each name below has the same meaning
//! for every type.
//!
//! | name | means |
//! | --- | --- |
//! | `capacity()` | for how many distinct items a filter was planned: [`Plan::items`] |
//! | `estimate_items()` | an estimate of the distinct items, from the bits of a filter; reads all bits |
//! | `len()` | how many items a collection holds: exactly ([`Answers::len`], [`DigestSet::len`], [`DenseSet::len`]), or as a filter has counted them ([`Cuckoo::len`], [`Growing::len`]) |
//! | `count(item)` | how often one item was inserted: [`Counting::count`], [`Cuckoo::count`] |
//! | `rate` | a false positive rate, a probability: 0.01 is one percent |
//! | `insert` | inserts an item; true if it is new. Filters that may refuse items have `try_insert` |
//! | `…_each` | a batch, with an answer for each item in [`Answers`] |
//! | `…_all` | a batch, with one answer: whether all are present, or how many were new or removed |
//!
//! All methods that take items are inherent, so no trait needs an import. Batches of hashes
//! ([`Insert::insert_hashes`]) are methods of the traits. The traits ([`Filter`], [`Insert`],
//! [`TryInsert`], [`Remove`], [`Count`], [`Clear`],
//! [`Merge`]) have the same methods for generic code.
//!
//! # Features
//!
//! | feature | gives |
//! | --- | --- |
//! | `std` (default) | CPU detection at run time, threads, huge pages; without it the crate needs `alloc` alone |
//! | `roaring` (default) | `CompressedSet` |
//! | `rayon` | `par_contains_each` of every filter, `par_extend` of Bloom filters |
//! | `serde` | plans, hashers without a key, and filters for serde |
//! | `uuid` | `uuid::Uuid` as an [`Item`] |
//!
//! The crate `tamis-formats` saves filters to files and reads the files of other systems. The crate
//! `tamis-redisbloom` has the filters of RedisBloom.
#![deny(unsafe_code)]
#![cfg_attr(not(any(feature = "std", test)), no_std)]

extern crate alloc;
// Most of `std` that this crate uses is in `core` too, under the same path.
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
pub use bits::{AtomicBitmap, BitView, Bitmap, Bits, BitsMut, OutOfMemory};
pub use exact::digest_set::{Digest, DigestSet, expected_collisions};
#[cfg(feature = "roaring")]
pub use exact::integer_set::{CompressedSet, IntoValues};
pub use exact::integer_set::{
    DenseSet, Order, OutOfRange, RangeError, RangeMismatch, RankIndex, RepeatFinder, Repeats,
    Values, Words,
};
pub use filter::any::AnyFilter;
pub use filter::bloom::{Bloom, BloomBuilder, Counting, SharedBloom};
pub use filter::cuckoo::Cuckoo;
pub use filter::growing::Growing;
pub use filter::window::{Span, Window};
pub use filter::{
    Clear, Count, Filter, Insert, InsertError, Merge, MergeError, NoRoom, Remove, Removed,
    TryInsert,
};
pub use hash::{HashFunction, Hasher};
pub use item::{Item, ItemBytes};
pub use plan::input::PlanInput;
pub use plan::layout::Layout;
pub use plan::{Geometry, Kind, Plan, PlanError};
pub use strategy::modulus::Modulus;
pub use strategy::{Classic, Parquet, SplitBlock, Strategy};
