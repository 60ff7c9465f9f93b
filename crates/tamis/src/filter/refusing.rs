//! `Extend` of the filters that may refuse items.

use crate::batch::extend::try_extend;
use crate::bits::BitsMut;
use crate::filter::any::AnyFilter;
use crate::filter::cuckoo::Cuckoo;
use crate::filter::growing::Growing;
use crate::item::Item;

macro_rules! extend_or_panic {
    ($($filter:ident),*) => { $(
        impl<I: Item, B: BitsMut> Extend<I> for $filter<B> {
            /// Inserts every item, in batches.
            ///
            /// # Panics
            ///
            /// Panics if the filter has no space for an item, because `extend` cannot return an
            /// error. To get an error instead of a panic, use `try_extend`.
            fn extend<T: IntoIterator<Item = I>>(&mut self, items: T) {
                if let Err(error) = try_extend(self, items) {
                    panic!("{error}");
                }
            }
        }
    )* };
}

extend_or_panic!(AnyFilter, Cuckoo, Growing);
