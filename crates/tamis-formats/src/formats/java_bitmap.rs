//! The `byte[]` bitmap of hand-written Java programs: `bits[num >> 3] |= 1 << (num & 7)`. Layout:
//! `docs/formats/java-bitmap.md`.
//!
//! The bitmap is an exact set, [`IntegerBitmap`]. Some Java programs use a `byte[]` bitmap to find repeated values. In
//! Tamis, [`tamis::RepeatFinder`] finds repeated values:
//!
//! ```
//! let mut finder = tamis::RepeatFinder::new()?;
//! finder.feed(&[1, 2, 3, 4, 3, 4]);
//! assert_eq!(finder.finish().repeated.iter().collect::<Vec<_>>(), [3, 4]);
//! # Ok::<(), tamis::RangeError>(())
//! ```

use tamis::{DenseSet, Order};

use crate::encoding::bitmap_file::{self, BitmapFile};
use crate::errors::DecodeError;
use crate::filters::{Contents, IntegerBitmap};
use crate::format::{Detection, Format, ItemDomain, Items};
use crate::items::Funnel;
use crate::redis::string;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "java-bitmap",
    extensions: &["bitmap"],
    summary: "a byte[] of Java as a set of integers: bits[num >> 3], bit num & 7",
    detection: Detection::ByOption,
    items: Items::Default(Funnel::Int),
    item_domain: ItemDomain::Integers,
    parameters: bitmap_file::PARAMETERS,
    decode: |bytes, options| decode(&string::of_any_file(bytes, options)?).map(Contents::new),
    encode: |contents, options, out| ARRAY.encode(contents, options, out),
    create: |options| {
        let set = ARRAY.create(options.items)?;
        // If the options have no planned length, the array grows with the inserted items.
        let array =
            if options.items.is_some() { of_array(set) } else { IntegerBitmap::new(set, MAX) };
        Ok(Contents::new(array))
    },
    ..Format::BASE
};

const ARRAY: BitmapFile = BitmapFile { value: "a Java int", max: MAX, order: Order::LsbFirst };

/// The largest value of a Java `int`.
const MAX: u64 = i32::MAX as u64;

/// Decodes the bytes of an array. The array does not grow: values beyond the end are rejected, as in Java.
///
/// # Errors
///
/// [`DecodeError`] if there are no bytes, or if the allocation fails.
///
/// # Examples
///
/// ```
/// use tamis_formats::java_bitmap;
///
/// let set = java_bitmap::decode(&[0b0010_0110])?;
/// assert_eq!(set.values().iter().collect::<Vec<_>>(), [1, 2, 5]);
/// assert_eq!(set.limit(), 7);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8]) -> Result<IntegerBitmap, DecodeError> {
    ARRAY.decode(bytes).map(of_array)
}

fn of_array(set: DenseSet) -> IntegerBitmap {
    // If an array is longer than 256 MiB, no Java `int` reaches its last bits.
    let limit = (*set.range().end()).min(MAX);
    IntegerBitmap::new(set, limit)
}
