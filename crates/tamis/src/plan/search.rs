//! Searches for the smallest number that satisfies a condition.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;
use crate::plan::geometry::Geometry;

/// Returns the smallest number in `low..=high` for which `enough` returns true. `enough` must be
/// monotonic.
pub(crate) fn smallest(low: u64, high: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    if !enough(high) {
        return None;
    }
    // The search first doubles the number, because the result is usually far below `high`.
    let mut over = low;
    while !enough(over) {
        over = over.saturating_mul(2).min(high);
    }
    let mut under = (over / 2).max(low);
    if enough(under) {
        return Some(under);
    }
    while over - under > 1 {
        let middle = under + (over - under) / 2;
        if enough(middle) {
            over = middle;
        } else {
            under = middle;
        }
    }
    Some(over)
}

/// The number of Newton steps before the search switches to bisection. A search usually takes three
/// to six steps.
const NEWTON_STEPS: u32 = 20;

/// The number above which the rate is nearly linear between two adjacent numbers.
const STRAIGHT_FROM: u64 = 4096;

/// The largest factor by which a step changes the number. The factor limits the steps where the
/// rate is nearly constant.
const MAX_FACTOR: f64 = 8.0;

/// Returns the smallest number in `1..=most` whose rate is at most `rate`, starting from a guess.
///
/// `rate_of` returns the rate of a number and the slope of the rate, −d ln rate / d ln number, with
/// an error of a few percent. Newton's method finds the root of ln rate as a function of ln number.
/// The search stops when the rate of `number` is low enough and the rate of `number - 1` is too
/// high. Therefore neither the guess nor the slope changes the result. Above [`STRAIGHT_FROM`], the
/// search may infer from the slope that the rate of `number - 1` is too high.
pub(crate) fn smallest_from(
    guess: f64,
    most: u64,
    rate: f64,
    rate_of: impl Fn(u64) -> (f64, f64),
) -> Option<u64> {
    let (mut under, mut over, mut guess) = (0, most + 1, guess);
    for step in 0_u32.. {
        if over - under == 1 {
            break;
        }
        let number = match step < NEWTON_STEPS {
            true => (guess.ceil() as u64).clamp(under + 1, over - 1),
            false => under + (over - under) / 2,
        };
        let (found, slope) = rate_of(number);
        if found <= rate {
            over = number;
        } else {
            under = number;
        }
        // A rate of zero has no slope. `max` turns NaN into the smallest factor.
        let factor = (found / rate).powf(1.0 / slope).max(1.0 / MAX_FACTOR);
        guess = number as f64 * factor.min(MAX_FACTOR);
        // If the guess is less than 0.9 below `number`, the error of the guess is below 0.1.
        // Therefore the rate of `number - 1` is too high.
        let above = number as f64 - guess;
        if found <= rate && number > STRAIGHT_FROM && (0.0..0.9).contains(&above) {
            break;
        }
    }
    (over <= most).then_some(over)
}

/// Compares two geometries. Returns the geometry with fewer bits, and the number of its bits. If
/// both geometries take the same number of bits, returns the first geometry. The arguments of
/// `settle` are a geometry, the guess at which the search starts, and the maximum number of bits.
/// `settle` returns the minimum number of bits for the geometry.
pub(crate) fn fewer(
    guesses: [f64; 2],
    geometries: [Geometry; 2],
    max_bits: u64,
    settle: impl Fn(Geometry, f64, u64) -> Option<u64>,
) -> Option<(u64, Geometry)> {
    // The search starts with the geometry of the lower guess. After the first search, usually one
    // step shows that the second geometry takes more bits than the first geometry.
    let first = usize::from(guesses[1] < guesses[0]);
    let of = |i: usize, max_bits| settle(geometries[i], guesses[i], max_bits).map(|bits| (bits, i));
    let found = of(first, max_bits);
    let other = of(1 - first, found.map_or(max_bits, |(bits, _)| bits));
    found.into_iter().chain(other).min().map(|(bits, i)| (bits, geometries[i]))
}
