//! The bit numbers of an item, for rules that compute all bit numbers together.

/// Up to [`ProbePositions::MAX`] bit numbers.
#[derive(Clone, Copy)]
pub(crate) struct ProbePositions([u64; ProbePositions::MAX as usize]);

impl ProbePositions {
    /// The largest number of probes. Only rates below 2⁻⁶⁴ need more than 64 probes.
    pub(crate) const MAX: u32 = 64;

    /// Creates positions from the first [`MAX`](Self::MAX) numbers of `bits`.
    pub(crate) fn new(bits: impl Iterator<Item = u64>) -> Self {
        let mut positions = Self::default();
        positions.0.iter_mut().zip(bits).for_each(|(to, bit)| *to = bit);
        positions
    }

    pub(crate) fn iter(self, len: u32) -> impl Iterator<Item = u64> {
        self.0.into_iter().take(len as usize)
    }
}

impl Default for ProbePositions {
    fn default() -> Self {
        Self([0; ProbePositions::MAX as usize])
    }
}
