//! The table of the kinds of filters, with a row for each kind.
//!
//! A new kind needs a folder with its filter type and its `Sizing`, and one row in `kinds!`. Code
//! outside this file reads the row of a kind instead of matching on kinds.

/// The table. `kinds!(then)` passes all rows to the macro `then`.
///
/// A row contains the documentation of the kind, its name in code, its number in files and its
/// filter type over storage `B`. Next in the row are the function that creates an empty filter from
/// a plan and a hasher, the formulas (`Sizing`) and the properties. The file that calls the macro
/// imports the names that the macro uses.
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            /// Split-block Bloom, 512-bit blocks of eight 64-bit lanes: the default.
            SplitBlock = 1, BloomFilter<SplitBlock, B>, BloomFilter::from_plan, SPLIT_BLOCK, {
                name: "split-block",
                summary: "one cache line per lookup; the fastest for rates of 0.3 % and above",
                ..PLAIN
            };
            /// Split-block Bloom as in Parquet files: 256-bit blocks of eight 32-bit lanes.
            Parquet = 2, BloomFilter<Parquet, B>, BloomFilter::from_plan, PARQUET, {
                name: "parquet",
                summary: "the same in the layout of Parquet's column filters",
                ..PLAIN
            };
            /// The Bloom filter of 1970: any number of bits and probes.
            Classic = 3, BloomFilter<Classic, B>, BloomFilter::from_plan, ClassicSizing, {
                name: "classic",
                summary: "the fewest bits; one cache line per probe",
                ..PLAIN
            };
            /// Blocks of 128 counters in eight lanes of 16 counters: items can be removed.
            Counting = 4, Counting<B>, Counting::from_plan, COUNTING, {
                name: "counting",
                summary: "supports deletes and counts up to 15 or more; over four times the bits",
                can_remove: true,
                ..PLAIN
            };
            /// Fingerprints in one of two buckets: items can be removed and counted, in few bits.
            Cuckoo = 5, Cuckoo<B>, Cuckoo::from_plan, CuckooSizing, {
                name: "cuckoo",
                summary: "supports deletes and counts up to 4; two cache lines per lookup",
                can_remove: true,
                stores_copies: true,
                ..PLAIN
            };
            /// Prefixes of hashes in pages. Pages split as the filter grows, so the filter accepts
            /// any number of items.
            Growing = 6, Growing<B>, Growing::from_plan, GrowingSizing, {
                name: "growing",
                summary: "any number of items at a constant rate",
                grows: true,
                ..PLAIN
            };
            /// A ring of filters of small blocks: the filter forgets items that are out of the
            /// window.
            Window = 7, Window<B>, Window::for_plan, WINDOW, {
                name: "window",
                summary: "items expire after a time, or after a number of other items",
                forgets: true,
                ..PLAIN
            };
        }
    };
}
pub(crate) use kinds;
