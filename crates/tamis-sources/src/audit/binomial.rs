//! The upper tail of the binomial distribution.

/// Returns the probability of at least `successes` successes in `trials` trials. Each trial succeeds with the
/// probability `rate`. Returns 1 if `successes` is at most the expected number. The run time grows with `successes`.
pub(crate) fn upper_tail(trials: u64, rate: f64, successes: u64) -> f64 {
    let (n, p, k) = (trials as f64, rate, successes as f64);
    if k <= n * p {
        return 1.0;
    }
    if p <= 0.0 || k > n {
        return 0.0;
    }
    // `choose` is the logarithm of the binomial coefficient n over k. The coefficient itself would overflow an `f64`.
    let choose: f64 = (1..=successes).map(|i| ((n - k + i as f64) / i as f64).ln()).sum();
    let first = choose + k * p.ln() + (n - k) * (-p).ln_1p();
    // The terms decrease, because `k` is above the mean.
    let (mut sum, mut term, mut j) = (1.0, 1.0, k);
    while j < n && term > sum * f64::EPSILON {
        term *= (n - j) / (j + 1.0) * p / (1.0 - p);
        sum += term;
        j += 1.0;
    }
    (first.exp() * sum).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_is_exact() {
        // The expected values are exact fractions, for example (1 + 10 + 45) / 1024.
        for (trials, rate, successes, expected) in [
            (10, 0.5, 8, 56.0 / 1024.0),
            (10, 0.5, 10, 1.0 / 1024.0),
            (2, 0.1, 1, 0.19),
            (3, 0.01, 3, 1e-6),
            (5, 0.3, 1, 1.0),
            (5, 0.0, 1, 0.0),
            (5, 1.0, 5, 1.0),
            (0, 0.5, 0, 1.0),
        ] {
            let chance = upper_tail(trials, rate, successes);
            assert!((chance - expected).abs() < 1e-12, "{trials} {rate} {successes}: {chance}");
        }
    }

    #[test]
    fn large_numbers_agree_with_the_normal_distribution() {
        // The tested values are three and six standard deviations above the mean. Their tail probabilities are 0.00135
        // and 9.9e-10.
        let at =
            |deviations: f64| upper_tail(1_000_000, 0.5, 500_000 + (deviations * 500.0) as u64);
        assert!((at(3.0) / 0.001_35 - 1.0).abs() < 0.01, "{}", at(3.0));
        assert!((at(6.0) / 9.87e-10 - 1.0).abs() < 0.02, "{}", at(6.0));
        let many = upper_tail(10_000_000, 0.001, 10_000_000);
        assert!((0.0..1e-300).contains(&many), "{many}");
    }
}
