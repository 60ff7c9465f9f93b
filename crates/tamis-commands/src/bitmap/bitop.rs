//! Computes the result of `BITOP` from values. The server handles the keys.

use tamis_resp::Reply;

use crate::command::argv::{Argv, is};
use crate::command::run::error;
use crate::text;
use crate::value::sparse_bytes::SparseBytes;
use crate::value::{Value, bytes};

/// The state of a running `BITOP`. The server passes the value of each source key to
/// [`take`](Self::take), then stores the result in the destination key.
///
/// # Examples
///
/// ```
/// use tamis_commands::{BitOp, Value};
///
/// let words: [&[u8]; 5] = [b"BITOP", b"OR", b"to", b"a", b"b"];
/// let mut operation = BitOp::new(&words)?;
/// operation.take(Some(&Value::Bytes(b"A".to_vec().into())))?;
/// operation.take(None)?;
/// let (value, len) = operation.finish();
/// assert_eq!((value.is_some(), len), (true, 1));
/// # Ok::<(), tamis_resp::Reply>(())
/// ```
#[derive(Debug)]
pub struct BitOp {
    operation: Operation,
    /// The result for the values processed so far.
    result: Option<SparseBytes>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl BitOp {
    /// Starts a `BITOP operation destination key [key ...]`.
    ///
    /// # Errors
    ///
    /// The error reply, if the operation is unknown or does not accept the given number of keys.
    pub fn new(argv: Argv<'_>) -> Result<Self, Reply> {
        let operation = match argv[1] {
            word if is(word, "AND") => Operation::And,
            word if is(word, "OR") => Operation::Or,
            word if is(word, "XOR") => Operation::Xor,
            word if is(word, "NOT") => Operation::Not,
            _ => return Err(error(text::SYNTAX)),
        };
        if matches!(operation, Operation::Not) && argv.len() != 4 {
            return Err(error(text::bitmap::NOT_OF_SEVERAL));
        }
        Ok(Self { operation, result: None })
    }

    /// Combines the result with the value of the next source key; `None` counts as an empty string.
    ///
    /// # Errors
    ///
    /// The error reply, if the value is not a string.
    pub fn take(&mut self, value: Option<&Value>) -> Result<(), Reply> {
        let empty = SparseBytes::default();
        let next = bytes(value).map_err(error)?.unwrap_or(&empty);
        match (&mut self.result, self.operation) {
            (Some(result), Operation::And) => result.combine(next, |a, b| a & b),
            (Some(result), Operation::Or) => result.combine(next, |a, b| a | b),
            (Some(result), Operation::Xor) => result.combine(next, |a, b| a ^ b),
            (Some(_), Operation::Not) => unreachable!("it has one key"),
            (result @ None, operation) => {
                let result = result.insert(next.clone());
                if matches!(operation, Operation::Not) {
                    result.invert();
                }
            }
        }
        Ok(())
    }

    /// Returns the maximum memory of the result after [`take`](Self::take) has processed the given value, in bytes.
    #[must_use]
    pub fn bytes_with(&self, value: Option<&Value>) -> u64 {
        let Some(Value::Bytes(next)) = value else { return 0 };
        match (&self.result, self.operation) {
            // Absent pages of zeros take no memory, but `NOT` fills these pages with 1 bits.
            (None, Operation::Not) => next.memory_bytes() + next.len() as u64,
            (None, _) => next.memory_bytes(),
            (Some(result), _) => result.memory_bytes() + next.memory_bytes(),
        }
    }

    /// Returns the value of the destination and the length of the value in bytes. The value is
    /// `None` if the length is 0.
    #[must_use]
    pub fn finish(self) -> (Option<Value>, usize) {
        let result = self.result.unwrap_or_default();
        let len = result.len();
        ((len > 0).then_some(Value::Bytes(result)), len)
    }
}
