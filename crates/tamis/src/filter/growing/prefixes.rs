//! A filter that grows without reading its items again, and keeps its false positive rate at any
//! size.
//!
//! The filter is a set of **prefixes** of hashes. An item is stored as the first p bits of its
//! 64-bit hash. A lookup returns true for every hash that begins with a stored prefix. The false
//! positive rate is exactly the sum of 2⁻ᵖ over all prefixes.
//!
//! ```text
//! hash | address: depth bits | block: 4 | quotient: 5 | remainder: r bits | not kept
//!        picks the page        picks a run of entries   is the entry
//! ```
//!
//! When the filter grows, a page splits into two pages. In a split, the first bit of each remainder
//! moves into the address, so no prefix changes. The remainder of a new entry always has r bits.
//! After each doubling of the filter, the address is longer, so the prefixes of new entries are
//! longer than the prefixes of old entries. Each doubling of the filter adds about 2⁻ʳ to the rate.
//!
//! For the first few thousand items and beyond 500 million items, the remainder length r is
//! slightly larger than for medium numbers of items. The larger remainder length keeps the sum of
//! the rates of all doublings below the planned rate (`growth.rs`). The larger remainder length
//! takes almost no additional memory, because most items are from the last few doublings. A lookup
//! in a growing filter reads one page. In contrast, a lookup in a chain of fixed-size filters must
//! read each filter of the chain.
//!
//! Pages split one after the other, from the last page to the first page, as in linear hashing.
//! Because pages split in descending order, the directory has no gaps, and a lookup reads the
//! directory once. The pages of the next depth are numbered in the opposite direction of the pages
//! of the current depth. With this numbering, the directory of the current depth only shrinks at
//! its end, and the directory of the next depth only grows at its end:
//!
//! ```text
//! unsplit | 0 | 1 | ... | u−1 |          depth d, by the first d bits of the hash
//! split   | 0 | 1 | ... | 2(2ᵈ−u)−1 |    depth d+1, by the first d+1 bits, inverted
//! ```
//!
//! The table depends only on the sequence of hashes. The same sequence of hashes always gives the
//! same bytes.
//!
//! Sources: Pagh, Segev, Wieder, "How to approximate a set without knowing its size in advance"
//! (2013); Dayan, Bercea, Reviriego, Pagh, "InfiniFilter: expanding filters to infinity and beyond"
//! (2023); Litwin, "Linear hashing" (1980).

mod check;
mod flat_pages;
mod grow;
pub(crate) mod growth;
mod insert;
mod merge;
mod page;
mod pages;
mod shift;
mod table;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use flat_pages::{FlatPages, WordsError};
pub(crate) use grow::GrowError;
pub(crate) use growth::Growth;
pub(crate) use pages::OwnedPages;
pub(crate) use table::Table;
