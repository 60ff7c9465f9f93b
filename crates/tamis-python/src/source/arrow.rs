//! Items in an Arrow array.

use std::ops::Range;
use std::sync::OnceLock;

use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, ByteArrayType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, make_array};
use arrow_buffer::{ArrowNativeType as _, NullBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::keys::{Encoding, Keys};
use crate::source::{Batch, Source};

/// An Arrow array of items. Arrow arrays never change, so their bytes are hashed in place.
pub struct ArrowSource {
    array: ArrayRef,
    items: Items,
    /// The items of a dictionary's values, after the first read.
    values: OnceLock<PyResult<Values>>,
}

/// The items of a dictionary's values. A value that is null has no item.
struct Values {
    keys: Keys,
    /// The index in `keys` of the item of each value.
    at: Vec<Option<usize>>,
}

/// How the items are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Items {
    Integers,
    Bytes { is_text: bool },
    Dictionary,
    Tuples,
    Nulls,
}

impl ArrowSource {
    /// Checks the type of an array. A struct of several fields is an array of tuples. A struct of
    /// one field, for example a table of one column, is the array of the field.
    ///
    /// # Errors
    ///
    /// `TypeError` if the array's values are no items of a filter.
    pub fn new(array: ArrayRef) -> PyResult<Self> {
        if let Some(fields) = array.as_struct_opt()
            && let [field] = fields.columns()
        {
            return Self::new(with_nulls(field, fields.nulls())?);
        }
        let items = items_of(array.data_type())?;
        Ok(Self { array, items, values: OnceLock::new() })
    }
}

fn items_of(class: &DataType) -> PyResult<Items> {
    Ok(match class {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64 => Items::Integers,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Items::Bytes { is_text: true },
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Items::Bytes { is_text: false },
        DataType::Dictionary(_, values) => {
            items_of(values)?;
            Items::Dictionary
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            fields.iter().try_for_each(|field| items_of(field.data_type()).map(drop))?;
            Items::Tuples
        }
        DataType::Null => Items::Nulls,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            return Err(PyTypeError::new_err(
                "floating-point numbers are not items: decide which numbers are equal, and cast \
                 the array to integers or text",
            ));
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "an Arrow array of {other} cannot be used as items: cast it to integers, text or \
                 bytes, for example array.cast('string') in pyarrow, or cast(pl.String) in Polars"
            )));
        }
    })
}

impl Source for ArrowSource {
    fn len(&self) -> usize {
        self.array.len()
    }

    fn read(&self, rows: Range<usize>, encoding: Encoding, batch: &mut Batch) -> PyResult<()> {
        let array = self.array.slice(rows.start, rows.len());
        match self.items {
            Items::Nulls => batch.nulls.extend(0..rows.len()),
            Items::Integers => integers(&array, encoding, batch)?,
            Items::Bytes { is_text } => {
                let mut items = Vec::with_capacity(rows.len());
                each_slice(&array, |row, item| match item {
                    Some(item) => items.push(item),
                    None => batch.nulls.push(row),
                });
                encoding.push_slices(&items, is_text, &mut batch.keys)?;
            }
            Items::Dictionary => {
                let values = self.values.get_or_init(|| self.values(encoding));
                let values =
                    values.as_ref().map_err(|error| Python::attach(|py| error.clone_ref(py)))?;
                let dictionary = array.as_any_dictionary();
                let indexes = indexes(dictionary);
                for (row, index) in indexes.into_iter().enumerate() {
                    let at = if array.is_null(row) { None } else { values.at[index] };
                    match at {
                        Some(at) => batch.keys.push_from(&values.keys, at),
                        None => batch.nulls.push(row),
                    }
                }
            }
            Items::Tuples => {
                for row in 0..rows.len() {
                    match part(&array, row)? {
                        Some(part) => push_part(&part, encoding, &mut batch.keys)?,
                        None => batch.nulls.push(row),
                    }
                }
            }
        }
        Ok(())
    }
}

impl ArrowSource {
    /// Encodes the values of a dictionary.
    fn values(&self, encoding: Encoding) -> PyResult<Values> {
        let values = self.array.as_any_dictionary().values().clone();
        let len = values.len();
        let mut batch = Batch::new(encoding);
        ArrowSource::new(values)?.read(0..len, encoding, &mut batch)?;
        let mut nulls = batch.nulls.iter().copied().peekable();
        let mut at = 0..;
        let at = (0..len).map(|row| match nulls.next_if_eq(&row) {
            Some(_) => None,
            None => at.next(),
        });
        Ok(Values { at: at.collect(), keys: batch.keys })
    }
}

/// Returns an array whose rows are null also where `nulls` has a null.
fn with_nulls(array: &ArrayRef, nulls: Option<&NullBuffer>) -> PyResult<ArrayRef> {
    if nulls.is_none_or(|nulls| nulls.null_count() == 0) || array.data_type() == &DataType::Null {
        return Ok(array.clone());
    }
    let nulls = NullBuffer::union(array.nulls(), nulls);
    let data = array.to_data().into_builder().nulls(nulls).build();
    data.map(make_array).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// Returns the index of each row in the values of a dictionary. The index of a null is any number.
fn indexes(dictionary: &dyn AnyDictionaryArray) -> Vec<usize> {
    // Only nulls are in an array without values.
    if dictionary.values().is_empty() {
        return vec![0; dictionary.len()];
    }
    dictionary.normalized_keys()
}

/// Appends the integers of an array, and the rows that are null.
fn integers(array: &ArrayRef, encoding: Encoding, batch: &mut Batch) -> PyResult<()> {
    batch.integers.clear();
    let is_signed = widen_any(array, &mut batch.integers, &mut batch.nulls);
    encoding.push_integers(&batch.integers, is_signed, &mut batch.keys)
}

/// Appends the integers of an array in 64 bits, and the rows that are null. Returns true if the
/// integers are signed.
fn widen_any(array: &ArrayRef, integers: &mut Vec<u64>, nulls: &mut Vec<usize>) -> bool {
    match array.data_type() {
        DataType::Int8 => widen::<Int8Type>(array, integers, nulls),
        DataType::Int16 => widen::<Int16Type>(array, integers, nulls),
        DataType::Int32 => widen::<Int32Type>(array, integers, nulls),
        DataType::Int64 => widen::<Int64Type>(array, integers, nulls),
        DataType::UInt8 => widen::<UInt8Type>(array, integers, nulls),
        DataType::UInt16 => widen::<UInt16Type>(array, integers, nulls),
        DataType::UInt32 => widen::<UInt32Type>(array, integers, nulls),
        _ => {
            let array = array.as_primitive::<UInt64Type>();
            extend(array.values().iter().copied(), array, integers, nulls);
            false
        }
    }
}

fn widen<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    integers: &mut Vec<u64>,
    nulls: &mut Vec<usize>,
) -> bool
where
    i64: From<T::Native>,
{
    let array = array.as_primitive::<T>();
    extend(array.values().iter().map(|&value| i64::from(value) as u64), array, integers, nulls);
    matches!(T::DATA_TYPE, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
}

fn extend(
    values: impl Iterator<Item = u64>,
    array: &dyn Array,
    integers: &mut Vec<u64>,
    nulls: &mut Vec<usize>,
) {
    if array.null_count() == 0 {
        integers.extend(values);
        return;
    }
    for (row, value) in values.enumerate() {
        if array.is_null(row) { nulls.push(row) } else { integers.push(value) }
    }
}

/// Calls `each` with each row of an array of text or bytes.
fn each_slice<'a>(array: &'a ArrayRef, mut each: impl FnMut(usize, Option<&'a [u8]>)) {
    macro_rules! rows {
        ($array:expr, $bytes:expr) => {
            for (row, item) in $array.iter().enumerate() {
                each(row, item.map($bytes));
            }
        };
    }
    match array.data_type() {
        DataType::Utf8 => each_range(array.as_string::<i32>(), each),
        DataType::LargeUtf8 => each_range(array.as_string::<i64>(), each),
        DataType::Utf8View => rows!(array.as_string_view(), str::as_bytes),
        DataType::Binary => each_range(array.as_binary::<i32>(), each),
        DataType::LargeBinary => each_range(array.as_binary::<i64>(), each),
        DataType::BinaryView => rows!(array.as_binary_view(), |bytes| bytes),
        DataType::FixedSizeBinary(_) => rows!(array.as_fixed_size_binary(), |bytes| bytes),
        other => unreachable!("{other} has no bytes"),
    }
}

/// Calls `each` with each row of an array of offsets. The iterator of the array reads each offset twice:
/// with this loop, a lookup of ten million web addresses takes 1 ns an item less.
fn each_range<'a, T: ByteArrayType>(
    array: &'a GenericByteArray<T>,
    mut each: impl FnMut(usize, Option<&'a [u8]>),
) {
    let (bytes, nulls) = (array.value_data(), array.nulls());
    for (row, ends) in array.value_offsets().windows(2).enumerate() {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        each(row, (!is_null).then(|| &bytes[ends[0].as_usize()..ends[1].as_usize()]));
    }
}

/// One value of an array of dictionaries or tuples.
enum Part {
    Integer { bits: u64, is_signed: bool },
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Tuple { bytes: Vec<u8>, is_fixed: bool },
    Uuid(Vec<u8>),
}

/// The name of Arrow's extension type for UUIDs.
const UUID: &str = "arrow.uuid";

/// Returns the value of a row, or `None` if the row is null. A tuple with a null part is null.
fn part(array: &ArrayRef, row: usize) -> PyResult<Option<Part>> {
    if array.is_null(row) {
        return Ok(None);
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        let one = array.slice(row, 1);
        let index = indexes(one.as_any_dictionary())[0];
        return part(dictionary.values(), index);
    }
    if let Some(fields) = array.as_struct_opt() {
        let (mut bytes, mut is_fixed) = (Vec::new(), true);
        for (column, field) in fields.columns().iter().zip(fields.fields()) {
            let Some(part) = part(column, row)? else { return Ok(None) };
            let part = match part {
                Part::Bytes(bytes) if field.extension_type_name() == Some(UUID) => {
                    Part::Uuid(bytes)
                }
                part => part,
            };
            match part {
                Part::Integer { bits, .. } => bytes.extend(bits.to_le_bytes()),
                Part::Tuple { bytes: part, is_fixed: true } | Part::Uuid(part) => {
                    bytes.extend(part);
                }
                Part::Text(part) | Part::Bytes(part) | Part::Tuple { bytes: part, .. } => {
                    is_fixed = false;
                    bytes.extend((part.len() as u64).to_le_bytes());
                    bytes.extend(part);
                }
            }
        }
        return Ok(Some(Part::Tuple { bytes, is_fixed }));
    }
    let one = array.slice(row, 1);
    Ok(Some(match items_of(one.data_type())? {
        Items::Integers => {
            let (mut integers, mut nulls) = (Vec::new(), Vec::new());
            let is_signed = widen_any(&one, &mut integers, &mut nulls);
            Part::Integer { bits: integers[0], is_signed }
        }
        Items::Bytes { is_text } => {
            let mut bytes = Vec::new();
            each_slice(&one, |_, item| bytes.extend_from_slice(item.unwrap_or_default()));
            if is_text { Part::Text(bytes) } else { Part::Bytes(bytes) }
        }
        Items::Nulls => return Ok(None),
        Items::Dictionary | Items::Tuples => unreachable!("returned above"),
    }))
}

fn push_part(part: &Part, encoding: Encoding, keys: &mut Keys) -> PyResult<()> {
    match part {
        Part::Integer { bits, is_signed } => encoding.push_integers(&[*bits], *is_signed, keys),
        Part::Text(bytes) => encoding.push_slices(&[bytes], true, keys),
        Part::Bytes(bytes) | Part::Tuple { bytes, .. } | Part::Uuid(bytes) => {
            encoding.push_slices(&[bytes], false, keys)
        }
    }
}
