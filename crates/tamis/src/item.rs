//! Defines items: values as stable bytes. A filter uses only the stable bytes of an item.
//!
//! The trait does not use `std::hash::Hash`, whose bytes differ between platforms and releases. A
//! filter must give the same answers on every platform and in every release.

use alloc::borrow::Cow;
use alloc::rc::Rc;
use alloc::sync::Arc;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use crate::hash::Hasher;
#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// A value that a filter can hold, as bytes that never change.
///
/// To use a type of your own as an item, implement `Item` with the bytes of one field, or of a tuple
/// of fields:
///
/// ```
/// use tamis::{Bloom, Item, ItemBytes};
///
/// struct Product {
///     shop: u32,
///     sku: String,
/// }
///
/// impl Item for Product {
///     type Bytes<'a> = ItemBytes;
///
///     fn stable_bytes(&self) -> ItemBytes {
///         (self.shop, &self.sku).stable_bytes()
///     }
/// }
///
/// let mut seen = Bloom::for_items(1_000, 0.01)?;
/// assert!(seen.insert(&Product { shop: 7, sku: "A-1".into() }));
/// assert!(seen.contains(&(7_u32, "A-1")), "the same bytes");
/// # Ok::<(), tamis::PlanError>(())
/// ```
///
/// | type | stable bytes |
/// | --- | --- |
/// | `str`, `String` | the text in UTF-8, without a length |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | the bytes themselves, without a length |
/// | `u8` to `u128`, `i8` to `i128` | little-endian, in the width of the type |
/// | `bool` | one byte, 0 or 1 |
/// | `char` | its scalar value as a `u32`, little-endian |
/// | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | 4 or 16 bytes in network order |
/// | `Duration` | the whole seconds as a `u64`, then the nanoseconds as a `u32`, little-endian |
/// | `SystemTime` (feature `std`) | the nanoseconds since 1970 as an `i128`, little-endian |
/// | `[T; N]` of integers above 8 bits | the bytes of each integer in order, without a length |
/// | `Option<T>` | one byte, 0 for `None`; 1 and then the bytes of the value for `Some` |
/// | `Uuid` (feature `uuid`) | 16 bytes, in the order of its text |
/// | tuples of two to six items | the bytes of each item in order; an item of variable length is preceded by its length as a little-endian `u64` |
/// | `&T`, `Box<T>`, `Rc<T>`, `Arc<T>`, `Cow<T>` | the bytes of `T` |
///
/// Two values are the same item if their bytes are equal. For example, `"ab"` and `b"ab"` are the
/// same item. `7_u32` and `[7_u8, 0, 0, 0]` are also the same item. `1_u32`, `1_u64` and `"1"` are
/// three different items.
///
/// `usize` and floating-point numbers do not implement `Item`. The width of `usize` depends on the
/// platform: convert a `usize` to `u64`. Floating-point numbers have two zeros and many NaNs:
/// decide which values are equal, then use `to_bits()`. The compiler says the same:
///
/// ```compile_fail,E0277
/// # let mut seen = tamis::Bloom::for_items(1_000, 0.01).unwrap();
/// seen.insert(&vec!["a"].len()); // error: `usize` is not an item of a filter
/// ```
///
/// # Examples
///
/// ```
/// use tamis::Item;
///
/// assert_eq!(258_u32.stable_bytes().as_ref(), [2, 1, 0, 0]);
/// assert_eq!("ab".stable_bytes().as_ref(), b"ab");
/// // The length keeps ("a", "bc") and ("ab", "c") apart; integers need no length.
/// assert_eq!(("a", 2_u16).stable_bytes().as_ref(), b"\x01\0\0\0\0\0\0\0a\x02\0");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an item of a filter",
    label = "a filter needs the stable bytes of its items",
    note = "text, bytes, integers of a fixed width, addresses, times, and tuples and options of these \
            types are items",
    note = "convert a `usize` to `u64`, because the width of `usize` depends on the machine",
    note = "convert a floating-point number with `to_bits()`, after deciding which numbers are equal",
    note = "for a type of your own, implement `Item` with the bytes of a tuple of its fields: the \
            documentation of `Item` shows how"
)]
pub trait Item {
    /// The length of the stable bytes, if all values of the type have the same length.
    ///
    /// A tuple writes no length before an item with a known length. Therefore a wrong `LEN` makes
    /// different tuples equal. The default, `None`, is always correct.
    const LEN: Option<usize> = None;

    /// The type of the stable bytes, borrowed or owned.
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

    /// Hashes many items. `hashes[i]` is the hash of `items[i]`.
    ///
    /// Prefetches the bytes of later items, so that memory loads overlap. Therefore the default
    /// method calls [`stable_bytes`](Self::stable_bytes) twice for each item. The default method is
    /// fast if `stable_bytes` borrows. Override this method for a type whose bytes are computed.
    ///
    /// # Panics
    ///
    /// If `items` and `hashes` differ in length.
    fn hash_each(items: &[Self], hasher: &Hasher, hashes: &mut [u64])
    where
        Self: Sized,
    {
        hasher.hash_bytes_each(items, hashes);
    }
}

macro_rules! value_items {
    ($($int:ty => $to_bytes:expr;)*) => { $(
        impl Item for $int {
            const LEN: Option<usize> = Some(size_of::<$int>());

            type Bytes<'a> = [u8; size_of::<$int>()];

            #[inline]
            fn stable_bytes(&self) -> Self::Bytes<'_> {
                $to_bytes(*self)
            }

            // The stable bytes of this type are computed. A prefetch would compute the stable bytes
            // twice.
            fn hash_each(items: &[Self], hasher: &Hasher, hashes: &mut [u64]) {
                assert_eq!(items.len(), hashes.len(), "one hash an item");
                for (hash, item) in hashes.iter_mut().zip(items) {
                    *hash = item.hash_by(hasher);
                }
            }
        }
    )* };
}

macro_rules! integer_items {
    ($($int:ty)*) => { $(
        impl Item for $int {
            const LEN: Option<usize> = Some(size_of::<$int>());

            type Bytes<'a> = [u8; size_of::<$int>()];

            #[inline]
            fn stable_bytes(&self) -> Self::Bytes<'_> {
                self.to_le_bytes()
            }

            #[inline(always)]
            fn hash_by(&self, hasher: &Hasher) -> u64 {
                hasher.hash_integer(*self)
            }

            fn hash_each(items: &[Self], hasher: &Hasher, hashes: &mut [u64]) {
                hasher.hash_integer_each(items, hashes);
            }
        }
    )* };
}

integer_items!(u8 i8 u16 i16 u32 i32 u64 i64);

value_items! {
    u128 => u128::to_le_bytes;
    i128 => i128::to_le_bytes;
    bool => |value| [u8::from(value)];
    char => |value| u32::from(value).to_le_bytes();
    Ipv4Addr => |address: Ipv4Addr| address.octets();
    Ipv6Addr => |address: Ipv6Addr| address.octets();
}

impl Item for Duration {
    const LEN: Option<usize> = Some(12);

    type Bytes<'a> = [u8; 12];

    #[inline]
    fn stable_bytes(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.as_secs().to_le_bytes());
        bytes[8..].copy_from_slice(&self.subsec_nanos().to_le_bytes());
        bytes
    }
}

#[cfg(any(feature = "std", test))]
impl Item for std::time::SystemTime {
    const LEN: Option<usize> = Some(16);

    type Bytes<'a> = [u8; 16];

    #[inline]
    fn stable_bytes(&self) -> [u8; 16] {
        // A duration has at most 2⁶⁴ seconds, which are fewer than 2⁹⁴ nanoseconds.
        let nanos = match self.duration_since(Self::UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        nanos.to_le_bytes()
    }
}

impl<T: Item> Item for Option<T> {
    type Bytes<'a>
        = ItemBytes
    where
        Self: 'a;

    #[inline]
    fn stable_bytes(&self) -> ItemBytes {
        let mut bytes = ItemBytes::new();
        bytes.push(&[u8::from(self.is_some())]);
        if let Some(item) = self {
            bytes.push(item.stable_bytes().as_ref());
        }
        bytes
    }
}

macro_rules! array_items {
    ($($int:ty)*) => { $(
        impl<const N: usize> Item for [$int; N] {
            const LEN: Option<usize> = Some(N * size_of::<$int>());

            type Bytes<'a> = ItemBytes;

            #[inline]
            fn stable_bytes(&self) -> ItemBytes {
                let mut bytes = ItemBytes::new();
                self.iter().for_each(|integer| bytes.push(&integer.to_le_bytes()));
                bytes
            }
        }
    )* };
}

array_items!(i8 u16 i16 u32 i32 u64 i64 u128 i128);

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
    const LEN: Option<usize> = Some(N);

    type Bytes<'a> = &'a [u8];

    #[inline]
    fn stable_bytes(&self) -> &[u8] {
        self
    }
}

impl<T: Item + ToOwned + ?Sized> Item for Cow<'_, T> {
    const LEN: Option<usize> = T::LEN;

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
            const LEN: Option<usize> = T::LEN;

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

pointer_items!(&T, Box<T>, Rc<T>, Arc<T>);

#[cfg(feature = "uuid")]
impl Item for uuid::Uuid {
    const LEN: Option<usize> = Some(16);

    type Bytes<'a> = &'a [u8];

    #[inline]
    fn stable_bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Item for IpAddr {
    type Bytes<'a> = ItemBytes;

    #[inline]
    fn stable_bytes(&self) -> ItemBytes {
        let mut bytes = ItemBytes::new();
        match self {
            IpAddr::V4(address) => bytes.push(&address.octets()),
            IpAddr::V6(address) => bytes.push(&address.octets()),
        }
        bytes
    }
}

macro_rules! tuple_items {
    ($(($($item:ident $i:tt),*);)*) => { $(
        impl<$($item: Item),*> Item for ($($item,)*) {
            const LEN: Option<usize> = sum(&[$($item::LEN),*]);

            type Bytes<'a>
                = ItemBytes
            where
                Self: 'a;

            #[inline]
            fn stable_bytes(&self) -> ItemBytes {
                let mut bytes = ItemBytes::new();
                $( bytes.push_item(&self.$i); )*
                bytes
            }
        }
    )* };
}

tuple_items! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
}

/// Returns the sum of all lengths, or `None` if a length is unknown.
const fn sum(lens: &[Option<usize>]) -> Option<usize> {
    let (mut sum, mut i) = (0, 0);
    while i < lens.len() {
        match lens[i] {
            Some(len) => sum += len,
            None => return None,
        }
        i += 1;
    }
    Some(sum)
}

/// The stable bytes of an item, assembled from the bytes of its parts. Up to 64 bytes need no
/// allocation.
#[derive(Clone, Debug)]
pub struct ItemBytes {
    // Invariant: the bytes are `few[..len]`, or `many` if `len` is above the length of `few`.
    few: [u8; FEW_BYTES],
    len: usize,
    many: Vec<u8>,
}

const FEW_BYTES: usize = 64;

impl ItemBytes {
    #[inline]
    const fn new() -> Self {
        Self { few: [0; FEW_BYTES], len: 0, many: Vec::new() }
    }

    #[inline]
    fn push_item<I: Item>(&mut self, item: &I) {
        let bytes = item.stable_bytes();
        let bytes = bytes.as_ref();
        if I::LEN.is_none() {
            self.push(&(bytes.len() as u64).to_le_bytes());
        }
        self.push(bytes);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.few.get_mut(self.len..end) {
            Some(few) => few.copy_from_slice(bytes),
            None => self.push_many(bytes),
        }
        self.len = end;
    }

    #[cold]
    fn push_many(&mut self, bytes: &[u8]) {
        if self.len <= FEW_BYTES {
            self.many.extend_from_slice(&self.few[..self.len]);
        }
        self.many.extend_from_slice(bytes);
    }
}

impl AsRef<[u8]> for ItemBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.few.get(..self.len).unwrap_or(&self.many)
    }
}

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
    fn each_type_has_the_bytes_of_the_table() {
        fn bytes<I: Item + ?Sized>(item: &I) -> Vec<u8> {
            let bytes = item.stable_bytes().as_ref().to_vec();
            assert!(I::LEN.is_none_or(|len| len == bytes.len()));
            bytes
        }
        assert_eq!(bytes(&true), [1]);
        assert_eq!(bytes(&'é'), [0xe9, 0, 0, 0]);
        assert_eq!(bytes(&1_u128), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let address: IpAddr = "1.2.3.4".parse().unwrap();
        assert_eq!(
            (bytes(&address), bytes(&Ipv4Addr::new(1, 2, 3, 4))),
            (vec![1, 2, 3, 4], vec![1, 2, 3, 4])
        );
        let address: Ipv6Addr = "2001:db8::1".parse().unwrap();
        assert_eq!(bytes(&address), bytes(&IpAddr::V6(address)));
        assert_eq!(bytes(&address)[..4], [0x20, 0x01, 0x0d, 0xb8]);
        let day = Duration::new(86_400, 5);
        assert_eq!(bytes(&day), [0x80, 0x51, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
        let epoch = std::time::SystemTime::UNIX_EPOCH;
        assert_eq!(bytes(&(epoch + day)), bytes(&86_400_000_000_005_i128));
        assert_eq!(bytes(&(epoch - day)), bytes(&-86_400_000_000_005_i128));
        assert_eq!((bytes(&None::<u16>), bytes(&Some(1_u16))), (vec![0], vec![1, 1, 0]));
        assert_eq!(bytes(&Some(Some("a"))), b"\x01\x01a");
        assert_eq!(bytes(&(Some(1_u8), 2_u8)), b"\x02\0\0\0\0\0\0\0\x01\x01\x02");
        assert_eq!(bytes(&[1_u16, 0x203]), [1, 0, 3, 2]);
        assert_eq!(bytes(&[7_u64; 40]), [7, 0, 0, 0, 0, 0, 0, 0].repeat(40));
        assert_eq!(bytes(&([1_u32, 2], 3_u8)), [1, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(bytes::<Arc<str>>(&"a".into()), b"a");
        assert_eq!(bytes::<Rc<[u8]>>(&b"a"[..].into()), b"a");
        assert_eq!(bytes(&(1_u16, 2_u16)), [1, 0, 2, 0]);
        assert_eq!(bytes(&((1_u8, 'a'), Arc::new(2_u8))), [1, b'a', 0, 0, 0, 2]);
        assert_eq!(bytes(&("a", b"b")), b"\x01\0\0\0\0\0\0\0ab");
        assert_eq!(bytes(&(("a", 1_u8), 2_u8)), b"\x0a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0a\x01\x02");
    }

    #[cfg(feature = "uuid")]
    #[test]
    fn a_uuid_is_its_bytes_in_the_order_of_its_text() {
        let id = uuid::Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        assert_eq!(id.to_string(), "01020304-0506-0708-090a-0b0c0d0e0f10");
        assert_eq!(id.stable_bytes(), (1..=16).collect::<Vec<u8>>());
    }

    #[test]
    fn tuples_of_text_are_unambiguous_at_any_length() {
        let text = "a".repeat(200);
        let mut hashes = std::collections::HashSet::new();
        for i in 0..=200 {
            let (one, two) = text.split_at(i);
            let bytes = (one, two).stable_bytes();
            assert_eq!(bytes.as_ref().len(), 216);
            assert!(hashes.insert(bytes.as_ref().to_vec()), "split at {i}");
            let few = (&one[..i.min(40)], &two[..0]).stable_bytes();
            assert_eq!(few.as_ref()[8..8 + i.min(40)], text.as_bytes()[..i.min(40)]);
        }
        let items: Vec<(u32, String)> = (0..100).map(|i| (i, "b".repeat(i as usize))).collect();
        let (hasher, mut hashes) = (Hasher::default(), [0; 100]);
        <(u32, String)>::hash_each(&items, &hasher, &mut hashes);
        assert!(items.iter().zip(hashes).all(|(item, hash)| hasher.hash_item(item) == hash));
    }

    #[test]
    fn a_batch_hashes_as_single_items_do() {
        let bytes: Vec<u8> = (0..300).map(|i| (i * i) as u8).collect();
        let texts: Vec<&[u8]> = (0..100).map(|i| &bytes[i..i + i * 2]).collect();
        let numbers: Vec<u64> = (0..100).map(|i| i * 0x0123_4567_89ab_cdef).collect();
        let narrow: Vec<u32> = numbers.iter().map(|&n| (n >> 7) as u32).collect();
        for hasher in [Hasher::mix(9), Hasher::fold(9), Hasher::sip13([1, 2]), Hasher::xxh64(3)] {
            let mut hashes = [0; 100];
            u64::hash_each(&numbers, &hasher, &mut hashes);
            assert!(
                numbers.iter().zip(hashes).all(|(n, h)| hasher.hash_item(n) == h),
                "{hasher:?}"
            );
            u32::hash_each(&narrow, &hasher, &mut hashes);
            assert!(narrow.iter().zip(hashes).all(|(n, h)| hasher.hash_item(n) == h), "{hasher:?}");
            <&[u8]>::hash_each(&texts, &hasher, &mut hashes);
            assert!(texts.iter().zip(hashes).all(|(t, h)| hasher.hash_item(t) == h), "{hasher:?}");
        }
    }
}
