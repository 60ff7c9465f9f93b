//! The kinds of filters: one table with a row for each kind.
//!
//! A new kind needs a folder with its filter type and its [`Sizing`], and one row in `kinds!`. Code outside this file
//! asks the row and does not match on kinds.

use std::fmt;

use crate::plan::Sizing;
use crate::{bloom, cuckoo, growing, strategy, window};

/// The table. `kinds!(then)` passes all rows to the macro `then`.
///
/// A row contains the documentation of the kind, its name in code, its number in files, its filter type over storage
/// `B`, the function that creates an empty filter from a plan and a hasher, and its [`Row`].
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            /// Split-block Bloom, 512-bit blocks of eight 64-bit lanes: the default.
            SplitBlock = 1, Bloom<SplitBlock, B>, Bloom::new, {
                name: "split-block",
                summary: "one cache line per lookup; the fastest for rates of 0.3 % and above",
                sizing: &strategy::split_block::SIZING,
                can_remove: false,
                stores_copies: false,
                forgets: false,
                grows: false,
            };
            /// Split-block Bloom as in Parquet files: 256-bit blocks of eight 32-bit lanes.
            Parquet = 2, Bloom<Parquet, B>, Bloom::new, {
                name: "parquet",
                summary: "the same in the layout of Parquet's column filters",
                sizing: &strategy::parquet::SIZING,
                can_remove: false,
                stores_copies: false,
                forgets: false,
                grows: false,
            };
            /// The Bloom filter of 1970: any number of bits and probes.
            Classic = 3, Bloom<Classic, B>, Bloom::new, {
                name: "classic",
                summary: "the fewest bits; one cache line per probe",
                sizing: &strategy::classic::ClassicSizing,
                can_remove: false,
                stores_copies: false,
                forgets: false,
                grows: false,
            };
            /// Blocks of 128 counters, eight lanes of 16: items can be removed.
            Counting = 4, Counting<B>, Counting::new, {
                name: "counting",
                summary: "supports deletes and counts up to 15 or more; over four times the bits",
                sizing: &bloom::counting::SIZING,
                can_remove: true,
                stores_copies: false,
                forgets: false,
                grows: false,
            };
            /// Fingerprints in one of two buckets: items can be removed and counted, in few bits.
            Cuckoo = 5, Cuckoo<B>, Cuckoo::new, {
                name: "cuckoo",
                summary: "supports deletes and counts up to 4; two cache lines per lookup",
                sizing: &cuckoo::sizing::CuckooSizing,
                can_remove: true,
                stores_copies: true,
                forgets: false,
                grows: false,
            };
            /// Prefixes of hashes in pages that split: any number of items.
            Growing = 6, Growing<B>, Growing::new, {
                name: "growing",
                summary: "any number of items at a constant rate",
                sizing: &growing::sizing::GrowingSizing,
                can_remove: false,
                stores_copies: false,
                forgets: false,
                grows: true,
            };
            /// A ring of filters of small blocks: items are forgotten once they are out of the window.
            Window = 7, Window<B>, Window::for_plan, {
                name: "window",
                summary: "items expire after a time, or after a number of other items",
                sizing: &window::SIZING,
                can_remove: false,
                stores_copies: false,
                forgets: true,
                grows: false,
            };
        }
    };
}
pub(crate) use kinds;

/// The properties of a kind.
struct Row {
    /// The name on command lines, in files and in messages.
    name: &'static str,
    /// The purpose of the kind, in one line.
    summary: &'static str,
    /// The formulas from items and rate to bits, and back.
    sizing: &'static dyn Sizing,
    can_remove: bool,
    stores_copies: bool,
    forgets: bool,
    grows: bool,
}

macro_rules! define_kind {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $filter:ty, $create:path, { $($row:tt)* };)*) => {
        /// A kind of filter, numbered for files. Numbers are never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// Every kind, in the order of their numbers.
            pub const ALL: [Kind; [$($number),*].len()] = [$(Kind::$kind),*];

            const fn row(self) -> &'static Row {
                match self {
                    $(Kind::$kind => &const { Row { $($row)* } },)*
                }
            }
        }
    };
}
kinds!(define_kind);

impl Kind {
    /// Returns the name used on command lines, in files and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the purpose of the kind, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        self.row().summary
    }

    /// Returns true if filters of this kind support removing and counting items.
    #[must_use]
    pub const fn can_remove(self) -> bool {
        self.row().can_remove
    }

    /// Returns true if each insert of an item takes space, repeats of the item too.
    #[must_use]
    pub const fn stores_copies(self) -> bool {
        self.row().stores_copies
    }

    /// Returns true if filters of this kind forget items over time.
    #[must_use]
    pub const fn forgets(self) -> bool {
        self.row().forgets
    }

    /// Returns true if filters of this kind grow with the number of their items.
    #[must_use]
    pub const fn grows(self) -> bool {
        self.row().grows
    }

    /// Returns the kind with this number in files.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| kind as u8 == number)
    }

    /// Returns the formulas for the sizes of this kind.
    pub(crate) const fn sizing(self) -> &'static dyn Sizing {
        self.row().sizing
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
