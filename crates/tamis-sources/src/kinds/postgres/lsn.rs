//! Positions in the write-ahead log.

use std::fmt;
use std::str::FromStr;

use crate::source::follow::LogPosition;

/// A position in the write-ahead log, in bytes from the start of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lsn(pub(super) u64);

impl LogPosition for Lsn {
    fn has_reached(&self, other: &Self) -> bool {
        self >= other
    }
}

impl Lsn {
    /// Returns the end of the last record. `self` is the position at which the next record will begin.
    ///
    /// A page of the log begins with a header of 24 bytes, and a segment begins with a header of 40 bytes. The last
    /// record may end exactly at the end of a page. If the record ends at the end of a page, the server reports the
    /// position after the next header as the end of the log. A stream that has decoded the last record reports the
    /// position before the header.
    pub(super) fn end_of_record(self, page: u64, segment: u64) -> Self {
        let (in_page, in_segment) = (self.0 % page, self.0 % segment);
        let header = if in_segment < page { 40 } else { 24 };
        if in_page == header { Self(self.0 - header) } else { self }
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// The error for a text that is not a position.
#[derive(Debug)]
pub(super) struct NotAnLsn;

impl FromStr for Lsn {
    type Err = NotAnLsn;

    fn from_str(text: &str) -> Result<Self, NotAnLsn> {
        let (high, low) = text.split_once('/').ok_or(NotAnLsn)?;
        let half = |text| u32::from_str_radix(text, 16).map_err(|_| NotAnLsn);
        Ok(Self(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_the_server_writes_it() {
        let lsn: Lsn = "16/B374D848".parse().unwrap();
        assert_eq!((lsn.0, lsn.to_string()), (0x16_B374_D848, "16/B374D848".to_owned()));
        for wrong in ["", "16", "/", "x/1", "1/123456789", "1/2/3"] {
            assert!(wrong.parse::<Lsn>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_place_after_a_header_is_the_end_of_the_page_before() {
        let (page, segment) = (8192, 16 << 20);
        for (place, end) in [
            (segment + 40, segment),
            (segment + 24, segment + 24),
            (segment + page + 24, segment + page),
            (segment + page + 40, segment + page + 40),
            (segment + page + 48, segment + page + 48),
            (segment + page, segment + page),
        ] {
            assert_eq!(Lsn(place).end_of_record(page, segment), Lsn(end), "{place}");
        }
    }
}
