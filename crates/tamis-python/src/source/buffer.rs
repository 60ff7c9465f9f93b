//! Items in the buffer of a numpy array, an `array.array` or a `memoryview`.

use std::ops::Range;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::keys::Encoding;
use crate::raw::buffer::RawBuffer;
use crate::source::{Batch, Source};

/// An array of integers or of text of a fixed width.
pub struct BufferSource {
    buffer: RawBuffer,
    items: Items,
}

/// How the items are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Items {
    /// Integers of 1, 2, 4 or 8 bytes.
    Integers { width: usize, is_signed: bool, is_swapped: bool },
    /// Bytes, padded with zeros: numpy's `S`.
    Bytes,
    /// UTF-32, padded with zeros: numpy's `U`.
    Text { is_swapped: bool },
}

impl BufferSource {
    /// Reads the form of an array.
    ///
    /// # Errors
    ///
    /// `TypeError` if the array's items are no items of a filter, `ValueError` if the array has
    /// other than one dimension.
    pub fn new(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(buffer) = RawBuffer::get(array)? else {
            return Err(PyValueError::new_err(
                "the array must have one dimension: use array.ravel()",
            ));
        };
        let format = buffer.format().to_string_lossy().into_owned();
        let items = items_of(&format, buffer.item_bytes())?;
        Ok(Self { buffer, items })
    }
}

fn items_of(format: &str, item_bytes: usize) -> PyResult<Items> {
    let (order, code) = match format.as_bytes().first() {
        Some(order @ (b'<' | b'>' | b'=' | b'@' | b'!')) => (*order, &format[1..]),
        _ => (b'@', format),
    };
    let is_swapped = match order {
        b'<' => cfg!(target_endian = "big"),
        b'>' | b'!' => cfg!(target_endian = "little"),
        _ => false,
    };
    let kind = code.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_one = kind.len() == code.len();
    match kind {
        "b" | "h" | "i" | "l" | "q" | "n" if is_one => {
            Ok(Items::Integers { width: item_bytes, is_signed: true, is_swapped })
        }
        "B" | "H" | "I" | "L" | "Q" | "N" if is_one => {
            Ok(Items::Integers { width: item_bytes, is_signed: false, is_swapped })
        }
        "s" => Ok(Items::Bytes),
        "w" if item_bytes.is_multiple_of(4) => Ok(Items::Text { is_swapped }),
        "e" | "f" | "d" | "g" => Err(PyTypeError::new_err(
            "floating-point numbers are not items: decide which numbers are equal, and convert \
             the array, for example with array.astype('int64') or array.view('uint64')",
        )),
        "?" => Err(PyTypeError::new_err(
            "an array of booleans cannot be used as items: convert it to integers, or choose the \
             rows first",
        )),
        _ => Err(PyTypeError::new_err(format!(
            "an array of the format {format:?} cannot be used as items: convert it to integers, text \
             or bytes"
        ))),
    }
}

impl Source for BufferSource {
    fn len(&self) -> usize {
        self.buffer.len()
    }

    fn read(&self, rows: Range<usize>, encoding: Encoding, batch: &mut Batch) -> PyResult<()> {
        let width = self.buffer.item_bytes();
        if let Items::Integers { width: 8, is_signed, is_swapped: false } = self.items {
            batch.integers.resize(rows.len(), 0);
            self.buffer.copy(rows.start, bytemuck::cast_slice_mut(&mut batch.integers));
            return encoding.push_integers(&batch.integers, is_signed, &mut batch.keys);
        }
        batch.bytes.resize(rows.len() * width, 0);
        self.buffer.copy(rows.start, &mut batch.bytes);
        match self.items {
            Items::Integers { width, is_signed, is_swapped } => {
                widen(&mut batch.bytes, width, is_signed, is_swapped, &mut batch.integers);
                encoding.push_integers(&batch.integers, is_signed, &mut batch.keys)
            }
            Items::Bytes => {
                let items: Vec<&[u8]> = fixed(&batch.bytes, width, rows.len()).map(trim).collect();
                encoding.push_slices(&items, false, &mut batch.keys)
            }
            Items::Text { is_swapped } => {
                let (mut text, mut ends) = (String::new(), Vec::with_capacity(rows.len()));
                for item in fixed(&batch.bytes, width, rows.len()) {
                    push_utf32(item, is_swapped, &mut text)?;
                    ends.push(text.len());
                }
                let items = crate::keys::slices(text.as_bytes(), &ends);
                encoding.push_slices(&items, true, &mut batch.keys)
            }
        }
    }
}

/// Splits bytes into items of a fixed width, which may be 0.
fn fixed(bytes: &[u8], width: usize, len: usize) -> impl Iterator<Item = &[u8]> {
    (0..len).map(move |i| &bytes[i * width..(i + 1) * width])
}

/// Removes the zeros at the end, as numpy does.
fn trim(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

fn push_utf32(item: &[u8], is_swapped: bool, text: &mut String) -> PyResult<()> {
    let unit = |unit: &[u8]| {
        let unit = u32::from_ne_bytes(unit.try_into().expect("four bytes"));
        if is_swapped { unit.swap_bytes() } else { unit }
    };
    let units = item.chunks_exact(4).map(unit);
    let len = units.clone().rposition(|unit| unit != 0).map_or(0, |last| last + 1);
    for unit in units.take(len) {
        text.push(char::from_u32(unit).ok_or_else(|| {
            PyValueError::new_err(format!("U+{unit:04X} in the array is not a character"))
        })?);
    }
    Ok(())
}

/// Widens integers to 64 bits.
fn widen(
    bytes: &mut [u8],
    width: usize,
    is_signed: bool,
    is_swapped: bool,
    integers: &mut Vec<u64>,
) {
    if is_swapped {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    integers.clear();
    macro_rules! extend {
        ($int:ty) => {
            integers.extend(bytes.chunks_exact(size_of::<$int>()).map(|bytes| {
                let value = <$int>::from_ne_bytes(bytes.try_into().expect("the width"));
                i64::from(value) as u64
            }))
        };
    }
    match (width, is_signed) {
        (1, true) => extend!(i8),
        (1, false) => extend!(u8),
        (2, true) => extend!(i16),
        (2, false) => extend!(u16),
        (4, true) => extend!(i32),
        (4, false) => extend!(u32),
        _ => extend!(i64),
    }
}
