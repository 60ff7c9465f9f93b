//! The bit numbers of an item, for rules that compute all of them at once.

/// Up to [`Places::MAX`] bit numbers.
#[derive(Clone, Copy)]
pub(crate) struct Places([u64; Places::MAX as usize]);

impl Places {
    /// More than this a rate of 2⁻⁶⁴ would need.
    pub(crate) const MAX: u32 = 64;

    /// Keeps the first of `bits`.
    pub(crate) fn new(bits: impl Iterator<Item = u64>) -> Self {
        let mut places = Self::default();
        places.0.iter_mut().zip(bits).for_each(|(to, bit)| *to = bit);
        places
    }

    pub(crate) fn iter(self, len: u32) -> impl Iterator<Item = u64> {
        self.0.into_iter().take(len as usize)
    }
}

impl Default for Places {
    fn default() -> Self {
        Self([0; Places::MAX as usize])
    }
}
