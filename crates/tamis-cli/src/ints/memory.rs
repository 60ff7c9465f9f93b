//! What `--memory` allows.

use crate::exit::Failure;
use crate::size::Size;

/// A limit on the memory of the sets, if the user gave one.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    limit: Option<Size>,
}

/// What reading and writing take beside the sets.
const BUFFERS_BYTES: u64 = 8 << 20;

/// The least limit that makes sense.
const LEAST_BYTES: u64 = 16 << 20;

impl Memory {
    /// Takes the user's limit.
    ///
    /// # Errors
    ///
    /// A limit too small for any work.
    pub fn new(limit: Option<Size>) -> Result<Self, Failure> {
        match limit {
            Some(limit) if limit.bytes < LEAST_BYTES => Err(Failure::new(format!(
                "--memory {limit} is too little: give at least {}",
                Size { bytes: LEAST_BYTES }
            ))),
            limit => Ok(Self { limit }),
        }
    }

    /// No limit.
    #[cfg(test)]
    pub fn unlimited() -> Self {
        Self { limit: None }
    }

    /// Returns how many bytes sets may take, if there is a limit.
    pub fn bytes(&self) -> Option<u64> {
        self.limit.map(|limit| limit.bytes - BUFFERS_BYTES)
    }

    /// Tells whether sets may take `bytes`.
    pub fn allows(&self, bytes: u64) -> bool {
        self.bytes().is_none_or(|allowed| bytes <= allowed)
    }

    /// Refuses sets of `bytes` that are above the limit.
    ///
    /// # Errors
    ///
    /// That refusal.
    pub fn check(&self, bytes: u64) -> Result<(), Failure> {
        match self.limit {
            Some(limit) if !self.allows(bytes) => Err(Failure::new(format!(
                "the distinct integers outgrow --memory {limit}: give more, or state a narrow --range \
                 (all of u32 takes 512 MiB, and 1.1 GiB to find repeats)"
            ))),
            _ => Ok(()),
        }
    }
}
