//! The formulas of each kind.

use crate::filter::bloom::counting::sizing::SIZING as COUNTING;
use crate::filter::cuckoo::sizing::CuckooSizing;
use crate::filter::growing::sizing::GrowingSizing;
use crate::filter::window::sizing::SIZING as WINDOW;
use crate::plan::geometry::Geometry;
use crate::plan::kind::Kind;
use crate::plan::kind_table::kinds;
use crate::plan::sizing::Sizing;
use crate::strategy::classic::sizing::ClassicSizing;
use crate::strategy::sizing::{PARQUET, SPLIT_BLOCK};

macro_rules! define_sizing {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $filter:ty, $create:path, $sizing:path, $row:tt;)*) => {
        impl Kind {
            /// Returns the formulas for the sizes of this kind.
            pub(crate) const fn sizing(self) -> &'static dyn Sizing {
                match self {
                    $(Kind::$kind => &$sizing,)*
                }
            }
        }
    };
}
kinds!(define_sizing);

impl Geometry {
    /// Restores the geometry of a filter of this kind from the number that files store. Returns
    /// `None` if the kind has no geometry with this number.
    #[must_use]
    pub fn from_number(kind: Kind, number: u32) -> Option<Geometry> {
        kind.sizing().geometry(number)
    }
}
