//! Positions in the binary log, and their encoding in snapshots.

use crate::source::follow::LogPosition;
use serde_json::{Value, json};

/// A position in the binary log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) file: Vec<u8>,
    pub(super) offset: u64,
}

impl LogPosition for Position {
    /// Tests whether this position is at or after another position of the same server. The numbers in the file names
    /// increase.
    fn has_reached(&self, other: &Self) -> bool {
        let number = |file: &[u8]| -> u64 {
            let digits = file.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
            std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        (number(&self.file), self.offset) >= (number(&other.file), other.offset)
    }
}

impl Position {
    /// Returns the number of log bytes between this position and a later position. Returns `None` if the positions are
    /// in different files.
    pub(super) fn bytes_to(&self, end: &Self) -> Option<u64> {
        match self.has_reached(end) {
            true => Some(0),
            false => (self.file == end.file).then(|| end.offset - self.offset),
        }
    }
}

/// The end of a transaction in the log of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// The identity of the server.
    pub(super) server: String,
    /// The time at which the server created the file, in seconds since 1970. The value is `None` until the stream
    /// reports the time. After `RESET MASTER`, a server reuses the names of its log files.
    pub(super) created: Option<u32>,
    pub(super) position: Position,
}

impl LogPlace {
    /// Encodes the position for a snapshot. Returns `None` if the creation time of the log file is unknown.
    pub(super) fn encode(&self, shape: &str) -> Option<Vec<u8>> {
        let place = json!({
            "server": self.server,
            "created": self.created?,
            "file": std::str::from_utf8(&self.position.file).ok()?,
            "offset": self.position.offset,
            "table": shape,
        });
        Some(place.to_string().into_bytes())
    }

    /// Decodes a position that `encode` has written, and the columns of the table.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, String)> {
        let place: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| place.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| place.get(name)?.as_u64();
        let position = Position { file: text("file")?.into_bytes(), offset: number("offset")? };
        let created = u32::try_from(number("created")?).ok();
        Some((Self { server: text("server")?, created, position }, text("table")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_between_places_of_one_file_are_known() {
        let at = |file: &str, offset| Position { file: file.as_bytes().to_vec(), offset };
        assert_eq!(at("log.000009", 100).bytes_to(&at("log.000009", 150)), Some(50));
        assert_eq!(at("log.000009", 150).bytes_to(&at("log.000009", 150)), Some(0));
        assert_eq!(at("log.000010", 4).bytes_to(&at("log.000009", 150)), Some(0));
        assert_eq!(at("log.000009", 100).bytes_to(&at("log.000010", 4)), None);
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let position = Position { file: b"binlog.000007".to_vec(), offset: 1 << 33 };
        let mut place = LogPlace { server: "1 \"db\" 3306".to_owned(), created: Some(7), position };
        let bytes = place.encode("[id]").unwrap();
        assert_eq!(LogPlace::decode(&bytes), Some((place.clone(), "[id]".to_owned())));
        for end in 0..bytes.len() {
            assert_eq!(LogPlace::decode(&bytes[..end]), None);
        }
        assert_eq!(LogPlace::decode(b"[]"), None);
        place.created = None;
        assert_eq!(place.encode(""), None);
    }
}
