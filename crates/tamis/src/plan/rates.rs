//! The formulas of false positive rates. There are two models and a lower limit:
//!
//! **Blocks.** `n` items are distributed over `B` blocks at random. P(j) is the probability that a
//! block holds j items: binomial, with n draws at 1/B. A block with j items reports an absent item
//! as present with the probability f(j) = (1 − q^j)^8, because the eight lanes of a block are
//! independent. In the formula of f(j), q = 1 − 1/L, and L is the number of bits of a lane. The
//! rate is Σ P(j) f(j). The rate of a filter with blocks is higher than the rate of the classic
//! formula, which uses only the mean number of items in a block.
//!
//! The sum has a closed form. By the binomial theorem, f(j) is a sum of powers q^ij. The mean of
//! q^ij is (1 − (1 − q^i)/B)^n. Therefore the rate is Σ (−1)^i C(8, i) (1 − (1 − q^i)/B)^n for i =
//! 0 … 8. The terms of this sum cancel each other, so a low rate loses precision. Therefore low
//! rates are computed as the sum over j. At a low rate the blocks hold few items, so the sum over j
//! is short.
//!
//! **Classic.** The k·n draws of the items set X of the m positions. The lookup of an absent item
//! draws k of the m positions. Therefore the rate is E\[(X/m)^k\]. For k ≥ 2 the rate is above (1 −
//! e^(−kn/m))^k. The difference between the two rates is noticeable in small filters.
//!
//! The rate of a small filter is computed exactly. For other filters, ln X is approximated by a
//! normal distribution with the mean and variance of X. The relative error is at most 10⁻³ for
//! rates down to 10⁻⁹. For rates below 10⁻⁹, the result is too high
//! (`the_approximation_meets_the_exact_rate`). Plans use the approximation at every size, because
//! the approximation is never below the exact rate
//! (`a_classic_plan_takes_at_most_two_bits_more_than_the_least`).
//!
//! **The width of the hash.** The rate is at least the probability that an absent item has the hash
//! of an inserted item. A classic filter distinguishes 2⁶⁴ hashes. A block of wide lanes
//! distinguishes only 2³² items, because 32 bits of the hash determine the bits of all lanes. In
//! narrow lanes of 16 bits, these 32 bits of the hash are used directly. Therefore the formula of
//! narrow lanes already contains the probability of equal hashes.
//!
//! A plan searches for the size with a given rate. The formulas for this search also return the
//! slope of the rate, −d ln rate / d ln size.

#[cfg(not(any(feature = "std", test)))]
use crate::no_std::*;

/// The number of lanes in a block, which is the number of probes of a blocked filter.
pub(crate) const LANES: u32 = 8;

/// The number of different hashes.
pub(crate) const HASHES: f64 = 18_446_744_073_709_551_616.0;

/// The number of bit patterns of an item in a block.
const PATTERNS: f64 = 4_294_967_296.0;

/// The maximum number of bits of a narrow lane. In narrow lanes, each value of the 32 pattern bits
/// of a hash has its own pattern.
const NARROW_LANE_BITS: u64 = 16;

/// Returns the probability that an absent item has the same block and bit pattern as one of `items`
/// items in `blocks` blocks. The result leaves out the probability that [`blocks_rate`] already
/// contains.
pub(crate) fn same_pattern_rate(items: f64, blocks: f64, lane_bits: u64) -> f64 {
    if lane_bits <= NARROW_LANE_BITS {
        return items / HASHES;
    }
    // Beyond 2³² blocks, the block and the pattern share bits of the hash.
    items / (blocks * PATTERNS).min(HASHES)
}

/// Returns the probability that an absent item has the same hash as one of `items` items in a
/// classic filter with this fill. The result includes hashes that equal an item's hash after a
/// shift by some probes.
pub(crate) fn same_hash_rate(items: f64, fill: f64) -> f64 {
    // A hash that is shifted by i probes shares all probes except i probes with the item. The
    // remaining i probes are set by chance: 1 + 2(f + f² + …).
    items / HASHES * (1.0 + fill) / (1.0 - fill).max(f64::EPSILON)
}

/// Returns the lowest rate that a filter for `items` always keeps, rounded up to two digits.
pub(crate) fn lowest_rate(items: u64) -> f64 {
    rounded_up(4.0 * items as f64 / HASHES)
}

/// Rounds a rate up to two significant digits.
pub(crate) fn rounded_up(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.log10().floor() - 1.0);
    (rate / unit).ceil() * unit
}

/// The load from which the closed form has ten correct digits: the mean number of items of a block
/// for each bit of a lane. At the load `CLOSED_FROM`, the rate is about 3·10⁻⁴.
const CLOSED_FROM: f64 = 0.4;

/// Returns the rate of `items` in `blocks` blocks of eight lanes, and the slope of the rate.
pub(crate) fn blocks_rate(items: u64, blocks: u64, lane_bits: u64) -> (f64, f64) {
    let (n, b, l) = (items as f64, blocks as f64, lane_bits as f64);
    let mean = n / b;
    if blocks > 1 && mean < CLOSED_FROM * l {
        let [rate, of_items] = blocks_mean(items, blocks, lane_bits, |j, f| [f, f * j]);
        return (rate, (of_items / rate - mean) / (1.0 - 1.0 / b));
    }
    let (mut rate, mut fall, mut power) = (1.0, 0.0, 1.0);
    for choices in [-8.0, 28.0, -56.0, 70.0, -56.0, 28.0, -8.0, 1.0] {
        power -= power / l;
        let x = (1.0 - power) / b;
        // Computes ln(1 − x). For small x, the series is as exact as `ln_1p` and faster than
        // `ln_1p`.
        let log = match x < 1.0 / 8192.0 {
            true => -x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 3.0 + x * (1.0 / 4.0)))),
            false => (-x).ln_1p(),
        };
        let term = choices * (n * log).exp();
        rate += term;
        fall -= term * n * x / (1.0 - x);
    }
    let rate = rate.clamp(0.0, 1.0);
    (rate, fall / rate)
}

/// Returns the standard deviation of the rate of `items` in `blocks` blocks. The deviation is
/// caused by the uneven distribution of the items. The deviation is computed from the variance of
/// f(j), the rate of a block with j items, without the part that is linear in j. The linear part
/// does not contribute, because Σ j = n is fixed.
pub(crate) fn blocks_deviation(items: u64, blocks: u64, lane_bits: u64) -> f64 {
    // One block has no deviation. Loads above 500 items a block are not useful, so the deviation at
    // these loads does not matter.
    if blocks == 1 || items as f64 / blocks as f64 > 500.0 {
        return 0.0;
    }
    let [f, ff, fj, j, jj] =
        blocks_mean(items, blocks, lane_bits, |j, f| [f, f * f, f * j, j, j * j]);
    let (covariance, variance) = (fj - f * j, jj - j * j);
    if variance <= 0.0 {
        return 0.0;
    }
    let rest = ff - f * f - covariance * covariance / variance;
    (rest.max(0.0) / blocks as f64).sqrt()
}

/// Returns the means of several functions g of a block with j items. The first function g is f(j),
/// the rate of a block with j items. Each mean is Σ P(j) g(j), summed term by term.
///
/// The caller passes at least two blocks, with at most 700 items each on average. With a higher
/// average than 700 items, P(0) would underflow to zero.
fn blocks_mean<const N: usize>(
    items: u64,
    blocks: u64,
    lane_bits: u64,
    of: impl Fn(f64, f64) -> [f64; N],
) -> [f64; N] {
    let (n, b) = (items as f64, blocks as f64);
    let (odds, step) = (1.0 / (b - 1.0), 1.0 / lane_bits as f64);
    let mut chance = (n * (-1.0 / b).ln_1p()).exp();
    // 1 − q^j is computed from 1 − q^(j−1), to avoid a loss of precision by cancellation.
    let (mut means, mut filled, mut j) = ([0.0; N], 0.0, 0.0);
    while j <= n {
        let of = of(j, block_rate(filled));
        for (mean, value) in means.iter_mut().zip(of) {
            *mean += chance * value;
        }
        // P(j) f(j) rises to one maximum and then falls, so the loop stops at the first negligible
        // term.
        if j > 0.0 && chance * of[0] <= 1e-17 * means[0] {
            break;
        }
        chance *= (n - j) / (j + 1.0) * odds;
        filled = filled * (1.0 - step) + step;
        j += 1.0;
    }
    means
}

/// Returns f(j), the rate of a block with j items. `filled` is 1 − q^j, the share of a lane that j
/// items set.
fn block_rate(filled: f64) -> f64 {
    filled.powi(LANES as i32)
}

/// Returns the rate of `items` in a classic filter: E\[(X/m)^k\].
pub(crate) fn classic_rate(items: u64, bits: u64, probes: u32) -> f64 {
    let steps = items.saturating_mul(u64::from(probes) * u64::from(probes));
    // For a filter with one probe, the approximation is exact.
    if probes > 1 && steps <= EXACT_STEPS {
        let draws = items as f64 * f64::from(probes);
        let fill = -(draws * (-1.0 / bits as f64).ln_1p()).exp_m1();
        (exact_classic_rate(items, bits, probes) + same_hash_rate(items as f64, fill)).min(1.0)
    } else {
        approximate_classic_rate(items, bits, probes).0
    }
}

/// The maximum number of steps, n·k², for which a rate is computed exactly. An exact computation
/// takes about 20 µs.
const EXACT_STEPS: u64 = 1 << 15;

/// Returns the rate as a sum over j. Each term is the product of two probabilities. The first
/// probability is that the k draws of the absent item are j distinct positions. The second
/// probability is that the k·n draws of the items set all of these j positions.
fn exact_classic_rate(items: u64, bits: u64, probes: u32) -> f64 {
    let (m, k) = (bits as f64, probes as usize);
    // The number of distinct positions is at most the number of bits.
    let most = k.min(usize::try_from(bits).unwrap_or(usize::MAX));
    // The probability that j given positions are all set, updated for each draw. A draw hits one of
    // j positions with probability j/m.
    let mut all_set = vec![0.0; most + 1];
    all_set[0] = 1.0;
    for _ in 0..items * u64::from(probes) {
        for j in (1..=most).rev() {
            let hit = j as f64 / m;
            all_set[j] = hit * all_set[j - 1] + (1.0 - hit) * all_set[j];
        }
    }
    // The probability that the draws of the absent item so far are j distinct positions.
    let mut distinct = vec![0.0; most + 1];
    distinct[0] = 1.0;
    for _ in 0..k {
        for j in (0..=most).rev() {
            let first = if j == 0 { 0.0 } else { distinct[j - 1] * (1.0 - (j - 1) as f64 / m) };
            distinct[j] = distinct[j] * (j as f64 / m) + first;
        }
    }
    distinct.iter().zip(all_set).map(|(chance, all_set)| chance * all_set).sum()
}

/// Returns E\[(X/m)^k\] for normally distributed ln X, and the slope of this rate with an error of
/// a few percent.
pub(crate) fn approximate_classic_rate(items: u64, bits: u64, probes: u32) -> (f64, f64) {
    let (n, m, k) = (items as f64, bits as f64, f64::from(probes));
    if bits < 2 {
        return (1.0, 0.0);
    }
    // The expected share of unset positions is a = (1 − 1/m)^(kn). The expected share of pairs of
    // positions that are both unset is (1 − 2/m)^(kn). The share of pairs equals a²(1 + δ), where 1
    // + δ = (1 − 1/(m − 1)²)^(kn). Therefore the variance of the share is a²δ + a(1 − a(1 + δ))/m.
    let log_unset = k * n * (-1.0 / m).ln_1p();
    let fill = -log_unset.exp_m1();
    let a = 1.0 - fill;
    let delta = (k * n * (-1.0 / ((m - 1.0) * (m - 1.0))).ln_1p()).exp_m1();
    let variance = (a * a * delta + a * (1.0 - a * (1.0 + delta)) / m).max(0.0);
    if fill == 0.0 {
        return (0.0, 0.0);
    }
    let above = k * (k - 1.0) / 2.0 * variance / (fill * fill);
    let of_probes = (k * fill.ln() + above).exp();
    let rate = of_probes + same_hash_rate(n, fill);
    (rate.min(1.0), k * -log_unset * a / fill * (of_probes / rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_rates_are_those_computed_elsewhere() {
        // The expected rates were computed outside this crate, from the definition E\[(X/m)^k\].
        for (n, m, k, exact) in [
            (1, 8, 2, 0.056_641),
            (1, 64, 5, 2.6167e-6),
            (5, 64, 5, 0.003_862_5),
            (10, 100, 7, 0.008_936_3),
            (100, 958, 7, 0.010_155_5),
        ] {
            let rate = classic_rate(n, m, k);
            assert!((rate / exact - 1.0).abs() < 1e-4, "n={n} m={m} k={k}: {rate} against {exact}");
        }
    }

    #[test]
    fn the_approximation_meets_the_exact_rate() {
        // The smallest number of items whose rate is not computed exactly, in a half-full filter.
        for (probes, within) in [(1, 1e-12), (2, 1e-6), (7, 1e-6), (20, 2e-4), (30, 1e-3)] {
            let items = EXACT_STEPS / u64::from(probes * probes) + 1;
            let bits = ((items * u64::from(probes)) as f64 / std::f64::consts::LN_2) as u64;
            let exact = exact_classic_rate(items, bits, probes);
            let approximate = approximate_classic_rate(items, bits, probes).0;
            let off = approximate / exact - 1.0;
            assert!(off.abs() < within, "{probes} probes: off by {off} of {exact}");
        }
        let (exact, approximate) =
            (exact_classic_rate(5, 721, 100), approximate_classic_rate(5, 721, 100).0);
        assert!(exact < approximate, "upwards: {exact} against {approximate}");
    }

    #[test]
    fn exact_rates_are_those_of_all_outcomes() {
        // Enumerates every sequence of draws, for 3 bits, 2 probes, 2 inserted items and the absent
        // item.
        let found = (0..3_u32.pow(6)).filter(|outcome| {
            let draw = |i: u32| outcome / 3_u32.pow(i) % 3;
            let set: Vec<u32> = (0..4).map(draw).collect();
            set.contains(&draw(4)) && set.contains(&draw(5))
        });
        let rate = found.count() as f64 / f64::from(3_u32.pow(6));
        assert!((exact_classic_rate(2, 3, 2) / rate - 1.0).abs() < 1e-12);
        assert_eq!(exact_classic_rate(0, 100, 7), 0.0);
        // In the next two filters, the number of probes exceeds the number of bits.
        assert_eq!(exact_classic_rate(1, 1, 9), 1.0);
        assert!((exact_classic_rate(3, 2, 40) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_closed_form_of_blocks_is_the_sum() {
        for lane_bits in [16, 32, 64] {
            for (blocks, tenths) in
                [(2, 4), (3, 10), (100, 4), (5000, 5), (1 << 20, 4), (1 << 30, 30)]
            {
                let items = blocks * lane_bits * tenths / 10 + 1;
                let (closed, _) = blocks_rate(items, blocks, lane_bits);
                let [sum] = blocks_mean(items, blocks, lane_bits, |_, f| [f]);
                let off = closed / sum - 1.0;
                assert!(off.abs() < 1e-10, "{items} in {blocks} of {lane_bits}: {off}");
            }
        }
    }

    #[test]
    fn slopes_are_those_between_neighbours() {
        let check = |rate_of: &dyn Fn(u64) -> (f64, f64), size: u64, within: f64| {
            let (here, slope) = rate_of(size);
            let found = -(rate_of(size + size / 1000).0 / here).ln() / 1.001_f64.ln();
            assert!((found / slope - 1.0).abs() < within, "{size}: {slope} against {found}");
        };
        for items in [30_000, 300_000, 3_000_000] {
            check(&|blocks| blocks_rate(items, blocks, 64), 10_000, 0.005);
            check(&|bits| approximate_classic_rate(items, bits, 7), 3_000_000, 0.005);
        }
    }

    #[test]
    fn blocked_rates_are_those_computed_elsewhere() {
        // The expected rates of Parquet's filter were computed outside this crate.
        for (bits_per_item, rate) in
            [(8.0, 0.0332), (10.0, 0.0126), (11.54, 0.0065), (16.0, 0.0013), (20.0, 0.00042)]
        {
            let blocks = 100_000;
            let items = (blocks as f64 * 256.0 / bits_per_item) as u64;
            let (found, _) = blocks_rate(items, blocks, 32);
            assert!((found / rate - 1.0).abs() < 0.03, "{bits_per_item}: {found} against {rate}");
        }
    }
}
