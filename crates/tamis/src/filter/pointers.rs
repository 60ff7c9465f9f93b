//! The traits of filters for references and pointers to filters, so that generic code also takes
//! `&mut filter`, `Box<dyn TryInsert>` and, for lookups, `Arc<SharedBloom>`.

use alloc::rc::Rc;
use alloc::sync::Arc;

use crate::filter::{Clear, Count, Filter, Insert, InsertError, Remove, Removed, TryInsert};
use crate::hash::Hasher;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::Plan;
use crate::plan::layout::Layout;

macro_rules! pointers {
    ($($pointer:ty),*) => { $(
        impl<F: Filter + ?Sized> Filter for $pointer {
            fn plan(&self) -> &Plan {
                (**self).plan()
            }

            #[inline]
            fn hasher(&self) -> Hasher {
                (**self).hasher()
            }

            fn layout(&self) -> Layout {
                (**self).layout()
            }

            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                (**self).contains_hash(hash)
            }

            fn contains_hashes(&self, hashes: &[u64], answers: &mut [u64]) {
                (**self).contains_hashes(hashes, answers);
            }

            fn is_empty(&self) -> bool {
                (**self).is_empty()
            }

            fn estimate_items(&self) -> f64 {
                (**self).estimate_items()
            }

            fn estimate_rate(&self) -> f64 {
                (**self).estimate_rate()
            }

            fn fill(&self) -> f64 {
                (**self).fill()
            }

            fn is_over_rate(&self) -> bool {
                (**self).is_over_rate()
            }
        }

        impl<F: Count + ?Sized> Count for $pointer {
            #[inline]
            fn count_hash(&self, hash: u64) -> u64 {
                (**self).count_hash(hash)
            }

            fn max_count(&self) -> u64 {
                (**self).max_count()
            }
        }
    )* };
}

pointers!(&F, &mut F, Box<F>, Rc<F>, Arc<F>);

macro_rules! owning_pointers {
    ($($pointer:ty),*) => { $(
        impl<F: TryInsert + ?Sized> TryInsert for $pointer {
            #[inline]
            fn try_insert_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
                (**self).try_insert_hash(hash)
            }

            fn try_insert_hashes(
                &mut self,
                hashes: &[u64],
                answers: &mut [u64],
            ) -> Result<(), InsertError> {
                (**self).try_insert_hashes(hashes, answers)
            }

            #[inline]
            fn try_insert_copy_hash(&mut self, hash: u64) -> Result<bool, InsertError> {
                (**self).try_insert_copy_hash(hash)
            }

            fn try_insert_copy_hashes(
                &mut self,
                hashes: &[u64],
                answers: &mut [u64],
            ) -> Result<(), InsertError> {
                (**self).try_insert_copy_hashes(hashes, answers)
            }
        }

        impl<F: Insert + ?Sized> Insert for $pointer {
            #[inline]
            fn insert_hash(&mut self, hash: u64) -> bool {
                (**self).insert_hash(hash)
            }

            fn insert_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
                (**self).insert_hashes(hashes, answers);
            }
        }

        impl<F: Remove + ?Sized> Remove for $pointer {
            #[inline]
            fn remove_hash(&mut self, hash: u64) -> Removed {
                (**self).remove_hash(hash)
            }

            fn remove_hashes(&mut self, hashes: &[u64], answers: &mut [u64]) {
                (**self).remove_hashes(hashes, answers);
            }
        }

        impl<F: Clear + ?Sized> Clear for $pointer {
            fn clear(&mut self) {
                (**self).clear();
            }
        }
    )* };
}

owning_pointers!(&mut F, Box<F>);
