//! Where a batch writes its answers: into bytes, or into the bits of an Arrow array.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array as _, BooleanArray};
use arrow_buffer::BooleanBuffer;
use arrow_buffer::builder::BooleanBufferBuilder;
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyList};
use tamis::Answers;

use crate::raw::buffer::AnswerBuffer;

/// The memory for the answers of a batch. Several threads write different rows at the same time.
pub enum Output {
    /// One byte for each row: a numpy array or a `bytearray`.
    Bytes(AnswerBuffer),
    /// One bit for each row.
    Bits(Py<Booleans>),
}

impl Output {
    /// Returns the memory of a Python object.
    ///
    /// # Errors
    ///
    /// `BufferError` if the object is neither a `Booleans` object nor a writable buffer of bytes.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match object.cast::<Booleans>() {
            Ok(booleans) => Ok(Self::Bits(booleans.clone().unbind())),
            Err(_) => AnswerBuffer::new(object).map(Self::Bytes),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Bits(booleans) => booleans.get().len,
        }
    }

    /// Writes the answers of rows, starting with row `first`, a multiple of 64.
    ///
    /// # Panics
    ///
    /// If the rows are not inside the memory.
    pub fn write(&self, first: usize, answers: &Answers, scratch: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => {
                spread_each(answers.words(), answers.len(), scratch);
                bytes.write(first, scratch);
            }
            Self::Bits(booleans) => booleans.get().write(first, answers),
        }
    }
}

/// Answers as an Arrow array of booleans, which Arrow libraries read without Python objects.
#[pyclass(frozen, module = "tamis")]
pub struct Booleans {
    // Invariant: bits at and above `len` are zero.
    words: Box<[AtomicU64]>,
    len: usize,
}

#[pymethods]
impl Booleans {
    /// Creates `len` answers that are false.
    #[new]
    fn new(len: usize) -> PyResult<Self> {
        let count = len.div_ceil(64);
        let mut words = reserve(count)?;
        words.resize_with(count, AtomicU64::default);
        Ok(Self { words: words.into(), len })
    }

    /// Returns the answers of several arrays, one after the other.
    #[staticmethod]
    fn _join(parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let len: usize = parts.iter().map(|part| part.len).sum();
        reserve::<u8>(len.div_ceil(4))?;
        let mut all = BooleanBufferBuilder::new(len);
        for part in parts {
            all.append_buffer(&part.bits()?);
        }
        let bits = all.finish();
        let words = bits.bit_chunks().iter_padded().take(bits.len().div_ceil(64));
        Ok(Self { words: words.map(AtomicU64::new).collect(), len: bits.len() })
    }

    /// Returns one byte for each answer, 0 or 1.
    fn _to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        PyByteArray::new_with(py, self.len, |bytes| {
            for (bytes, word) in bytes.chunks_mut(64).zip(&self.words) {
                spread_word(word.load(Ordering::Relaxed), bytes);
            }
            Ok(())
        })
    }

    /// Returns the answers as a list.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for index in 0..self.len {
            list.append(self.get(index))?;
        }
        Ok(list)
    }

    fn __repr__(&self) -> String {
        /// The number of answers that are shown.
        const SHOWN: usize = 10;
        let name = |index| if self.get(index) { "True" } else { "False" };
        let mut names: Vec<_> = (0..self.len.min(SHOWN)).map(name).collect();
        if self.len > SHOWN {
            names.push("...");
        }
        format!("<tamis.Booleans of {}: [{}]>", self.len, names.join(", "))
    }

    fn __len__(&self) -> usize {
        self.len
    }

    fn __getitem__(&self, index: isize) -> PyResult<bool> {
        let from_start = if index < 0 { index + self.len as isize } else { index };
        match usize::try_from(from_start) {
            Ok(index) if index < self.len => Ok(self.get(index)),
            _ => Err(PyIndexError::new_err(format!("answer {index} of {}", self.len))),
        }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface allows a producer to ignore the requested schema.
        _ = requested_schema;
        let failed = |error: ArrowError| PyTypeError::new_err(error.to_string());
        let (array, schema): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&BooleanArray::new(self.bits()?, None).to_data()).map_err(failed)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

impl Booleans {
    fn get(&self, index: usize) -> bool {
        self.words[index / 64].load(Ordering::Relaxed) >> (index % 64) & 1 == 1
    }

    /// Returns a copy of the answers.
    fn bits(&self) -> PyResult<BooleanBuffer> {
        let mut words = reserve(self.words.len())?;
        words.extend(self.words.iter().map(|word| word.load(Ordering::Relaxed).to_le()));
        Ok(BooleanBuffer::new(words.into(), 0, self.len))
    }

    /// Writes answers, starting with row `first`, a multiple of 64.
    fn write(&self, first: usize, answers: &Answers) {
        assert!(first.is_multiple_of(64) && first + answers.len() <= self.len);
        // Threads write different words. The caller joins the threads before reading the answers.
        for (word, bits) in self.words[first / 64..].iter().zip(answers.words()) {
            word.store(*bits, Ordering::Relaxed);
        }
    }
}

/// Allocates memory for values.
fn reserve<T>(len: usize) -> PyResult<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|error| PyMemoryError::new_err(error.to_string()))?;
    Ok(values)
}

/// Replaces `bytes` by one byte for each of `len` bits.
fn spread_each(words: &[u64], len: usize, bytes: &mut Vec<u8>) {
    bytes.resize(len, 0);
    for (bytes, word) in bytes.chunks_mut(64).zip(words) {
        spread_word(*word, bytes);
    }
}

/// Writes one byte for each of the first bits of a word.
#[inline(always)]
fn spread_word(word: u64, bytes: &mut [u8]) {
    // Copies of a fixed length need no call: a lookup of a million integers takes 0.3 ns an item less.
    if let Some(all) = bytes.as_chunks_mut::<8>().0.first_chunk_mut::<8>() {
        for (eight, byte) in all.iter_mut().zip(word.to_le_bytes()) {
            *eight = spread(byte);
        }
        return;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = (word >> i & 1) as u8;
    }
}

/// Returns a byte for each bit, 0 or 1, from the lowest bit.
fn spread(byte: u8) -> [u8; 8] {
    // Each byte of the product has all bits. The mask keeps bit i in byte i. The sum sets the highest
    // bit of each byte that is not 0.
    let bits = (u64::from(byte) * 0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
    ((bits + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101).to_le_bytes()
}
