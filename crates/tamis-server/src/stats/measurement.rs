//! Periodic measurements of a filter: the rate of new items, and the used share of the capacity.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tamis_commands::Utilization;

/// The last measurement of a key, in 32 bytes. One thread writes the measurement, and other threads
/// read the measurement.
#[derive(Debug)]
pub(crate) struct Measurement {
    items: AtomicU64,
    /// The time of the measurement, in milliseconds since 1970. The value is 0 while the key
    /// has no measurement.
    at_millis: AtomicU64,
    /// The bits of two `f32` numbers: new items per second, and the used share. NaN means unknown.
    per_second: AtomicU32,
    used: AtomicU32,
    /// The period over which the rate was averaged, in seconds.
    watched: AtomicU32,
}

/// After this number of seconds, the weight of an old rate is about one third.
const MEMORY_SECONDS: f64 = 900.0;

/// The minimum time between two measurements that give a rate, in seconds.
const LEAST_SECONDS: f64 = 1.0;

impl Default for Measurement {
    fn default() -> Self {
        let none = || AtomicU32::new(f32::NAN.to_bits());
        Self {
            items: AtomicU64::new(0),
            at_millis: AtomicU64::new(0),
            per_second: none(),
            used: none(),
            watched: AtomicU32::new(0),
        }
    }
}

impl Measurement {
    /// Records a measurement. `None` means that the value is not a filter.
    pub fn note(&self, utilization: Option<Utilization>, now_millis: u64) {
        // `Relaxed` is sufficient: a reader may see a mix of two consecutive measurements, which is
        // nearly as good as one measurement.
        let Some(utilization) = utilization else {
            self.at_millis.store(0, Ordering::Relaxed);
            self.used.store((-1.0_f32).to_bits(), Ordering::Relaxed);
            self.per_second.store(f32::NAN.to_bits(), Ordering::Relaxed);
            self.watched.store(0, Ordering::Relaxed);
            return;
        };
        let items = utilization.items as u64;
        let before = self.items.load(Ordering::Relaxed);
        let last_millis = self.at_millis.load(Ordering::Relaxed);
        let seconds = now_millis.saturating_sub(last_millis) as f64 / 1000.0;
        if last_millis != 0 && seconds < LEAST_SECONDS {
            return;
        }
        self.used.store((utilization.used as f32).to_bits(), Ordering::Relaxed);
        self.items.store(items, Ordering::Relaxed);
        self.at_millis.store(now_millis.max(1), Ordering::Relaxed);
        // If the filter was emptied or replaced, the difference of the two counts is not a rate.
        if last_millis == 0 || items < before / 2 {
            return;
        }
        let rate = (items as f64 - before as f64) / seconds;
        let watched = f64::from(self.watched.load(Ordering::Relaxed)) + seconds;
        self.watched.store(watched.round() as u32, Ordering::Relaxed);
        // Use the plain average until the measured period is about as long as `MEMORY_SECONDS`:
        // after a load, a filter does not continue to grow at the rate of the load.
        let weight = (-(-seconds / MEMORY_SECONDS).exp_m1()).max(seconds / watched);
        let old = self.per_second().unwrap_or(0.0);
        let smooth = old + (rate - old) * weight;
        self.per_second.store((smooth as f32).to_bits(), Ordering::Relaxed);
    }

    /// Returns the number of items at the last measurement. Returns `None` if there is no
    /// measurement of a filter.
    pub fn items(&self) -> Option<u64> {
        let is_measured = self.at_millis.load(Ordering::Relaxed) != 0;
        is_measured.then(|| self.items.load(Ordering::Relaxed))
    }

    /// Returns the recent rate of new items per second. Returns `None` before the second
    /// measurement.
    pub fn per_second(&self) -> Option<f64> {
        let rate = f32::from_bits(self.per_second.load(Ordering::Relaxed));
        (!rate.is_nan()).then_some(f64::from(rate))
    }

    /// Returns the used share of a filter. Returns `None` before the first measurement. The share
    /// is negative if the value is not a filter.
    pub fn used(&self) -> Option<f32> {
        let used = f32::from_bits(self.used.load(Ordering::Relaxed));
        (!used.is_nan()).then_some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(items: f64) -> Option<Utilization> {
        let mut utilization = tamis_commands::Value::Bloom(Box::new(
            tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap(),
        ))
        .utilization(0)
        .unwrap();
        (utilization.items, utilization.used) = (items, items / 100.0);
        Some(utilization)
    }

    #[test]
    fn the_rate_follows_the_items() {
        let measurement = Measurement::default();
        assert_eq!(
            (measurement.per_second(), measurement.used(), measurement.items()),
            (None, None, None)
        );
        measurement.note(filter(10.0), 1000);
        assert_eq!(measurement.items(), Some(10));
        assert_eq!((measurement.per_second(), measurement.used()), (None, Some(0.1)));
        measurement.note(filter(40.0), 31_000);
        assert_eq!(measurement.per_second(), Some(1.0));
        measurement.note(filter(1e9), 31_100);
        assert_eq!(measurement.per_second(), Some(1.0), "too soon");
        // A burst at the beginning does not determine the rate.
        let burst = Measurement::default();
        for (items, now_millis) in [(0.0, 1000), (1e5, 31_000), (1e5, 61_000), (1e5, 101_000)] {
            burst.note(filter(items), now_millis);
        }
        assert_eq!(burst.per_second().map(f64::round), Some(1000.0));
        // After one hour at an increased rate, only the new rate counts.
        for step in 1..=120 {
            measurement.note(filter(40.0 + f64::from(step) * 300.0), 31_000 + step as u64 * 30_000);
        }
        let rate = measurement.per_second().unwrap();
        assert!((9.5..=10.0).contains(&rate), "{rate}");
        measurement.note(filter(5.0), 9_000_000);
        assert_eq!(measurement.per_second(), Some(rate), "emptied, but the adds go on");
        measurement.note(None, 9_100_000);
        assert_eq!(
            (measurement.per_second(), measurement.used(), measurement.items()),
            (None, Some(-1.0), None)
        );
        measurement.note(filter(0.0), 0);
        measurement.note(filter(0.0), 60_000);
        measurement.note(filter(0.0), 50_000);
        assert_eq!(measurement.per_second(), Some(0.0), "the clock went back");
    }
}
