//! Encodes integers as decimal text or binary.

use crate::commands::ints::read::IntFormat;
use crate::exit::Failure;
use crate::io::output::Output;

/// The number of bytes that the encoder collects before it writes to the output. The output copies
/// at most every second block of this size into its own buffer.
const GATHERED_BYTES: usize = 192 << 10;

/// Encodes integers and writes them to an output. In text, a newline follows each integer.
pub struct IntEncoder {
    output: Output,
    format: IntFormat,
    gathered: Box<[u8]>,
    len: usize,
}

/// The two digits of each number from 0 to 99.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    pairs
};

/// The length in bytes of the longest integer in text, with its newline.
const MAX_TEXT_BYTES: usize = 21;

impl IntEncoder {
    /// Creates an encoder that writes to `output` in `format`.
    pub fn new(output: Output, format: IntFormat) -> Self {
        let gathered = vec![0; GATHERED_BYTES + MAX_TEXT_BYTES].into();
        Self { output, format, gathered, len: 0 }
    }

    /// Writes `values`.
    ///
    /// # Errors
    ///
    /// Returns the errors of the output. Returns an error if a value does not fit 4 bytes in the
    /// format `u32`.
    pub fn write_each(&mut self, values: &[u64]) -> Result<(), Failure> {
        values.iter().try_for_each(|&value| self.write(value))
    }

    #[inline]
    fn write(&mut self, value: u64) -> Result<(), Failure> {
        let buffer = &mut self.gathered[self.len..];
        self.len += match self.format {
            IntFormat::Text => write_decimal(value, buffer),
            IntFormat::U32 => {
                let value = u32::try_from(value).map_err(|_| too_large(value))?;
                buffer[..4].copy_from_slice(&value.to_le_bytes());
                4
            }
            IntFormat::U64 => {
                buffer[..8].copy_from_slice(&value.to_le_bytes());
                8
            }
        };
        if self.len >= GATHERED_BYTES { self.pass_on() } else { Ok(()) }
    }

    /// Passes all integers written so far to the operating system.
    ///
    /// # Errors
    ///
    /// Returns the errors of the output.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.pass_on()?;
        self.output.flush()
    }

    /// Writes the remaining integers and finishes the output.
    ///
    /// # Errors
    ///
    /// Returns the errors of the output. After an error, an existing file is unchanged.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.pass_on()?;
        self.output.finish()
    }

    fn pass_on(&mut self) -> Result<(), Failure> {
        self.output.write(&self.gathered[..self.len])?;
        self.len = 0;
        Ok(())
    }
}

/// Writes `value` and a newline to the start of `buffer`. Returns the number of bytes written.
///
/// The function writes the digits directly to `buffer`, from the last to the first. Formatting to
/// another buffer (`itoa`) and copying a variable length took three times as long.
#[inline]
fn write_decimal(mut value: u64, buffer: &mut [u8]) -> usize {
    let len = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let text = &mut buffer[..=len];
    text[len] = b'\n';
    let mut end = len;
    while end >= 2 {
        text[end - 2..end].copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
        end -= 2;
    }
    if end == 1 {
        text[0] = b'0' + value as u8;
    }
    len + 1
}

#[cold]
fn too_large(value: u64) -> Failure {
    Failure::new(format!(
        "{value} does not fit the 4 bytes of --output-format u32: use u64 or text"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(value: u64) -> Vec<u8> {
        let mut buffer = [0; MAX_TEXT_BYTES];
        let len = write_decimal(value, &mut buffer);
        buffer[..len].to_vec()
    }

    #[test]
    fn every_number_of_digits_is_written() {
        assert_eq!(text(u64::MAX).len(), MAX_TEXT_BYTES);
        for power in (0..20).map(|exponent| 10_u64.pow(exponent)) {
            for value in [power - 1, power, power + 1] {
                assert_eq!(text(value), format!("{value}\n").into_bytes());
            }
        }
    }

    proptest! {
        #[test]
        fn values_are_written_as_the_library_writes_them(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            prop_assert_eq!(text(value), format!("{value}\n").into_bytes());
        }
    }
}
