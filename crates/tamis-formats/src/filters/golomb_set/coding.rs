//! Reads and writes the bits of a Golomb-coded set: the steps between the values.

use crate::encoding::ByteReader;
use crate::encoding::bitcoin::compact_size;
use crate::errors::{DecodeError, DecodeErrorKind};
use crate::filters::golomb_set::params::GolombParams;

/// Returns the size of the range that contains the values.
pub(super) fn range(len: u32, params: GolombParams) -> u64 {
    u64::from(len) * u64::from(params.m)
}

/// Checks that the bytes are exactly one set. Returns the offset of the first value and the number of values.
pub(crate) fn check(bytes: &[u8], params: GolombParams) -> Result<(usize, u32), DecodeError> {
    let mut reader = ByteReader::new(bytes);
    let start = reader.clone();
    let found = compact_size::read(&mut reader, "number of items")?;
    let values_at = reader.at();
    let len = u32::try_from(found)
        .map_err(|_| start.unexpected("number of items", "below 2³²", found))?;
    let mut values = GolombValues::new(&bytes[values_at..], params, len);
    loop {
        match values.next_value() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(fault) => {
                let at = (values_at + values.bytes_read()).min(bytes.len()) as u64;
                let kind = match fault {
                    Fault::Ended => {
                        let found = bytes.len() as u64;
                        DecodeErrorKind::Truncated { expected: found + 1, found }
                    }
                    Fault::OutOfRange => {
                        DecodeErrorKind::Damaged { reason: "a value is out of range" }
                    }
                };
                return Err(DecodeError { field: "values", at, kind });
            }
        }
    }
    let end = values_at + values.bytes_read();
    if end < bytes.len() {
        return Err(DecodeError::too_long("values", end as u64));
    }
    Ok((values_at, len))
}

/// The reason why a value cannot be read.
pub(super) enum Fault {
    Ended,
    OutOfRange,
}

/// Decodes the values in ascending order.
pub(super) struct GolombValues<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The bits to read next, the most significant bit first. The bits after the first `len` bits may already contain
    /// bits of `bytes[at..]`.
    window: u64,
    len: u32,
    p: u32,
    range: u64,
    last: u64,
    left: u32,
}

impl<'a> GolombValues<'a> {
    pub(super) fn new(bytes: &'a [u8], params: GolombParams, left: u32) -> Self {
        let (p, range) = (params.p.into(), range(left, params));
        Self { bytes, at: 0, window: 0, len: 0, p, range, last: 0, left }
    }

    /// Returns the next value. Returns `None` after the last value.
    pub(super) fn next_value(&mut self) -> Result<Option<u64>, Fault> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        // The loop stops at the first step outside the range, because hostile input could contain a long run of 1 bits.
        let max_step = self.range - 1 - self.last;
        let mut quotient = 0;
        loop {
            self.refill();
            let ones = self.window.leading_ones().min(self.len);
            quotient += u64::from(ones);
            if quotient > max_step >> self.p {
                return Err(Fault::OutOfRange);
            }
            if ones < self.len {
                self.skip(ones + 1);
                break;
            }
            if self.len == 0 {
                return Err(Fault::Ended);
            }
            self.skip(ones);
        }
        self.refill();
        if self.len < self.p {
            return Err(Fault::Ended);
        }
        // Shifts twice, because a single shift by 64 would overflow if P is 0.
        let remainder = self.window >> 1 >> (63 - self.p);
        self.skip(self.p);
        // The shift cannot overflow: the step without its remainder is within the range.
        let step = quotient << self.p | remainder;
        if step > max_step {
            return Err(Fault::OutOfRange);
        }
        (self.last, self.left) = (self.last + step, left);
        Ok(Some(self.last))
    }

    /// Reads bytes until at least 56 bits are available, or all bytes are read.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some((&word, _)) = self.bytes[self.at..].split_first_chunk() {
            // The window may already contain the first bits of the next byte. Reading the next byte again sets its
            // first bits to the same values.
            self.window |= u64::from_be_bytes(word) >> self.len;
            self.at += ((63 - self.len) / 8) as usize;
            self.len |= 56;
            return;
        }
        while self.len < 56 && self.at < self.bytes.len() {
            self.window |= u64::from(self.bytes[self.at]) << (56 - self.len);
            self.at += 1;
            self.len += 8;
        }
    }

    /// Drops `bits` bits, which must be available. `bits` is at most 63.
    #[inline(always)]
    fn skip(&mut self, bits: u32) {
        self.window <<= bits;
        self.len -= bits;
    }

    /// Returns the number of bytes that were read. A partly read byte counts as read.
    fn bytes_read(&self) -> usize {
        self.at - (self.len / 8) as usize
    }
}

/// Appends bits to bytes, the most significant bit first.
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    // The lowest `len` bits of `pending` are not yet written, because a byte needs 8 bits.
    pending: u64,
    len: u32,
}

impl BitWriter {
    /// Creates a writer that appends to `bytes`.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, pending: 0, len: 0 }
    }

    /// Writes the lowest `len` bits of `value`, at most 56. The bits of `value` above the lowest `len` bits must be
    /// zero.
    pub(super) fn write(&mut self, value: u64, len: u32) {
        self.pending = self.pending << len | value;
        self.len += len;
        while self.len >= 8 {
            self.len -= 8;
            self.bytes.push((self.pending >> self.len) as u8);
        }
        self.pending &= (1 << self.len) - 1;
    }

    pub(super) fn write_ones(&mut self, mut count: u64) {
        while count > 0 {
            let len = count.min(32) as u32;
            self.write((1 << len) - 1, len);
            count -= u64::from(len);
        }
    }

    /// Returns the bytes. The last byte is padded with zeros.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let missing = (8 - self.len) % 8;
        self.write(0, missing);
        self.bytes
    }
}
