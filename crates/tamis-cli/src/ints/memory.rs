//! What `--memory` allows.

use crate::exit::Failure;
use crate::size::Size;
use crate::unpack;

/// A limit on the memory of the sets, if the user gave one.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    limit: Option<Size>,
    // Taken by what is not counted with the sets that this is for.
    taken_bytes: u64,
}

/// What reading and writing take beside the sets.
const BUFFERS_BYTES: u64 = 10 << 20;

/// The least limit that makes sense.
const LEAST_BYTES: u64 = 16 << 20;

/// Kept back by a command that fills a second set by the answers of the first one: the values of a block take up to 1 MiB, and
/// the allocator keeps as much for the thread that reads them.
pub const THREADS_BYTES: u64 = 2 << 20;

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
            limit => Ok(Self { limit, taken_bytes: 0 }),
        }
    }

    /// No limit.
    #[cfg(test)]
    pub fn unlimited() -> Self {
        Self { limit: None, taken_bytes: 0 }
    }

    /// Returns how many bytes sets may take, if there is a limit.
    pub fn bytes(&self) -> Option<u64> {
        self.limit.map(|limit| {
            let taken_bytes = BUFFERS_BYTES + unpack::aside();
            limit.bytes.saturating_sub(taken_bytes).saturating_sub(self.taken_bytes)
        })
    }

    /// Returns what is left of this when `bytes` of it are taken.
    #[must_use]
    pub fn less(self, bytes: u64) -> Self {
        Self { taken_bytes: self.taken_bytes.saturating_add(bytes), ..self }
    }

    /// Returns whether sets may take `bytes`.
    pub fn allows(&self, bytes: u64) -> bool {
        self.bytes().is_none_or(|allowed| bytes <= allowed)
    }

    /// Refuses sets of `bytes` that are above the limit.
    ///
    /// # Errors
    ///
    /// That refusal.
    pub fn check(&self, bytes: u64) -> Result<(), Failure> {
        if self.allows(bytes) { Ok(()) } else { Err(self.refusal()) }
    }

    /// Says that the sets do not fit.
    pub fn refusal(&self) -> Failure {
        let Some(limit) = self.limit else {
            return Failure::new("the system has not enough memory for the distinct integers");
        };
        Failure::new(format!(
            "the distinct integers outgrow --memory {limit}: give more, or state a narrow --range (all of u32 takes \
             512 MiB, and 1.1 GiB to find repeats)"
        ))
    }
}
