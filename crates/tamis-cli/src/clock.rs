//! Reads the clock, and compares it with the time in a window filter. The library never reads the
//! clock.

use std::time::{SystemTime, UNIX_EPOCH};

use tamis::{AnyFilter, Bits, Span};

use crate::arguments::window_span::WindowSpan;
use crate::exit::Failure;

/// Returns the milliseconds since 1970. `SOURCE_DATE_EPOCH` (in whole seconds) replaces the clock
/// for builds that must be identical to the byte. An invalid value counts as unset, as in other
/// programs.
pub fn now_millis() -> u64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    match fixed {
        Some(seconds) => seconds.saturating_mul(1000),
        // A clock before 1970 was never set.
        None => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// Rejects a window filter whose present slice began in the future. Items that are added or merged
/// now would precede the window, so the filter would expire them at once.
///
/// # Errors
///
/// A message if the clock of the filter is ahead.
pub fn check_clock<B: Bits<Word = u64>>(filter: &AnyFilter<B>, name: &str) -> Result<(), Failure> {
    match clock_lead(filter) {
        Some(lead) => Err(Failure::new(format!("{name}: {lead}"))),
        None => Ok(()),
    }
}

/// Returns a message if the present slice of a window filter began in the future.
pub fn clock_lead<B: Bits<Word = u64>>(filter: &AnyFilter<B>) -> Option<String> {
    let AnyFilter::Window(window) = filter else { return None };
    let lead_millis = window.began_millis()?.saturating_sub(now_millis());
    let lead = WindowSpan(Span::Millis(lead_millis));
    (lead_millis > 0).then(|| {
        format!(
            "its clock is {lead} ahead of this machine's, and earlier items are forgotten; set the \
             machine's clock, or build the filter again"
        )
    })
}
