//! Predicts when a filter reaches its limit.

use std::fmt;

use tamis_formats::FilterInfo;

/// The time at which a filter reaches its limit at the current rate of inserts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forecast {
    /// The rate of the filter exceeds the planned rate.
    Over,
    /// The filter accepts no more items.
    Full,
    /// The filter has no limit, because the filter grows or removes old items.
    NoLimit {
        /// The growth in bytes per day, if the filter grows.
        bytes_per_day: Option<f64>,
    },
    /// The server has not yet counted inserts for long enough to know the rate of inserts.
    Unknown,
    /// The number of items does not increase: no new items arrive, or the filter removes at least
    /// as many items as arrive.
    NotGrowing,
    /// The rate of the filter will exceed the planned rate after the given number of days.
    OverInDays(f64),
    /// The filter will be full and reject inserts after the given number of days.
    FullInDays(f64),
}

const SECONDS_PER_DAY: f64 = 86_400.0;

impl Forecast {
    /// Predicts when a filter reaches its limit if `items_per_second` new items per second continue
    /// to arrive.
    #[must_use]
    pub fn of(info: &FilterInfo, items_per_second: Option<f64>) -> Self {
        match (info.headroom_items, items_per_second) {
            _ if info.is_full() => Forecast::Full,
            _ if info.is_over_rate => Forecast::Over,
            (None, pace) => {
                let pace = pace.filter(|pace| *pace > 0.0);
                let growth = info.bytes_per_new_item.zip(pace);
                Forecast::NoLimit {
                    bytes_per_day: growth.map(|(bytes, pace)| bytes * pace * SECONDS_PER_DAY),
                }
            }
            (_, None) => Forecast::Unknown,
            (Some(_), Some(pace)) if pace <= 0.0 => Forecast::NotGrowing,
            (Some(items), Some(pace)) => {
                let days = items as f64 / pace / SECONDS_PER_DAY;
                if info.refuses { Forecast::FullInDays(days) } else { Forecast::OverInDays(days) }
            }
        }
    }

    /// Returns the number of days until the filter reaches its limit; 0 at or above the limit.
    /// Returns `None` for [`NoLimit`](Self::NoLimit), [`Unknown`](Self::Unknown) and
    /// [`NotGrowing`](Self::NotGrowing).
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
                return f.write_str("not over target at the present rate of adds");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_follow_from_headroom_and_pace() {
        let bounded = FilterInfo { headroom_items: Some(1_000_000), ..FilterInfo::default() };
        let endless = FilterInfo { headroom_items: None, ..bounded.clone() };
        let growing = FilterInfo { bytes_per_new_item: Some(2.0), ..endless.clone() };
        let full = FilterInfo { headroom_items: Some(0), refuses: true, ..bounded.clone() };
        let over = FilterInfo { is_over_rate: true, ..bounded.clone() };
        let no_limit = |bytes_per_day| Forecast::NoLimit { bytes_per_day };
        for (info, pace, forecast) in [
            (&bounded, None, Forecast::Unknown),
            (&bounded, Some(0.0), Forecast::NotGrowing),
            (&bounded, Some(-3.0), Forecast::NotGrowing),
            (&bounded, Some(10.0), Forecast::OverInDays(1e6 / 864_000.0)),
            (&growing, None, no_limit(None)),
            (&growing, Some(1.0), no_limit(Some(172_800.0))),
            (&endless, Some(1e9), no_limit(None)),
            (&full, None, Forecast::Full),
            (&full, Some(0.0), Forecast::Full),
            (&over, Some(1.0), Forecast::Over),
        ] {
            assert_eq!(Forecast::of(info, pace), forecast, "{pace:?}");
        }
        for (pace, text) in [
            (1.0, "over target in 11.6 days at the present rate of adds"),
            (100.0, "over target in 2.8 hours at the present rate of adds"),
            (1e5, "over target in 1 minutes at the present rate of adds"),
            (1e-6, "over target in more than 100 years at the present rate of adds"),
        ] {
            assert_eq!(Forecast::of(&bounded, Some(pace)).to_string(), text);
        }
    }
}
