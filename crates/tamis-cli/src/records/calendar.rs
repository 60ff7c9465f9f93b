//! Converts dates of the Gregorian calendar.

/// Returns the number of days from 1970-01-01 to a day. Returns `None` if the calendar does not
/// contain the day. The rules of the calendar also apply to the years before its introduction.
///
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`: years begin in March,
/// so that a leap day is the last day of a year.
pub fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let before = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(before + day_of_year - 719_468)
}
