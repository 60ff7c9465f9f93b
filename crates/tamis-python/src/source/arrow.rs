//! Items in an Arrow array.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_array::array::AnyDictionaryArray;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ByteArrayType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, make_array};
use arrow_buffer::{ArrowNativeType as _, NullBuffer};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::keys::{Encoding, Keys, slices};
use crate::source::{Batch, Source};

/// An Arrow array of items. Arrow arrays never change, so their bytes are hashed in place.
pub struct ArrowSource {
    array: ArrayRef,
    items: Items,
    /// The items of a dictionary's values, after the first read.
    values: OnceLock<PyResult<DictionaryValues>>,
    /// The dictionaries in the columns of tuples, after the first read.
    dictionaries: Dictionaries,
}

/// The items of a dictionary's values. A value that is null has no item.
struct DictionaryValues {
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
        Ok(Self { array, items, values: OnceLock::new(), dictionaries: Dictionaries::default() })
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
                let column = Column::new(&array, false, &self.dictionaries)?;
                let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows.len()));
                for row in 0..rows.len() {
                    let start = bytes.len();
                    if column.push(row, &mut bytes) {
                        ends.push(bytes.len());
                    } else {
                        bytes.truncate(start);
                        batch.nulls.push(row);
                    }
                }
                encoding.push_slices(&slices(&bytes, &ends), false, &mut batch.keys)?;
            }
        }
        Ok(())
    }
}

impl ArrowSource {
    /// Encodes the values of a dictionary.
    fn values(&self, encoding: Encoding) -> PyResult<DictionaryValues> {
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
        Ok(DictionaryValues { at: at.collect(), keys: batch.keys })
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
    let is_signed = widen(array, &mut batch.integers);
    if array.null_count() > 0 {
        let mut rows = 0..;
        batch.integers.retain(|_| {
            let row = rows.next().expect("endless");
            if array.is_null(row) {
                batch.nulls.push(row);
            }
            array.is_valid(row)
        });
    }
    encoding.push_integers(&batch.integers, is_signed, &mut batch.keys)
}

/// Appends the integers of all rows in 64 bits. The integer of a null is any number. Returns true if
/// the integers are signed.
fn widen(array: &ArrayRef, integers: &mut Vec<u64>) -> bool {
    macro_rules! widen {
        ($type:ty) => {{
            let values = array.as_primitive::<$type>().values();
            integers.extend(values.iter().map(|&value| i64::from(value) as u64));
        }};
    }
    match array.data_type() {
        DataType::Int8 => widen!(Int8Type),
        DataType::Int16 => widen!(Int16Type),
        DataType::Int32 => widen!(Int32Type),
        DataType::Int64 => widen!(Int64Type),
        DataType::UInt8 => widen!(UInt8Type),
        DataType::UInt16 => widen!(UInt16Type),
        DataType::UInt32 => widen!(UInt32Type),
        _ => integers.extend_from_slice(array.as_primitive::<UInt64Type>().values()),
    }
    array.data_type().is_signed_integer()
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

/// The encoded values of dictionaries. The slices of an array share the values of a dictionary.
#[derive(Default)]
struct Dictionaries(Mutex<Vec<(ArrayRef, Arc<Encoded>)>>);

/// The bytes of the values of a dictionary.
struct Encoded {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`.
    ends: Vec<usize>,
    is_null: Vec<bool>,
    is_fixed: bool,
}

impl Dictionaries {
    fn encoded(&self, values: &ArrayRef, is_uuid: bool) -> PyResult<Arc<Encoded>> {
        let known = self.lock().iter().find(|(known, _)| Arc::ptr_eq(known, values)).cloned();
        if let Some((_, encoded)) = known {
            return Ok(encoded);
        }
        let column = Column::new(values, is_uuid, self)?;
        let (mut bytes, mut ends, mut is_null) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..values.len() {
            is_null.push(!column.push(row, &mut bytes));
            ends.push(bytes.len());
        }
        let encoded = Arc::new(Encoded { bytes, ends, is_null, is_fixed: column.is_fixed });
        self.lock().push((values.clone(), encoded.clone()));
        Ok(encoded)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(ArrayRef, Arc<Encoded>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Encoded {
    /// Appends the bytes of a value. Returns false for a null.
    fn push(&self, index: usize, bytes: &mut Vec<u8>) -> bool {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        bytes.extend_from_slice(&self.bytes[start..self.ends[index]]);
        !self.is_null[index]
    }
}

/// The name of Arrow's extension type for UUIDs.
const UUID: &str = "arrow.uuid";

/// A column of tuples.
struct Column<'a> {
    values: Values<'a>,
    nulls: Option<NullBuffer>,
    /// True if all values have the same number of bytes. Other values follow their length in a tuple.
    is_fixed: bool,
}

/// The values of a column. The value of a null is any value.
enum Values<'a> {
    Integers(Vec<u64>),
    Bytes(Vec<&'a [u8]>),
    Dictionary(Arc<Encoded>, Vec<usize>),
    Tuples(Vec<Column<'a>>),
    Nulls,
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef, is_uuid: bool, dictionaries: &Dictionaries) -> PyResult<Self> {
        let is_uuid = is_uuid && array.data_type() == &DataType::FixedSizeBinary(16);
        let (values, is_fixed) = match items_of(array.data_type())? {
            Items::Integers => {
                let mut integers = Vec::with_capacity(array.len());
                widen(array, &mut integers);
                (Values::Integers(integers), true)
            }
            Items::Bytes { .. } => {
                let mut items = Vec::with_capacity(array.len());
                each_slice(array, |_, item| items.push(item.unwrap_or_default()));
                (Values::Bytes(items), is_uuid)
            }
            Items::Dictionary => {
                let dictionary = array.as_any_dictionary();
                let values = dictionary.values();
                // Arrow has the name of the extension at the values, where it is lost.
                if values.data_type() == &DataType::FixedSizeBinary(16) {
                    return Err(PyTypeError::new_err(
                        "a dictionary of 16 bytes in a tuple may have UUIDs or bytes: decode the \
                         column first, for example with column.dictionary_decode() in pyarrow",
                    ));
                }
                let encoded = dictionaries.encoded(values, false)?;
                let is_fixed = encoded.is_fixed;
                (Values::Dictionary(encoded, indexes(dictionary)), is_fixed)
            }
            Items::Tuples => {
                let tuples = array.as_struct();
                let fields = tuples.columns().iter().zip(tuples.fields());
                let columns = fields.map(|(column, field)| {
                    let is_uuid = field.extension_type_name() == Some(UUID);
                    Column::new(column, is_uuid, dictionaries)
                });
                let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
                let is_fixed = columns.iter().all(|column| column.is_fixed);
                (Values::Tuples(columns), is_fixed)
            }
            Items::Nulls => (Values::Nulls, true),
        };
        Ok(Self { values, nulls: array.nulls().cloned(), is_fixed })
    }

    /// Appends the bytes of a row. Returns false for a null, and for a tuple with a null: then the
    /// appended bytes are of no use.
    fn push(&self, row: usize, bytes: &mut Vec<u8>) -> bool {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return false;
        }
        match &self.values {
            Values::Integers(integers) => bytes.extend(integers[row].to_le_bytes()),
            Values::Bytes(items) => bytes.extend_from_slice(items[row]),
            Values::Dictionary(values, indexes) => return values.push(indexes[row], bytes),
            Values::Tuples(columns) => {
                return columns.iter().all(|column| column.push_part(row, bytes));
            }
            Values::Nulls => return false,
        }
        true
    }

    /// Appends the bytes of a row as a part of a tuple.
    fn push_part(&self, row: usize, bytes: &mut Vec<u8>) -> bool {
        if self.is_fixed {
            return self.push(row, bytes);
        }
        let start = bytes.len();
        bytes.extend([0; 8]);
        let is_value = self.push(row, bytes);
        let len = (bytes.len() - start - 8) as u64;
        bytes[start..start + 8].copy_from_slice(&len.to_le_bytes());
        is_value
    }
}
