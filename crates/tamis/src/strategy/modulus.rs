//! Remainders by a divisor that does not change.

/// The number of bits of a filter, as a divisor: the remainder of a hash is a bit number.
///
/// A division for each probe would cost more than the memory access, so the remainder is computed
/// by multiplication with the reciprocal.
///
/// Source: Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994),
/// section 4.
///
/// # Examples
///
/// ```
/// use tamis::Modulus;
///
/// let bits = Modulus::new(1_000).expect("1 to 2^63 bits");
/// assert_eq!(bits.reduce(u64::MAX), u64::MAX % 1_000);
/// assert_eq!(Modulus::new(0), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    // Invariant: `bits` is at least 1 and at most 2⁶³. Before its correction, the remainder in
    // `reduce` is below `2 * bits`, so the remainder does not overflow.
    bits: u64,
    /// The reciprocal of `bits`: ⌊(2⁶⁴ − 1) / bits⌋.
    reciprocal: u64,
}

impl Modulus {
    /// Creates the divisor. Returns `None` for zero bits, and for more than 2⁶³ bits.
    #[must_use]
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 || bits > 1 << 63 {
            return None;
        }
        Some(Self { bits, reciprocal: u64::MAX / bits })
    }

    /// Returns the number of bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Returns `x` mod the number of bits.
    #[inline(always)]
    #[must_use]
    pub const fn reduce(self, x: u64) -> u64 {
        // The quotient is exact or one too small. The reciprocal is at most 1 below 2⁶⁴/`bits`, so
        // the error of the product x · reciprocal / 2⁶⁴ is below one.
        let quotient = ((x as u128 * self.reciprocal as u128) >> 64) as u64;
        let r = x.wrapping_sub(quotient.wrapping_mul(self.bits));
        if r >= self.bits { r - self.bits } else { r }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn remainders_are_those_of_division(
            x: u64,
            bits in prop_oneof![1..=1_u64 << 63, 1..1000_u64, (0..=63_u32).prop_map(|n| 1 << n)],
        ) {
            let modulus = Modulus::new(bits).unwrap();
            for x in [x, u64::MAX - x % 1000, bits * (u64::MAX / bits), bits * (u64::MAX / bits) - 1] {
                prop_assert_eq!(modulus.reduce(x), x % bits);
            }
        }
    }

    #[test]
    fn zero_bits_and_too_many_bits_are_refused() {
        assert_eq!(Modulus::new(0), None);
        assert_eq!(Modulus::new((1 << 63) + 1), None);
    }
}
