//! An item: a value as stable bytes, which is all that a filter knows of it.
//!
//! Never `std::hash::Hash`: the bytes it feeds differ between platforms and releases, and a filter
//! must answer the same everywhere.

use std::borrow::Cow;

use crate::hash::Hasher;

/// A value that a filter can hold, as bytes that never change.
///
/// Text and byte strings are their own bytes, without a length; integers are little-endian, so
/// `1_u32` and `1_u64` are different items, and `"1"` is a third.
///
/// # Examples
///
/// ```
/// use tamis::Item;
///
/// assert_eq!(258_u32.stable_bytes().as_ref(), [2, 1, 0, 0]);
/// assert_eq!("ab".stable_bytes().as_ref(), b"ab");
/// ```
pub trait Item {
    /// The bytes, borrowed or by value.
    type Bytes<'a>: AsRef<[u8]>
    where
        Self: 'a;

    /// Returns the item's stable bytes.
    fn stable_bytes(&self) -> Self::Bytes<'_>;

    /// Hashes the stable bytes.
    #[inline(always)]
    fn hash_by(&self, hasher: &Hasher) -> u64 {
        hasher.hash(self.stable_bytes().as_ref())
    }

    /// Hashes many items, `hashes[i]` being that of `items[i]`.
    ///
    /// The bytes of text are prefetched, so that items all over memory wait for it together.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn hash_each(items: &[Self], hasher: &Hasher, hashes: &mut [u64])
    where
        Self: Sized,
    {
        Self::hash_each_then(items, hasher, hashes, |_| ());
    }

    /// Hashes many items and passes each hash to `then` as soon as it is known, which may prefetch
    /// the memory of the filter.
    ///
    /// Integers of up to eight bytes pass on no hash: all of them are hashed, several at a time in
    /// vector registers, before memory could answer. Of other types, `stable_bytes` is called twice
    /// for each item, first for the prefetch: the bytes should be borrowed, not computed.
    ///
    /// # Panics
    ///
    /// If the two slices differ in length.
    fn hash_each_then(items: &[Self], hasher: &Hasher, hashes: &mut [u64], then: impl FnMut(u64))
    where
        Self: Sized,
    {
        hasher.hash_bytes_each(items, hashes, then);
    }
}

macro_rules! integer_items {
    ($($int:ty, $unsigned:ty;)*) => { $(
        impl Item for $int {
            type Bytes<'a> = [u8; size_of::<$int>()];

            #[inline]
            fn stable_bytes(&self) -> Self::Bytes<'_> {
                self.to_le_bytes()
            }

            #[inline(always)]
            fn hash_by(&self, hasher: &Hasher) -> u64 {
                hasher.hash_integer::<{ size_of::<$int>() }>(u64::from(*self as $unsigned))
            }

            fn hash_each_then(
                items: &[Self],
                hasher: &Hasher,
                hashes: &mut [u64],
                _: impl FnMut(u64),
            ) {
                let integers = items.iter().map(|&item| u64::from(item as $unsigned));
                hasher.hash_integer_each::<{ size_of::<$int>() }>(integers, hashes);
            }
        }
    )* };
}

integer_items!(
    u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64;
);

macro_rules! wide_integer_items {
    ($($int:ty),*) => { $(
        impl Item for $int {
            type Bytes<'a> = [u8; size_of::<$int>()];

            #[inline]
            fn stable_bytes(&self) -> Self::Bytes<'_> {
                self.to_le_bytes()
            }
        }
    )* };
}

wide_integer_items!(u128, i128);

macro_rules! byte_items {
    ($($ty:ty => $as_bytes:ident),*) => { $(
        impl Item for $ty {
            type Bytes<'a> = &'a [u8];

            #[inline]
            fn stable_bytes(&self) -> &[u8] {
                self.$as_bytes()
            }
        }
    )* };
}

byte_items!([u8] => as_ref, Vec<u8> => as_slice, str => as_bytes, String => as_bytes);

impl<const N: usize> Item for [u8; N] {
    type Bytes<'a> = &'a [u8];

    #[inline]
    fn stable_bytes(&self) -> &[u8] {
        self
    }
}

impl<T: Item + ToOwned + ?Sized> Item for Cow<'_, T> {
    type Bytes<'a>
        = T::Bytes<'a>
    where
        Self: 'a;

    #[inline]
    fn stable_bytes(&self) -> Self::Bytes<'_> {
        self.as_ref().stable_bytes()
    }
}

macro_rules! pointer_items {
    ($($pointer:ty),*) => { $(
        impl<T: Item + ?Sized> Item for $pointer {
            type Bytes<'a>
                = T::Bytes<'a>
            where
                Self: 'a;

            #[inline]
            fn stable_bytes(&self) -> Self::Bytes<'_> {
                (**self).stable_bytes()
            }

            #[inline(always)]
            fn hash_by(&self, hasher: &Hasher) -> u64 {
                (**self).hash_by(hasher)
            }
        }
    )* };
}

pointer_items!(&T, Box<T>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_little_endian() {
        assert_eq!(0x0102_0304_u32.stable_bytes(), [4, 3, 2, 1]);
        assert_eq!((-2_i16).stable_bytes(), [0xfe, 0xff]);
        assert_eq!(1_u128.stable_bytes()[0], 1);
    }

    #[test]
    fn owned_and_borrowed_forms_are_one_item() {
        let hasher = Hasher::default();
        let hash = hasher.hash(b"tamis");
        assert_eq!(hasher.hash_item("tamis"), hash);
        assert_eq!(hasher.hash_item(&String::from("tamis")), hash);
        assert_eq!(hasher.hash_item(&Cow::Borrowed("tamis")), hash);
        assert_eq!(hasher.hash_item(&b"tamis".to_vec()), hash);
        assert_eq!(hasher.hash_item(b"tamis"), hash);
        assert_eq!(hasher.hash_item::<Box<str>>(&"tamis".into()), hash);
    }

    #[test]
    fn a_batch_hashes_as_single_items_do() {
        let bytes: Vec<u8> = (0..300).map(|i| (i * i) as u8).collect();
        let texts: Vec<&[u8]> = (0..100).map(|i| &bytes[i..i + i * 2]).collect();
        let numbers: Vec<u64> = (0..100).map(|i| i * 0x0123_4567_89ab_cdef).collect();
        let narrow: Vec<u32> = numbers.iter().map(|&n| (n >> 7) as u32).collect();
        for hasher in [Hasher::fold(9), Hasher::xxh3(99), Hasher::sip13([1, 2]), Hasher::xxh64(3)] {
            let mut hashes = [0; 100];
            u64::hash_each(&numbers, &hasher, &mut hashes);
            assert!(
                numbers.iter().zip(hashes).all(|(n, h)| hasher.hash_item(n) == h),
                "{hasher:?}"
            );
            u32::hash_each(&narrow, &hasher, &mut hashes);
            assert!(narrow.iter().zip(hashes).all(|(n, h)| hasher.hash_item(n) == h), "{hasher:?}");
            let mut known = Vec::new();
            <&[u8]>::hash_each_then(&texts, &hasher, &mut hashes, |hash| known.push(hash));
            assert!(texts.iter().zip(hashes).all(|(t, h)| hasher.hash_item(t) == h), "{hasher:?}");
            assert_eq!(known, hashes, "each as soon as it is known");
        }
    }
}
