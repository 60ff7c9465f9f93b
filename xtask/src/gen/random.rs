//! Generates pseudo-random numbers. The numbers are the same on every machine.

/// A generator of random numbers (SplitMix64).
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator. Generators with the same seed return the same numbers.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next random 64-bit number.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a random number below `range`. The probability of each number is uniform with an
    /// error of at most 2⁻⁶⁴.
    pub const fn below(&mut self, range: u64) -> u64 {
        ((self.next() as u128 * range as u128) >> 64) as u64
    }

    /// Returns a random number in [0, 1).
    pub const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns a number that looks random. Different arguments give different results.
pub const fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
