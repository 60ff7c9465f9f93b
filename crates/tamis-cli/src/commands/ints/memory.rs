//! The memory limit of `--memory`.

use crate::arguments::byte_size::ByteSize;
use crate::exit::Failure;
use crate::io::unpack;

/// The memory limit of the sets, if the user gave one.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    limit: Option<ByteSize>,
    // The number of bytes that other data takes, such as another set.
    taken_bytes: u64,
}

/// The memory for reading and writing, which is not part of the sets. When other programs kept both
/// processors busy, 7 of 40 runs took 20 KB more than 10 MiB.
const BUFFERS_BYTES: u64 = (10 << 20) + (256 << 10);

/// The smallest valid limit.
const LEAST_BYTES: u64 = 16 << 20;

/// The reserve of a command that fills a second set from the results of the first set. The values
/// of a block take up to 1 MiB. In addition to the values of a block, the allocator keeps at most 1
/// MiB for the thread that reads the blocks.
pub const THREADS_BYTES: u64 = 2 << 20;

impl Memory {
    /// Creates a limit from the option of the user.
    ///
    /// # Errors
    ///
    /// Returns an error if the limit is below `LEAST_BYTES`.
    pub fn new(limit: Option<ByteSize>) -> Result<Self, Failure> {
        match limit {
            Some(limit) if limit.bytes < LEAST_BYTES => Err(Failure::new(format!(
                "--memory {limit} is too little: give at least {}",
                ByteSize { bytes: LEAST_BYTES }
            ))),
            limit => Ok(Self { limit, taken_bytes: 0 }),
        }
    }

    /// Returns the number of bytes that the sets may take, or `None` without a limit.
    pub fn bytes(&self) -> Option<u64> {
        self.limit.map(|limit| {
            let taken_bytes = BUFFERS_BYTES + unpack::reserved_bytes();
            limit.bytes.saturating_sub(taken_bytes).saturating_sub(self.taken_bytes)
        })
    }

    /// Returns the limit minus `bytes`.
    #[must_use]
    pub fn less(self, bytes: u64) -> Self {
        Self { taken_bytes: self.taken_bytes.saturating_add(bytes), ..self }
    }

    /// Tests whether the sets may take `bytes`.
    pub fn allows(&self, bytes: u64) -> bool {
        self.bytes().is_none_or(|allowed| bytes <= allowed)
    }

    /// Returns an error if the sets may not take `bytes`.
    ///
    /// # Errors
    ///
    /// Returns an error if `bytes` exceeds the limit.
    pub fn check(&self, bytes: u64) -> Result<(), Failure> {
        if self.allows(bytes) { Ok(()) } else { Err(self.refusal()) }
    }

    /// Returns the error for sets that exceed the memory.
    pub fn refusal(&self) -> Failure {
        let Some(limit) = self.limit else {
            return Failure::new("the system lacks the memory for the distinct integers");
        };
        Failure::new(format!(
            "the distinct integers outgrow --memory {limit}: give more, or state a narrow --range \
             (all of u32 takes 512 MiB, and 1.1 GiB to find repeats)"
        ))
    }
}
