//! Reads the numbers, plans and bits of an image of known length.

use std::io::{self, Read};

use tamis::{AnyFilter, Geometry, Hasher, Kind, Plan, Span};
use tamis_formats::TamisFile;

use crate::new_filter::new_filter;
use crate::value::serialization::error::ImageError;

/// Reads the parts of an image of known length.
pub(crate) struct Reader<'a> {
    pub bytes: &'a mut dyn Read,
    /// The number of bytes until the end of the image.
    pub left: u64,
    /// The maximum size, in bytes, of a filter that a new image creates.
    pub max_bytes: u64,
    /// True if the image is the image of a new filter and contains no bits.
    pub is_new: bool,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.bytes.read(&mut buffer[..len])?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Reader<'_> {
    pub fn u64(&mut self) -> Result<u64, ImageError> {
        let mut bytes = [0; 8];
        self.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads `len` words, and passes each word to `take`.
    pub fn words(&mut self, len: u64, mut take: impl FnMut(u64)) -> Result<(), ImageError> {
        let mut left_bytes = len * 8;
        let mut buffer = [0; 32 << 10];
        while left_bytes > 0 {
            let bytes = left_bytes.min(buffer.len() as u64);
            let part = &mut buffer[..bytes as usize];
            self.read_exact(part)?;
            let (words, _) = part.as_chunks();
            words.iter().for_each(|word| take(u64::from_le_bytes(*word)));
            left_bytes -= bytes;
        }
        Ok(())
    }

    pub fn f64(&mut self) -> Result<f64, ImageError> {
        Ok(f64::from_bits(self.u64()?))
    }

    pub fn plan(&mut self) -> Result<Plan, ImageError> {
        let kind = u8::try_from(self.u64()?).ok().and_then(tamis::Kind::from_number);
        let (items, rate, bits) = (self.u64()?, self.f64()?, self.u64()?);
        let geometry = u32::try_from(self.u64()?).ok();
        let kind = kind.ok_or(ImageError::Value)?;
        let geometry = geometry.and_then(|number| Geometry::from_number(kind, number));
        let plan = Plan::from_parts(kind, items, rate, bits, geometry.ok_or(ImageError::Value)?)
            .map_err(|_| ImageError::Value)?;
        if plan.bytes() > self.max_bytes { Err(ImageError::Memory) } else { Ok(plan) }
    }

    /// Reads the number of a hash function and its seed or key.
    pub fn hasher(&mut self) -> Result<Hasher, ImageError> {
        let number = u8::try_from(self.u64()?).map_err(|_| ImageError::Value)?;
        let mut seed = [0; 16];
        self.read_exact(&mut seed)?;
        Hasher::from_parts(number, seed).ok_or(ImageError::Value)
    }

    /// Rejects a length prefix that exceeds the input, before allocating.
    pub fn expect_bytes(&self, bytes: u64) -> Result<(), ImageError> {
        if bytes <= self.left { Ok(()) } else { Err(ImageError::Value) }
    }

    /// Reads exactly `len` bytes.
    pub fn exactly(&mut self, len: u64) -> Result<Vec<u8>, ImageError> {
        self.expect_bytes(len)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len as usize).map_err(|_| ImageError::Memory)?;
        self.take(len).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == len { Ok(bytes) } else { Err(ImageError::Value) }
    }

    pub fn sized(&mut self) -> Result<Vec<u8>, ImageError> {
        let len = self.u64()?;
        self.exactly(len)
    }

    /// Reads all chunks up to the end of the image. The image contains the position of each chunk before the chunk.
    pub fn chunks(&mut self, mut load: impl FnMut(i64, &[u8]) -> bool) -> Result<(), ImageError> {
        while self.left > 0 {
            let position = self.u64()? as i64;
            if !load(position, &self.sized()?) {
                return Err(ImageError::Value);
            }
        }
        Ok(())
    }

    /// Creates a filter from the parameters that [`Writer::new_filter`] wrote.
    pub fn new_filter(&mut self) -> Result<AnyFilter, ImageError> {
        let plan = self.plan()?;
        let hasher = self.hasher()?;
        if plan.kind() != Kind::Window {
            return AnyFilter::from_plan(&plan, hasher).map_err(|_| ImageError::Memory);
        }
        let (kind, span, began_millis) = (self.u64()?, self.u64()?, self.u64()?);
        let span = if kind & 1 == 0 { Span::Items(span) } else { Span::Millis(span) };
        new_filter(&plan, hasher, Some(span), kind & 2 == 2, began_millis)
            .map_err(|_| ImageError::Value)
    }

    /// Reads a filter file, which extends to the end of the image.
    pub fn filter(&mut self) -> Result<TamisFile, ImageError> {
        let left = self.left;
        Ok(TamisFile::read_from(self, left)?)
    }
}
