//! Reads the system time, and compares the system time with the time in a window filter. The
//! crate `tamis` never reads the system time.

use std::time::{SystemTime, UNIX_EPOCH};

use tamis::{AnyFilter, Bits, Span};

use crate::arguments::window_span::WindowSpan;
use crate::exit::Failure;

/// Returns the milliseconds since 1970. If `SOURCE_DATE_EPOCH` is set (in whole seconds), returns
/// the time in this variable instead of the system time. Two builds with the same value
/// of `SOURCE_DATE_EPOCH` write identical bytes. Like other programs, Tamis ignores an invalid
/// value of `SOURCE_DATE_EPOCH`.
pub fn now_millis() -> u64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    match fixed {
        Some(seconds) => seconds.saturating_mul(1000),
        // A time before 1970 shows that the clock was never set.
        None => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// Rejects a window filter whose current slice began in the future. If the current slice began in
/// the future, the filter would expire new items at once, because new items would lie before its
/// window.
///
/// # Errors
///
/// A message if the time in the filter is later than the system time.
pub fn check_clock<B: Bits<Word = u64>>(filter: &AnyFilter<B>, name: &str) -> Result<(), Failure> {
    match clock_lead(filter) {
        Some(lead) => Err(Failure::new(format!("{name}: {lead}"))),
        None => Ok(()),
    }
}

/// Returns a message if the current slice of a window filter began in the future.
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
