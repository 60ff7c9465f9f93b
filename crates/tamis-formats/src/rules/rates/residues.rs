//! Arithmetic modulo the number of bits, and the samples of the rate formulas.

/// Returns all `x` below `modulus` with `factor`·x ≡ `value`.
pub(super) fn solve(factor: u64, value: u64, modulus: u64) -> impl Iterator<Item = u64> {
    let common = gcd(factor, modulus);
    let (step, count) = (modulus / common, if value.is_multiple_of(common) { common } else { 0 });
    let first = u128::from(value / common % step) * u128::from(inverse(factor / common, step))
        % u128::from(step);
    (0..count).map(move |i| first as u64 + i * step)
}

/// Returns `factor`·`value` modulo `modulus`. `factor` may be negative.
pub(super) fn times(factor: i64, value: u64, modulus: u64) -> u64 {
    (i128::from(factor) * i128::from(value)).rem_euclid(modulus.into()) as u64
}

/// Returns 2 to the power of `exponent` modulo `modulus`.
pub(super) fn power_of_two(exponent: u32, modulus: u64) -> u64 {
    ((1_u128 << exponent) % u128::from(modulus)) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the inverse of `number` modulo `modulus`. `number` and `modulus` must be coprime. The method is the extended
/// Euclidean algorithm.
fn inverse(number: u64, modulus: u64) -> u64 {
    let (mut rest, mut next) = (i128::from(modulus), i128::from(number % modulus));
    let (mut factor, mut next_factor) = (0, 1);
    while next != 0 {
        let times = rest / next;
        (rest, next) = (next, rest - times * next);
        (factor, next_factor) = (next_factor, factor - times * next_factor);
    }
    factor.rem_euclid(modulus.into()) as u64
}

/// Returns a point of a sequence that fills the six-dimensional unit cube evenly.
///
/// Source: Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018). The factors are the powers of
/// 1/φ₆, where φ₆ is the root of x⁷ = x + 1.
pub(super) fn sample(index: u32) -> [f64; 6] {
    const FACTOR: f64 = 0.898_653_712_628_699_3;
    let mut factor = 1.0;
    [(); 6].map(|()| {
        factor *= FACTOR;
        (0.5 + f64::from(index) * factor).fract()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_are_those_of_a_search() {
        for modulus in 1..40 {
            for (factor, value) in
                (0..45).flat_map(|factor| (0..modulus).map(move |it| (factor, it)))
            {
                let mut found: Vec<u64> = solve(factor, value, modulus).collect();
                found.sort_unstable();
                let all: Vec<u64> =
                    (0..modulus).filter(|x| factor * x % modulus == value).collect();
                assert_eq!(found, all, "{factor}·x ≡ {value} mod {modulus}");
            }
        }
        assert_eq!(times(-3, 5, 7), 6);
        assert_eq!(power_of_two(64, 10), 6);
    }
}
