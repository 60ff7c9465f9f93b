//! Computes the rates per second of some counters of the server.

use std::time::Instant;

use parking_lot::Mutex;

/// The increase of the counters per second, between the last two samples.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<RateSample>);

#[derive(Debug)]
struct RateSample {
    at: Instant,
    totals: [u64; 3],
    per_second: [f64; 3],
}

impl Default for RateSample {
    fn default() -> Self {
        Self { at: Instant::now(), totals: [0; 3], per_second: [0.0; 3] }
    }
}

impl Rates {
    /// Records a sample of the counters.
    pub fn sample(&self, totals: [u64; 3]) {
        let mut state = self.0.lock();
        let now = Instant::now();
        let seconds = now.duration_since(state.at).as_secs_f64();
        if seconds > 0.0 {
            // A counter decreases only if `CONFIG RESETSTAT` has reset the counter.
            let grown = std::array::from_fn(|i| totals[i].saturating_sub(state.totals[i]) as f64);
            *state = RateSample { at: now, totals, per_second: grown.map(|grown| grown / seconds) };
        }
    }

    /// Returns the rates per second of commands, received bytes and sent bytes.
    pub fn per_second(&self) -> [f64; 3] {
        self.0.lock().per_second
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn growth_is_reported_per_second() {
        let rates = Rates::default();
        std::thread::sleep(Duration::from_millis(20));
        rates.sample([100, 0, 7]);
        let [commands, none, bytes] = rates.per_second();
        assert!((1.0..=5000.0).contains(&commands) && none == 0.0 && bytes > 0.0, "{commands}");
        std::thread::sleep(Duration::from_millis(1));
        rates.sample([0, 0, 7]);
        assert_eq!(rates.per_second(), [0.0; 3]);
    }
}
