//! The position from which a later run continues.

use serde::{Deserialize, Serialize};

use crate::io::output::OutputPosition;

/// The identity by which a later run recognises an input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputId {
    /// The path as the user typed it.
    pub name: String,
    /// The size in bytes and the modification time in nanoseconds since the Unix epoch. `None` if
    /// the input is not a file.
    pub file: Option<(u64, u64)>,
}

/// The position of a run at the last time when output and digests were both on disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The inputs.
    pub inputs: Vec<InputId>,
    /// The index of the current input.
    pub input: usize,
    /// The number of processed bytes of the current input, after decompression.
    pub at_bytes: u64,
    /// The position of the end of the output.
    pub output: Option<OutputPosition>,
    /// The number of records read so far.
    pub records: u64,
    /// The number of records written so far.
    pub written: u64,
}
