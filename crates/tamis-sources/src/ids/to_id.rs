//! The values of a program that are ids.

use std::borrow::Cow;

/// A value that is an id: an integer, a text or bytes.
///
/// The trait converts the value to its text. The [type](crate::IdType) of a set decides whether the text is an id of
/// the set. For another type, such as a UUID, pass its text: `uuid.to_string()`.
///
/// # Examples
///
/// ```
/// use tamis_sources::ToId;
///
/// assert_eq!(*42_u64.to_id(), *b"42");
/// assert_eq!(*"42".to_id(), *b"42");
/// assert_eq!(*b"42".to_id(), *b"42");
/// ```
pub trait ToId {
    /// Returns the text of the id. The text need not be canonical.
    fn to_id(&self) -> Cow<'_, [u8]>;
}

impl<T: ToId + ?Sized> ToId for &T {
    fn to_id(&self) -> Cow<'_, [u8]> {
        (**self).to_id()
    }
}

impl<T: ToId + ?Sized> ToId for Box<T> {
    fn to_id(&self) -> Cow<'_, [u8]> {
        (**self).to_id()
    }
}

impl ToId for [u8] {
    fn to_id(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }
}

impl<const N: usize> ToId for [u8; N] {
    fn to_id(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }
}

impl ToId for Vec<u8> {
    fn to_id(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }
}

impl ToId for str {
    fn to_id(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.as_bytes())
    }
}

impl ToId for String {
    fn to_id(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.as_bytes())
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl ToId for $integer {
            fn to_id(&self) -> Cow<'_, [u8]> {
                Cow::Owned(self.to_string().into_bytes())
            }
        })*
    };
}

integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);
