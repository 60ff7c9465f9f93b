//! Reads the buffers of arrays: numpy, `array.array`, `memoryview`.
//!
//! The owner of a buffer may write into it while this module reads it without the GIL. The reader
//! therefore copies a chunk of bytes first, and never keeps a reference into the buffer. If the
//! owner writes meanwhile, the copy has some mixture of old and new bytes.

use std::ptr;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// A buffer of one dimension. The buffer cannot be freed or resized while this value lives.
pub struct RawBuffer {
    buffer: PyUntypedBuffer,
    start: *const u8,
    stride_bytes: isize,
    item_bytes: usize,
    len: usize,
}

// SAFETY: the methods copy bytes from and to the buffer, which the exporter keeps alive and in place
// until the buffer is released.
unsafe impl Sync for RawBuffer {}
// SAFETY: as above. Dropping the buffer on another thread attaches to Python first.
unsafe impl Send for RawBuffer {}

impl RawBuffer {
    /// Returns the buffer of an object, or `None` if the buffer has other than one dimension.
    ///
    /// # Errors
    ///
    /// The exception of an object without a buffer.
    pub fn get(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.dimensions() != 1 || buffer.suboffsets().is_some() {
            return Ok(None);
        }
        let (start, stride_bytes) = (buffer.buf_ptr().cast_const().cast(), buffer.strides()[0]);
        let (item_bytes, len) = (buffer.item_size(), buffer.shape()[0]);
        Ok(Some(Self { buffer, start, stride_bytes, item_bytes, len }))
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the size of an item in bytes.
    pub fn item_bytes(&self) -> usize {
        self.item_bytes
    }

    /// Returns the format of an item, in the syntax of Python's module `struct`.
    pub fn format(&self) -> &std::ffi::CStr {
        self.buffer.format()
    }

    fn is_contiguous(&self) -> bool {
        self.stride_bytes == self.item_bytes as isize
    }

    /// Copies items, starting with item number `first`, until `target` is full.
    ///
    /// # Panics
    ///
    /// If the items are not inside the buffer.
    pub fn copy(&self, first: usize, target: &mut [u8]) {
        let items = target.len().checked_div(self.item_bytes).unwrap_or(0);
        assert!(items * self.item_bytes == target.len() && first + items <= self.len);
        if self.is_contiguous() {
            // SAFETY: the items are contiguous and inside the buffer.
            unsafe {
                let from = self.start.add(first * self.item_bytes);
                ptr::copy_nonoverlapping(from, target.as_mut_ptr(), target.len());
            }
            return;
        }
        for (i, item) in target.chunks_exact_mut(self.item_bytes).enumerate() {
            // SAFETY: item number `first + i` is inside the buffer, and its address is the start
            // plus as many strides.
            unsafe {
                let from = self.start.offset((first + i) as isize * self.stride_bytes);
                ptr::copy_nonoverlapping(from, item.as_mut_ptr(), item.len());
            }
        }
    }
}

/// A writable buffer of one byte for each answer.
pub struct AnswerBuffer(RawBuffer);

impl AnswerBuffer {
    /// Returns the buffer of an object.
    ///
    /// # Errors
    ///
    /// `BufferError` if the buffer is not contiguous, or cannot be written.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match RawBuffer::get(object)? {
            Some(it) if !it.buffer.readonly() && it.item_bytes == 1 && it.is_contiguous() => {
                Ok(Self(it))
            }
            _ => Err(PyBufferError::new_err("answers need a writable buffer of bytes")),
        }
    }

    /// Returns the number of answers.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Writes the answers of rows, starting with row `first`.
    ///
    /// # Panics
    ///
    /// If the rows are not inside the buffer.
    pub fn write(&self, first: usize, answers: &[u8]) {
        assert!(first + answers.len() <= self.0.len);
        // SAFETY: the bytes are contiguous, inside the buffer and writable.
        unsafe {
            let to = self.0.start.cast_mut().add(first);
            ptr::copy_nonoverlapping(answers.as_ptr(), to, answers.len());
        }
    }
}
