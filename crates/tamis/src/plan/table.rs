//! The formulas of each kind.

use crate::kind::Kind;
use crate::kind_table::kinds;
use crate::plan::sizing::Sizing;

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
