//! A rate limit: a maximum number of events per second.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A token bucket that allows a number of events per second. After an idle second, the limiter allows the full number
/// of events in one burst.
#[derive(Debug)]
pub(crate) struct Limiter {
    per_second: f64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The number of events that are allowed now.
    left: f64,
    at: Option<Instant>,
}

impl Limiter {
    pub(crate) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, state: Mutex::new(State { left: per_second, at: None }) }
    }

    /// Tests whether an event is allowed at the time `now`. If the event is allowed, the limiter counts the event.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let passed = state.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        state.at = Some(state.at.map_or(now, |at| at.max(now)));
        state.left = (state.left + passed.as_secs_f64() * self.per_second).min(self.per_second);
        let is_allowed = state.left >= 1.0;
        if is_allowed {
            state.left -= 1.0;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_allowed_at_the_rate_and_not_above() {
        let limiter = Limiter::new(10);
        let start = Instant::now();
        let allowed = |millis: u64| limiter.allows(start + Duration::from_millis(millis));
        assert_eq!((0..20).filter(|_| allowed(0)).count(), 10);
        assert_eq!((0..20).filter(|_| allowed(500)).count(), 5);
        // After a long pause, the limiter allows the events of one second.
        assert_eq!((0..20).filter(|_| allowed(60_000)).count(), 10);
        assert!(!Limiter::new(0).allows(start));
    }
}
