//! The version and the date of a release.

use std::process::Command;

use crate::tools::root;

/// The version and the date of a release.
pub struct Release {
    pub version: String,
    /// The time of all files in the packages, in seconds since 1970.
    pub epoch: u64,
}

impl Release {
    /// Returns the version of this tree. The date is the variable `SOURCE_DATE_EPOCH`, or the date of the last commit.
    ///
    /// # Errors
    ///
    /// Returns the reason if neither the variable nor git gives a date.
    pub fn of_this_tree() -> Result<Self, String> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => parse_epoch(&text).ok_or_else(|| {
                format!(
                    "SOURCE_DATE_EPOCH={text}: give the seconds since 1970, up to the year 9999"
                )
            })?,
            Err(_) => {
                let mut git = Command::new("git");
                let output = git.args(["log", "-1", "--format=%ct"]).current_dir(root()).output();
                let output = output.map_err(|error| format!("git: {error}"))?;
                parse_epoch(&String::from_utf8_lossy(&output.stdout)).ok_or(
                    "this folder is no git repository: set SOURCE_DATE_EPOCH to the seconds since 1970",
                )?
            }
        };
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), epoch })
    }

    /// Returns the name of the files for this CPU, such as `tamis-0.1.0-x86_64-linux-gnu`.
    pub fn name(&self) -> String {
        format!("tamis-{}-{}-linux-gnu", self.version, std::env::consts::ARCH)
    }

    /// Returns the date in the format of RFC 3339, such as `2026-11-30T12:00:00Z`.
    pub fn date(&self) -> String {
        let (days, seconds) = (self.epoch / 86_400, self.epoch % 86_400);
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Sets `SOURCE_DATE_EPOCH` for a program that writes a package.
    pub fn configure(&self, command: &mut Command) {
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string());
    }
}

/// Converts days since 1970-01-01 to year, month and day.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(is_leap(year)) {
        rest -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while rest >= months[month] {
        rest -= months[month];
        month += 1;
    }
    (year, month as u64 + 1, rest + 1)
}

/// Parses a time in seconds since 1970. Returns `None` for a time after the year 9999, which has no date in the format of
/// RFC 3339.
fn parse_epoch(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&epoch| epoch < 253_402_300_800)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        let date = |epoch| Release { version: String::new(), epoch }.date();
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(parse_epoch("253402300799\n").map(date).unwrap(), "9999-12-31T23:59:59Z");
        for wrong in ["253402300800", "18446744073709551616", "-1", "", "today"] {
            assert_eq!(parse_epoch(wrong), None, "{wrong}");
        }
        assert_eq!(date(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(date(1_796_040_000), "2026-11-30T12:00:00Z");
    }
}
