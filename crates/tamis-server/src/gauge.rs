//! What is measured of a filter from time to time: how fast it takes items, and how near its limit it is.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tamis_commands::Utilization;

/// The last measurement of a key, in 32 bytes. One thread measures; others read what they find.
#[derive(Debug)]
pub(crate) struct Gauge {
    items: AtomicU64,
    /// When, in milliseconds since 1970; 0 for never.
    at_millis: AtomicU64,
    /// The bits of `f32`s: new items a second, and what of the room is used; not a number for none.
    per_second: AtomicU32,
    used: AtomicU32,
    /// For how many seconds the rate has been watched.
    watched: AtomicU32,
}

/// After so long the weight of a rate has fallen to a third.
const MEMORY_SECONDS: f64 = 900.0;

/// Two measurements in a shorter time say nothing of the rate.
const LEAST_SECONDS: f64 = 1.0;

impl Default for Gauge {
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

impl Gauge {
    /// Takes a measurement; `None` of what is no filter.
    pub fn note(&self, strain: Option<Utilization>, now_millis: u64) {
        // Relaxed: a reader that sees an old number beside a new one is off by one measurement.
        let Some(strain) = strain else {
            self.at_millis.store(0, Ordering::Relaxed);
            self.used.store((-1.0_f32).to_bits(), Ordering::Relaxed);
            self.per_second.store(f32::NAN.to_bits(), Ordering::Relaxed);
            self.watched.store(0, Ordering::Relaxed);
            return;
        };
        let items = strain.items as u64;
        let before = self.items.load(Ordering::Relaxed);
        let last_millis = self.at_millis.load(Ordering::Relaxed);
        let seconds = now_millis.saturating_sub(last_millis) as f64 / 1000.0;
        if last_millis != 0 && seconds < LEAST_SECONDS {
            return;
        }
        self.used.store((strain.used as f32).to_bits(), Ordering::Relaxed);
        self.items.store(items, Ordering::Relaxed);
        self.at_millis.store(now_millis.max(1), Ordering::Relaxed);
        // Emptied, or another filter: what it lost was not taken out item by item.
        if last_millis == 0 || items < before / 2 {
            return;
        }
        let rate = (items as f64 - before as f64) / seconds;
        let watched = f64::from(self.watched.load(Ordering::Relaxed)) + seconds;
        self.watched.store(watched.round() as u32, Ordering::Relaxed);
        // At first the plain average: a filter that was just loaded does not go on like that.
        let weight = (-(-seconds / MEMORY_SECONDS).exp_m1()).max(seconds / watched);
        let old = self.per_second().unwrap_or(0.0);
        let smooth = old + (rate - old) * weight;
        self.per_second.store((smooth as f32).to_bits(), Ordering::Relaxed);
    }

    /// Returns how many items there were at the last measurement, if there was one of a filter.
    pub fn items(&self) -> Option<u64> {
        let is_measured = self.at_millis.load(Ordering::Relaxed) != 0;
        is_measured.then(|| self.items.load(Ordering::Relaxed))
    }

    /// Returns the items added per second of late; `None` before the first two measurements.
    pub fn per_second(&self) -> Option<f64> {
        let rate = f32::from_bits(self.per_second.load(Ordering::Relaxed));
        (!rate.is_nan()).then_some(f64::from(rate))
    }

    /// Returns what of its room a filter used; `None` before the first measurement, negative for what is no filter.
    pub fn used(&self) -> Option<f32> {
        let used = f32::from_bits(self.used.load(Ordering::Relaxed));
        (!used.is_nan()).then_some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(items: f64) -> Option<Utilization> {
        let mut strain = tamis_commands::Value::Bloom(Box::new(
            tamis_commands::ScalableBloom::reserve(100, 0.01, None).unwrap(),
        ))
        .strain(0)
        .unwrap();
        (strain.items, strain.used) = (items, items / 100.0);
        Some(strain)
    }

    #[test]
    fn the_rate_follows_the_items() {
        let gauge = Gauge::default();
        assert_eq!((gauge.per_second(), gauge.used(), gauge.items()), (None, None, None));
        gauge.note(filter(10.0), 1000);
        assert_eq!(gauge.items(), Some(10));
        assert_eq!((gauge.per_second(), gauge.used()), (None, Some(0.1)));
        gauge.note(filter(40.0), 31_000);
        assert_eq!(gauge.per_second(), Some(1.0));
        gauge.note(filter(1e9), 31_100);
        assert_eq!(gauge.per_second(), Some(1.0), "too soon");
        // A burst at the beginning is not all that counts.
        let burst = Gauge::default();
        for (items, now_millis) in [(0.0, 1000), (1e5, 31_000), (1e5, 61_000), (1e5, 101_000)] {
            burst.note(filter(items), now_millis);
        }
        assert_eq!(burst.per_second().map(f64::round), Some(1000.0));
        // Faster now: an hour later it is all that counts.
        for step in 1..=120 {
            gauge.note(filter(40.0 + f64::from(step) * 300.0), 31_000 + step as u64 * 30_000);
        }
        let rate = gauge.per_second().unwrap();
        assert!((9.5..=10.0).contains(&rate), "{rate}");
        gauge.note(filter(5.0), 9_000_000);
        assert_eq!(gauge.per_second(), Some(rate), "emptied, but the adds go on");
        gauge.note(None, 9_100_000);
        assert_eq!((gauge.per_second(), gauge.used(), gauge.items()), (None, Some(-1.0), None));
        gauge.note(filter(0.0), 0);
        gauge.note(filter(0.0), 60_000);
        gauge.note(filter(0.0), 50_000);
        assert_eq!(gauge.per_second(), Some(0.0), "the clock went back");
    }
}
