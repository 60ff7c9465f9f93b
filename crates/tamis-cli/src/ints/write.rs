//! Integers to a file or standard output: decimal text or binary.

use super::read::Format;
use crate::exit::Failure;
use crate::output::Output;

/// Integers are gathered up to about this many bytes before they go to the output, which hands on so
/// much without copying it once more.
const GATHERED_BYTES: usize = 192 << 10;

/// Writes integers, a newline after each in text.
pub struct Writer {
    output: Output,
    format: Format,
    gathered: Vec<u8>,
}

impl Writer {
    /// Writes to `output` in `format`.
    pub fn new(output: Output, format: Format) -> Self {
        Self { output, format, gathered: Vec::with_capacity(GATHERED_BYTES + 32) }
    }

    /// Writes `value`.
    ///
    /// # Errors
    ///
    /// Those of the output, and a value that 4 bytes do not hold.
    #[inline]
    pub fn write(&mut self, value: u64) -> Result<(), Failure> {
        match self.format {
            Format::Text => {
                let mut digits = itoa::Buffer::new();
                self.gathered.extend_from_slice(digits.format(value).as_bytes());
                self.gathered.push(b'\n');
            }
            Format::U32 => {
                let value = u32::try_from(value).map_err(|_| too_large(value))?;
                self.gathered.extend_from_slice(&value.to_le_bytes());
            }
            Format::U64 => self.gathered.extend_from_slice(&value.to_le_bytes()),
        }
        if self.gathered.len() >= GATHERED_BYTES {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Hands everything written so far to the system.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.pass_on()?;
        self.output.flush()
    }

    /// Makes it all last.
    ///
    /// # Errors
    ///
    /// Those of the output; an old file is untouched then.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.pass_on()?;
        self.output.finish()
    }

    fn pass_on(&mut self) -> Result<(), Failure> {
        self.output.write(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }
}

#[cold]
fn too_large(value: u64) -> Failure {
    Failure::new(format!(
        "{value} does not fit the 4 bytes of --output-format u32: take u64 or text"
    ))
}
