//! SIMD kernels, prefetches and huge pages. This module contains all `unsafe` code of the crate.
//!
//! A kernel takes slices and has a scalar version with the same signature in [`scalar`]. The
//! features of the CPU determine the table of kernels, once for each process. The answers and the
//! bytes of a filter are the same with every table of kernels. Kernels are generic over
//! [`Word`](crate::bits::Word), so that the same code reads owned, mapped and shared bits.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod avx512;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod batch;
mod block_filters;
pub(crate) mod counters;
pub(crate) mod cuckoo;
pub(crate) mod cuckoo_keys;
pub(crate) mod digests;
mod kernels;
pub(crate) mod level;
pub(crate) mod memory;
pub(crate) mod mix;
pub(crate) mod partition;
pub(crate) mod places;
pub(crate) mod prefetch;
pub(crate) mod scalar;
pub(crate) mod select;
pub(crate) mod sip;
pub(crate) mod sync;
pub(crate) mod unaligned;

pub(crate) use block_filters::{
    contains_one_256, contains_one_512, insert_512_shared, insert_one_512, insert_one_512_shared,
    kernels,
};
pub(crate) use level::{Level, level};
#[cfg(feature = "std")]
pub use memory::use_global_allocator;
pub use memory::{allocation_bytes, allocation_bytes_of_glibc};
pub use prefetch::prefetch;
pub(crate) use prefetch::{prefetch_index, prefetch_lines, prefetch_write};
