//! Writes the numbers, plans and bits of a whole image, or of a part of an image.

use std::io::{self, Read as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{AnyFilter, Plan, Span};
use tamis_formats::TamisFile;

/// Writes a whole image, or a part of an image.
pub(crate) struct Writer<'a> {
    pub out: &'a mut dyn Write,
    /// The number of bytes to skip before the part. `left` is the number of bytes that are still to be written.
    pub skipped: u64,
    pub left: u64,
    /// The number of items to write for a filter; `None` for the current number of items.
    pub counted_items: Option<u64>,
    /// True if the filter is new: no bit is set, and the image contains no bits.
    pub is_new: bool,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.skipped.min(bytes.len() as u64);
        self.skipped -= skipped;
        let part = &bytes[skipped as usize..];
        let part = &part[..part.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))];
        self.out.write_all(part)?;
        self.left -= part.len() as u64;
        if self.left == 0 {
            return Err(io::Error::other("the part is whole"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<'a> Writer<'a> {
    pub fn whole(out: &'a mut dyn Write) -> Self {
        Self { out, skipped: 0, left: u64::MAX, counted_items: None, is_new: false }
    }

    pub fn u64(&mut self, number: u64) -> io::Result<()> {
        self.write_all(&number.to_le_bytes())
    }

    pub fn f64(&mut self, number: f64) -> io::Result<()> {
        self.u64(number.to_bits())
    }

    pub fn plan(&mut self, plan: &Plan) -> io::Result<()> {
        self.u64(plan.kind() as u64)?;
        self.u64(plan.items())?;
        self.f64(plan.rate())?;
        self.u64(plan.bits())?;
        self.u64(u64::from(plan.geometry().to_number()))
    }

    /// Writes the length of `bytes`, then `bytes`.
    pub fn sized(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.u64(bytes.len() as u64)?;
        self.write_all(bytes)
    }

    /// Writes a dump in the format of RedisBloom's `SCANDUMP`: the header, then the position and
    /// the bytes of each chunk.
    pub fn dump(
        &mut self,
        header: &[u8],
        chunk: impl Fn(i64) -> Option<(i64, Vec<u8>)>,
    ) -> io::Result<()> {
        self.sized(header)?;
        if self.is_new {
            return Ok(());
        }
        let mut position = 1;
        while let Some((next, bytes)) = chunk(position) {
            self.u64(next as u64)?;
            self.sized(&bytes)?;
            position = next;
        }
        Ok(())
    }

    /// Writes a filter file. Does not read bytes of the file outside the written part.
    pub fn file(&mut self, file: &TamisFile) -> io::Result<()> {
        let len = file.len_bytes();
        let skipped = self.skipped.min(len);
        self.skipped -= skipped;
        file.write_range(skipped..skipped.saturating_add(self.left).min(len), self)
    }

    /// Writes the parameters of a filter.
    pub fn new_filter(&mut self, filter: &AnyFilter) -> io::Result<()> {
        self.plan(filter.plan())?;
        let (function, seed) = filter.hasher().to_parts();
        self.u64(u64::from(function))?;
        self.write_all(&seed)?;
        let AnyFilter::Window(window) = filter else { return Ok(()) };
        let (kind, span) = match window.span() {
            Span::Items(items) => (0, items),
            Span::Millis(millis) => (1, millis),
        };
        self.u64(kind | u64::from(window.refreshes()) << 1)?;
        self.u64(span)?;
        // A window by items has no clock.
        self.u64(window.began_millis().unwrap_or(0))
    }

    /// Writes `bytes` zeros in place of the filter's bits.
    pub fn zeros(&mut self, bytes: u64) -> io::Result<()> {
        if self.is_new {
            return Ok(());
        }
        io::copy(&mut io::repeat(0).take(bytes), self).map(|_| ())
    }

    /// Writes the current bits. Does not read the words before the written part.
    pub fn words(&mut self, words: &[AtomicU64]) -> io::Result<()> {
        if self.is_new {
            return Ok(());
        }
        let skipped = (self.skipped / 8).min(words.len() as u64);
        self.skipped -= skipped * 8;
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        for chunk in words[skipped as usize..].chunks(CHUNK_BYTES / 8) {
            bytes.clear();
            for word in chunk {
                bytes.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
            }
            self.write_all(&bytes)?;
        }
        Ok(())
    }
}

/// The number of bytes that are buffered for one write.
const CHUNK_BYTES: usize = 64 << 10;
