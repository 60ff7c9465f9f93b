//! Pseudo-random numbers, the same on every machine.

/// A stream of random numbers (SplitMix64).
pub struct Random {
    state: u64,
}

impl Random {
    /// Starts a stream; equal seeds give equal streams.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below `range`, uniform to one part in 2⁶⁴.
    pub const fn below(&mut self, range: u64) -> u64 {
        ((self.next() as u128 * range as u128) >> 64) as u64
    }

    /// Returns a number in [0, 1).
    pub const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A bijection of 64 bits without a pattern.
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
