//! A file that is a plain bitmap: one bit for each integer, starting with 0.

use std::borrow::Cow;
use std::io;

use tamis::{DenseSet, Order, RangeError};

use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, IntegerBitmap};
use crate::format::DecodeOptions;
use crate::formats::roaring::Roaring;

/// Reads a bitmap. Its first bit is the integer 0.
pub(crate) fn decode(bytes: &[u8], order: Order) -> Result<DenseSet, DecodeError> {
    DenseSet::from_bytes(0, bytes, order).map_err(|error| DecodeError {
        field: "bits",
        at: 0,
        kind: match error {
            RangeError::OutOfMemory(memory) => DecodeErrorKind::Memory(memory),
            RangeError::Empty { .. } => DecodeErrorKind::Truncated { expected: 1, found: 0 },
        },
    })
}

/// Creates an empty bitmap for the values 0 to `items` − 1, which must not exceed `max`. Without
/// `items` the bitmap has one byte.
pub(crate) fn create(items: Option<u64>, max: u64) -> Result<DenseSet, CreateError> {
    let last = last_of(items, max)?;
    DenseSet::new(0..=last | 7)
        .map_err(|error| CreateError::refused(format!("{error}: plan fewer items")))
}

/// Returns the largest of the values 0 to `items` − 1. Without `items`, returns 0.
fn last_of(items: Option<u64>, max: u64) -> Result<u64, CreateError> {
    let last = items.unwrap_or(1).max(1) - 1;
    if last > max {
        return Err(CreateError::refused(format!(
            "{} items are too many: at most {}",
            last + 1,
            max + 1
        )));
    }
    Ok(last)
}

/// Writes an exact set of integers as a bitmap. `what` names the values in errors, and `max` is the
/// largest one. A set without a length of its own gets the length of the planned items, or longer
/// if its values need it.
pub(crate) fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    what: &str,
    max: u64,
    order: Order,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    let check = |greatest: Option<u64>| match greatest {
        Some(found) if found > max => {
            Err(EncodeError::refused(format!("{found} is not a value of {what}: at most {max}")))
        }
        _ => Ok(greatest.unwrap_or(0)),
    };
    let set = if let Some(bitmap) = contents.downcast_ref::<IntegerBitmap>() {
        check(bitmap.values().max())?;
        Cow::Borrowed(bitmap.values())
    } else if let Some(roaring) = contents.downcast_ref::<Roaring>() {
        let last = check(roaring.set.max())?.max(last_of(options.items, max)?);
        let dense = roaring.set.to_dense(0..=last | 7);
        Cow::Owned(dense.map_err(|error| EncodeError::refused(error.to_string()))?)
    } else {
        return Err(EncodeError::needs_items("a bitmap stores only integers"));
    };
    Ok(out.write_all(&set.to_bytes(order))?)
}
