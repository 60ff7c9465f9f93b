//! A position in the change stream of a leader.

use std::fmt;
use std::str::FromStr;

/// A position in the change stream of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPosition {
    /// A random number that each start of a leader generates. Positions of two epochs are not comparable.
    pub epoch: u64,
    /// The number of changes before the position. A new generation counts as one change.
    pub number: u64,
}

/// Formats the epoch as 16 hexadecimal digits and the number in decimal: `00000000000000a1-42`.
impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.epoch, self.number)
    }
}

/// The error for a text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAPosition;

impl FromStr for FeedPosition {
    type Err = NotAPosition;

    fn from_str(text: &str) -> Result<Self, NotAPosition> {
        let (epoch, number) = text.split_once('-').ok_or(NotAPosition)?;
        let position = Self {
            epoch: u64::from_str_radix(epoch, 16).map_err(|_| NotAPosition)?,
            number: number.parse().map_err(|_| NotAPosition)?,
        };
        // A position has exactly one text form, because the text is also an ETag.
        if position.to_string() == text { Ok(position) } else { Err(NotAPosition) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_has_one_text() {
        let position = FeedPosition { epoch: 0xa1, number: 42 };
        assert_eq!(position.to_string(), "00000000000000a1-42");
        assert_eq!("00000000000000a1-42".parse(), Ok(position));
        for text in ["", "-", "a1-42", "00000000000000A1-42", "00000000000000a1-042"] {
            assert_eq!(text.parse::<FeedPosition>(), Err(NotAPosition), "{text}");
        }
        let last = FeedPosition { epoch: u64::MAX, number: u64::MAX };
        assert_eq!(last.to_string().parse(), Ok(last));
    }
}
