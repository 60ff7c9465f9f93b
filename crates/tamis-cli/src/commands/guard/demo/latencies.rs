//! The latencies of requests, with a precision of 2 %.

use std::time::Duration;

/// The factor by which each bucket is wider than the bucket before.
const GROWTH: f64 = 1.02;

/// The number of buckets. The buckets cover the range from one microsecond to more than a day.
const BUCKETS: usize = 1280;

/// A histogram of times. The widths of the buckets grow geometrically.
#[derive(Clone, Debug)]
pub struct Latencies {
    buckets: Vec<u32>,
    count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0 }
    }
}

impl Latencies {
    pub fn record(&mut self, time: Duration) {
        let micros = time.as_secs_f64() * 1e6;
        let bucket = (micros.max(1.0).ln() / GROWTH.ln()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket = bucket.saturating_add(*more);
        }
        self.count += other.count;
    }

    /// Returns the latency in microseconds at the quantile `share`. Returns `None` if there are no
    /// requests.
    pub fn quantile_micros(&self, share: f64) -> Option<f64> {
        let wanted = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|&number| {
            sum += u64::from(number);
            sum >= wanted
        })?;
        Some(GROWTH.powi(bucket as i32 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_two_percent_too_large_at_most() {
        let (mut odd, mut even) = (Latencies::default(), Latencies::default());
        assert_eq!(odd.quantile_micros(0.99), None);
        for millis in 1..=1000 {
            let side = if millis % 2 == 0 { &mut even } else { &mut odd };
            side.record(Duration::from_millis(millis));
        }
        odd.merge(&even);
        for (share, millis) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = odd.quantile_micros(share).unwrap() / 1000.0;
            assert!(found >= millis && found <= millis * 1.021, "{share}: {found}");
        }
    }
}
