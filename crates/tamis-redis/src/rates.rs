//! The false positive rate of a filter whose items are spread over shards.
//!
//! Let f(j) be the rate of a shard with j items. If n items spread over S shards, j has a binomial
//! distribution: n draws with probability 1/S. While a shard is less than half full, f is convex,
//! so the mean of f(j) is above f(n/S). A plan must therefore use the mean of f(j), not f(n/S).
//!
//! The code replaces the binomial distribution by the Poisson distribution with the same mean. The
//! Poisson distribution has a slightly larger variance than the binomial distribution. The computed
//! rate is therefore never below the true rate.

/// The likely numbers of items in a shard, with their probabilities.
///
/// The distribution does not depend on the size of the shards. A search for the size of a shard
/// therefore computes the distribution only once.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<(f64, f64)>);

impl Spread {
    /// Returns the distribution of `items` items over `shards` shards.
    pub(crate) fn new(items: u64, shards: u32) -> Self {
        let mean = items as f64 / f64::from(shards);
        if shards == 1 {
            return Self(vec![(mean, 1.0)]);
        }
        let sigma = mean.sqrt();
        // If the step between the summed numbers of items is at most half of sigma, the trapezoidal
        // rule is exact to many digits.
        let step = (sigma / 8.0).floor().max(1.0);
        let (first, last) = ((mean - 9.0 * sigma).floor().max(0.0), mean + 9.0 * sigma + 9.0);
        let mut weights = Vec::new();
        let (mut j, mut sum) = (first, 0.0);
        while j <= last {
            let weight = (j * mean.ln() - mean - ln_factorial(j)).exp();
            weights.push((j, weight));
            sum += weight;
            j += step;
        }
        for (_, weight) in &mut weights {
            *weight /= sum;
        }
        Self(weights)
    }

    /// Returns the mean rate of shards that have `bits` bits and `probes` probes for each item.
    pub(crate) fn rate(&self, bits: u64, probes: u32) -> f64 {
        self.0.iter().map(|&(items, weight)| weight * shard_rate(items, bits, probes)).sum()
    }

    /// Returns the smallest number of bits, a multiple of eight, with a mean rate of at
    /// most `rate`.
    pub(crate) fn least_bits(&self, rate: f64, probes: u32) -> u64 {
        let fits = |bytes: u64| self.rate(8 * bytes, probes) <= rate;
        let mut high = 8;
        while !fits(high) {
            high *= 2;
        }
        let mut low = high / 2;
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if fits(middle) { high = middle } else { low = middle }
        }
        8 * high
    }
}

/// Returns E\[(X/m)^k\], the rate of one shard. X is the number of set bits, m is `bits`, and k
/// is `probes`. The formula includes the variance of X to the second order.
pub(crate) fn shard_rate(items: f64, bits: u64, probes: u32) -> f64 {
    let (n, m, k) = (items, bits as f64, f64::from(probes));
    if n <= 0.0 {
        return 0.0;
    }
    let log_unset = k * n * (-1.0 / m).ln_1p();
    let (unset, fill) = (log_unset.exp(), -log_unset.exp_m1());
    let variance = (unset * (1.0 - (1.0 - log_unset) * unset) / m).max(0.0);
    let above = k * (k - 1.0) / 2.0 * variance / (fill * fill);
    (k * fill.ln() + above).exp().min(1.0)
}

/// Returns ln j!. For j of 10 or more, the function uses Stirling's series.
fn ln_factorial(j: f64) -> f64 {
    if j < 10.0 {
        return (2..=j as u32).map(|i| f64::from(i).ln()).sum();
    }
    let x = j + 1.0;
    (x - 0.5) * x.ln() - x + 0.918_938_533_204_672_7 + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_alone_has_the_rate_of_the_textbook() {
        let rate = Spread::new(1_000_000, 1).rate(12_400_000, 3);
        let textbook = (1.0 - (-3.0 / 12.4_f64).exp()).powi(3);
        assert!((rate / textbook - 1.0).abs() < 1e-4, "{rate} {textbook}");
    }

    #[test]
    fn a_spread_raises_the_rate_of_small_shards() {
        let (alone, spread) =
            (shard_rate(100.0, 1240, 3), Spread::new(100_000, 1000).rate(1240, 3));
        assert!(spread > 1.02 * alone && spread < 1.05 * alone, "{alone} {spread}");
    }

    #[test]
    fn factorials_are_exact_to_ten_digits() {
        assert!((ln_factorial(9.0) - 362_880_f64.ln()).abs() < 1e-12);
        assert!((ln_factorial(20.0) - 2_432_902_008_176_640_000_f64.ln()).abs() < 1e-8);
    }

    #[test]
    fn the_least_bits_fit_and_a_byte_less_does_not() {
        for (items, shards, rate, probes) in
            [(1, 1, 0.5, 1), (1_000, 1, 0.01, 3), (1_000_000, 48, 0.001, 5)]
        {
            let spread = Spread::new(items, shards);
            let bits = spread.least_bits(rate, probes);
            assert!(spread.rate(bits, probes) <= rate);
            assert!(bits == 40 || spread.rate(bits - 8, probes) > rate, "{items}: {bits}");
        }
    }
}
