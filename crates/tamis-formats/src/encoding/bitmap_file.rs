//! Reads and writes a file that is a plain bitmap. Bit `i` stands for the integer `i`.

use std::borrow::Cow;
use std::io;

use tamis::{DenseSet, Order, RangeError};

use crate::errors::{CreateError, DecodeError, DecodeErrorKind, EncodeError};
use crate::filters::{Contents, IntegerBitmap};
use crate::format::{DecodeOptions, Parameter, Parameters};
use crate::formats::roaring::Roaring;

/// A kind of bitmap file: the allowed values and the order of the bits.
pub(crate) struct BitmapFile {
    /// The name of a value in error messages.
    pub(crate) value: &'static str,
    /// The largest value that a bitmap may contain.
    pub(crate) max: u64,
    pub(crate) order: Order,
}

/// The parameters of a bitmap. A snapshot of Redis needs the key of the bitmap.
pub(crate) const PARAMETERS: Parameters =
    Parameters { reading: &[Parameter::Key], planning: &[Parameter::Items], ..Parameters::NONE };

impl BitmapFile {
    /// Decodes a bitmap. The first bit stands for the integer 0.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<DenseSet, DecodeError> {
        DenseSet::from_bytes(0, bytes, self.order).map_err(|error| match error {
            RangeError::OutOfMemory(memory) => DecodeError::memory("bits", 0)(memory),
            RangeError::Empty { .. } => {
                DecodeError::new("bits", 0, DecodeErrorKind::Truncated { expected: 1, found: 0 })
            }
        })
    }

    /// Creates an empty bitmap for the values 0 to `items` − 1. Without `items`, the bitmap has one byte.
    pub(crate) fn create(&self, items: Option<u64>) -> Result<DenseSet, CreateError> {
        DenseSet::new(0..=self.last_of(items)? | 7)
            .map_err(|error| CreateError::refused(format!("{error}: plan fewer items")))
    }

    /// Returns the largest of the values 0 to `items` − 1, or 0 without `items`.
    fn last_of(&self, items: Option<u64>) -> Result<u64, CreateError> {
        let last = items.unwrap_or(1).max(1) - 1;
        if last > self.max {
            let (items, most) = (last + 1, self.max + 1);
            let why = format!("{items} items are too many: at most {most}");
            return Err(CreateError::refused(why));
        }
        Ok(last)
    }

    /// Writes an exact set of integers as a bitmap. An [`IntegerBitmap`] keeps its length. A [`Roaring`] set becomes a
    /// bitmap for the planned items, or a longer bitmap if a value does not fit.
    pub(crate) fn encode(
        &self,
        contents: &Contents,
        options: &DecodeOptions,
        out: &mut dyn io::Write,
    ) -> Result<(), EncodeError> {
        let &Self { value, max, order } = self;
        let check = |greatest: Option<u64>| match greatest {
            Some(found) if found > max => Err(EncodeError::refused(format!(
                "{found} is not a value of {value}: at most {max}"
            ))),
            _ => Ok(greatest.unwrap_or(0)),
        };
        let set = if let Some(bitmap) = contents.downcast_ref::<IntegerBitmap>() {
            check(bitmap.values().max())?;
            Cow::Borrowed(bitmap.values())
        } else if let Some(roaring) = contents.downcast_ref::<Roaring>() {
            let last = check(roaring.set.max())?.max(self.last_of(options.items)?);
            let dense = roaring.set.to_dense(0..=last | 7);
            Cow::Owned(dense.map_err(|error| EncodeError::refused(error.to_string()))?)
        } else {
            return Err(EncodeError::needs_items("a bitmap stores only integers"));
        };
        Ok(out.write_all(&set.to_bytes(order))?)
    }
}
