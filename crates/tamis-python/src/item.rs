//! Converts Python objects to items: the stable bytes that every Tamis program hashes.
//!
//! | Python | item | in Rust |
//! | --- | --- | --- |
//! | `str` | its UTF-8 | `&str` |
//! | `bytes`, `bytearray`, `memoryview` | the bytes | `&[u8]` |
//! | `int` from −2⁶³ to 2⁶⁴ − 1, and objects with `__index__` | 8 bytes, little-endian, two's complement | `i64` or `u64` |
//! | `uuid.UUID` | its 16 bytes | `uuid::Uuid` |
//! | `tuple` | the bytes of each part; a part of variable length follows its length as 8 bytes | a tuple |

use std::borrow::Cow;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple, PyTupleMethods, PyType,
};

use crate::raw::integer::bits_of;

/// A tuple may contain tuples up to this depth.
const MAX_DEPTH: u32 = 32;

/// An item.
pub enum Item<'a> {
    /// An integer, as the bits of its 64-bit form. `is_negative` is true if the integer is
    /// below zero.
    Integer { bits: u64, is_negative: bool },
    /// Text in UTF-8.
    Text(Cow<'a, str>),
    /// Bytes of variable length.
    Bytes(Cow<'a, [u8]>),
    /// Bytes of a length that all values of the type have.
    Fixed(Vec<u8>),
}

impl<'a> Item<'a> {
    /// Converts an object to an item.
    ///
    /// # Errors
    ///
    /// `TypeError` if the object's type is no item, `OverflowError` for an integer of more than 64
    /// bits, and `UnicodeEncodeError` for text with lone surrogates.
    pub fn new(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        Self::at_depth(object, 0)
    }

    fn at_depth(object: &'a Bound<'_, PyAny>, depth: u32) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            // `to_str` keeps the UTF-8 of a string that is not ASCII in the object.
            return Ok(Item::Text(text.to_str()?.into()));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Item::Bytes(bytes.as_bytes().into()));
        }
        if let Ok(integer) = object.cast::<PyInt>() {
            return integer_of(integer);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return tuple_of(tuple, depth);
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Item::Bytes(Cow::Owned(bytes.to_vec())));
        }
        if object.cast::<PyMemoryView>().is_ok() {
            return view_of(object);
        }
        if let Some(bytes) = uuid_of(object)? {
            return Ok(Item::Fixed(bytes));
        }
        if let Some(integer) = index_of(object)? {
            return integer_of(&integer);
        }
        Err(no_item(object))
    }

    /// Returns the stable bytes of the item.
    pub fn stable_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Item::Integer { bits, .. } => Cow::Owned(bits.to_le_bytes().to_vec()),
            Item::Text(text) => Cow::Borrowed(text.as_bytes()),
            Item::Bytes(bytes) => Cow::Borrowed(bytes),
            Item::Fixed(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Appends the item as a part of a tuple.
    fn push_to(&self, tuple: &mut Vec<u8>) {
        let bytes = self.stable_bytes();
        if matches!(self, Item::Text(_) | Item::Bytes(_)) {
            tuple.extend((bytes.len() as u64).to_le_bytes());
        }
        tuple.extend_from_slice(&bytes);
    }
}

fn integer_of<'a>(integer: &Bound<'_, PyInt>) -> PyResult<Item<'a>> {
    let Some((bits, is_negative)) = bits_of(integer) else {
        return Err(PyOverflowError::new_err(format!(
            "an int item has 64 bits, from -2**63 to 2**64 - 1, and this one does not fit: insert \
             str(item) or item.to_bytes(...) instead of {}",
            shortened(integer)
        )));
    };
    Ok(Item::Integer { bits, is_negative })
}

fn tuple_of<'a>(tuple: &Bound<'_, PyTuple>, depth: u32) -> PyResult<Item<'a>> {
    if tuple.is_empty() {
        return Err(PyTypeError::new_err("an empty tuple is not an item"));
    }
    if depth == MAX_DEPTH {
        return Err(PyTypeError::new_err(format!("a tuple item has at most {MAX_DEPTH} levels")));
    }
    let (mut bytes, mut is_fixed) = (Vec::new(), true);
    for part in tuple.iter_borrowed() {
        let part = Item::at_depth(&part, depth + 1)?;
        is_fixed &= matches!(part, Item::Integer { .. } | Item::Fixed(_));
        part.push_to(&mut bytes);
    }
    Ok(if is_fixed { Item::Fixed(bytes) } else { Item::Bytes(Cow::Owned(bytes)) })
}

fn view_of<'a>(object: &Bound<'_, PyAny>) -> PyResult<Item<'a>> {
    let buffer = PyUntypedBuffer::get(object)?;
    if buffer.item_size() != 1 {
        return Err(PyTypeError::new_err(
            "a memoryview item must have bytes: use view.cast('B'), or f.contains(array) for many \
             items",
        ));
    }
    let bytes: Vec<u8> = object.call_method0("tobytes")?.extract()?;
    Ok(Item::Bytes(Cow::Owned(bytes)))
}

fn uuid_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if !object.is_instance(UUID.import(object.py(), "uuid", "UUID")?)? {
        return Ok(None);
    }
    object.getattr("bytes")?.extract().map(Some)
}

/// Returns the integer of an object with `__index__`, for example of `numpy.int64`.
fn index_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    // An array of one item has `__index__`, but is not an item. Neither is `numpy.bool`.
    let is_scalar = object
        .getattr_opt("shape")?
        .is_none_or(|shape| shape.cast::<PyTuple>().is_ok_and(PyTupleMethods::is_empty));
    if !is_scalar || object.hasattr("__len__")? {
        return Ok(None);
    }
    // Python looks for a special method in the class, so the class `int` is not an item.
    let Some(method) = object.get_type().getattr_opt("__index__")? else { return Ok(None) };
    method.call1((object,))?.cast_into().map(Some).map_err(Into::into)
}

#[cold]
fn no_item(object: &Bound<'_, PyAny>) -> PyErr {
    let class = object.get_type();
    let name = class.fully_qualified_name().map_or_else(|_| "?".into(), |name| name.to_string());
    let way = match name.as_str() {
        "float" | "numpy.float64" | "numpy.float32" => {
            "decide which numbers are equal, and insert str(item) or struct.pack('<d', item)"
        }
        "NoneType" => "leave None out, or insert a text that stands for it",
        "numpy.ndarray" | "list" | "set" | "frozenset" | "generator" => {
            "use f.contains(items) or f.insert(items) for many items"
        }
        "dict" => "insert what identifies it, for example row['id'] or (row['a'], row['b'])",
        "datetime.datetime"
        | "datetime.date"
        | "datetime.time"
        | "pandas.Timestamp"
        | "pandas._libs.tslibs.timestamps.Timestamp" => "insert item.isoformat()",
        "numpy.datetime64" | "numpy.timedelta64" => "insert str(item), or item.astype('int64')",
        "pathlib.PosixPath" | "pathlib._local.PosixPath" => "insert os.fsencode(item)",
        "decimal.Decimal" => "insert str(item)",
        _ => "insert a str, bytes, int, UUID, or a tuple of these that stands for the item",
    };
    PyTypeError::new_err(format!("{name} is not an item: {way}"))
}

/// Returns the representation of an integer, shortened.
fn shortened(integer: &Bound<'_, PyInt>) -> String {
    // The text of a huge integer takes quadratic time, and Python refuses it.
    let bits = integer.call_method0("bit_length").and_then(|bits| bits.extract::<u64>());
    match bits {
        Ok(bits) if bits <= 128 => integer.to_string(),
        Ok(bits) => format!("an int of {bits} bits"),
        Err(_) => "this int".into(),
    }
}
