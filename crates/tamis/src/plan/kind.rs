//! The kinds of filters, and the properties of each kind.

use std::fmt;

use crate::plan::kind_table::kinds;

/// The properties of a kind.
struct Row {
    /// The name on command lines, in files and in messages.
    name: &'static str,
    /// The purpose of the kind, in one line.
    summary: &'static str,
    can_remove: bool,
    stores_copies: bool,
    forgets: bool,
    grows: bool,
}

/// The row of a kind whose filters do not remove items, forget items or grow.
const PLAIN: Row = Row {
    name: "",
    summary: "",
    can_remove: false,
    stores_copies: false,
    forgets: false,
    grows: false,
};

macro_rules! define_kind {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $filter:ty, $create:path, $sizing:path, { $($row:tt)* };)*) => {
        /// A kind of filter, with its number in files. A number is never reused for another kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Kind {
            /// All kinds, in the order of their numbers.
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

    /// Returns true if filters of this kind can store copies of an item, each in a slot of its own:
    /// [`Cuckoo::try_insert_copy`](crate::Cuckoo::try_insert_copy).
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
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
