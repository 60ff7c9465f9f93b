//! Predicts when a filter reaches its limit.

use std::fmt;

use crate::filter_status::fields::FilterStatus;

/// When a filter reaches its limit at the current rate of inserts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forecast {
    /// The rate of the filter exceeds the planned one.
    Over,
    /// The filter accepts no more items.
    Full,
    /// The filter has no limit, because it grows or forgets.
    NoLimit {
        /// The growth in bytes per day, if the filter grows.
        bytes_per_day: Option<f64>,
    },
    /// The inserts have not been counted for long enough.
    Unknown,
    /// The filter does not fill: it gets no new items, or no more than it removes.
    NotGrowing,
    /// The rate of the filter exceeds the planned one after this number of days.
    OverInDays(f64),
    /// The filter is full and rejects inserts after this number of days.
    FullInDays(f64),
}

const SECONDS_PER_DAY: f64 = 86_400.0;

impl FilterStatus {
    /// Predicts when the filter reaches its limit if it continues to get `items_per_second` new
    /// items per second.
    #[must_use]
    pub fn forecast(&self, items_per_second: Option<f64>) -> Forecast {
        match (self.headroom_items, items_per_second) {
            _ if self.is_full() => Forecast::Full,
            _ if self.is_over_rate => Forecast::Over,
            (None, pace) => Forecast::NoLimit {
                bytes_per_day: self
                    .bytes_per_new_item
                    .and_then(|bytes| Some(bytes * pace.filter(|it| *it > 0.0)? * SECONDS_PER_DAY)),
            },
            (_, None) => Forecast::Unknown,
            (Some(_), Some(pace)) if pace <= 0.0 => Forecast::NotGrowing,
            (Some(items), Some(pace)) => {
                let days = items as f64 / pace / SECONDS_PER_DAY;
                if self.refuses { Forecast::FullInDays(days) } else { Forecast::OverInDays(days) }
            }
        }
    }
}

impl Forecast {
    /// Returns the days until the limit, 0 at or above it. Returns `None` if the filter has no
    /// limit or does not approach it, or if the inserts have not been counted for long enough.
    #[must_use]
    pub fn days(self) -> Option<f64> {
        match self {
            Forecast::Over | Forecast::Full => Some(0.0),
            Forecast::OverInDays(days) | Forecast::FullInDays(days) => Some(days),
            Forecast::NoLimit { .. } | Forecast::Unknown | Forecast::NotGrowing => None,
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, days) = match *self {
            Forecast::Over => return f.write_str("over target"),
            Forecast::Full => return f.write_str("full: refuses adds"),
            Forecast::NoLimit { bytes_per_day: None } => {
                return f.write_str("no limit: it grows or forgets");
            }
            Forecast::NoLimit { bytes_per_day: Some(bytes) } => {
                return write!(
                    f,
                    "no limit: it grows by {bytes:.0} bytes a day at the present rate of adds"
                );
            }
            Forecast::Unknown => {
                return f.write_str("not known yet: adds are watched for a minute or two first");
            }
            Forecast::NotGrowing => {
                return f.write_str("not over target as long as no more items come than now");
            }
            Forecast::OverInDays(days) => ("over target", days),
            Forecast::FullInDays(days) => ("full", days),
        };
        let hours = days * 24.0;
        match days {
            _ if days > 36_525.0 => write!(f, "{what} in more than 100 years")?,
            _ if days >= 2.0 => write!(f, "{what} in {days:.1} days")?,
            _ if hours >= 2.0 => write!(f, "{what} in {hours:.1} hours")?,
            _ => write!(f, "{what} in {:.0} minutes", (hours * 60.0).ceil())?,
        }
        f.write_str(" at the present rate of adds")
    }
}
