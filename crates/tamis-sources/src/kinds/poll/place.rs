//! The position at which the polls continue after the source has loaded the snapshot of a polled database.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::kinds::poll::column_value::ColumnValue;

/// The position at which the polls continue after the source has loaded a snapshot.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    /// The identity of the database.
    pub(super) database: String,
    pub(super) schema: String,
    /// The smallest value of the change column for rows that were committed after the snapshot.
    pub(super) bound: ColumnValue,
    /// The time at which a full read is due.
    pub(super) ends: SystemTime,
}

impl Place {
    pub(super) fn encode(&self) -> Vec<u8> {
        let ends = self.ends.duration_since(UNIX_EPOCH).unwrap_or_default();
        let place = json!({
            "database": self.database,
            "schema": self.schema,
            "bound": self.bound.encode(),
            "ends": ends.as_secs(),
        });
        place.to_string().into_bytes()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let place: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| place.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            database: text("database")?,
            schema: text("schema")?,
            bound: ColumnValue::decode(place.get("bound")?)?,
            ends: UNIX_EPOCH.checked_add(Duration::from_secs(place.get("ends")?.as_u64()?))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place {
            database: "1:2 \"a\"".to_owned(),
            schema: "7".to_owned(),
            bound: ColumnValue::Text(b"2026-11-25\xff".to_vec()),
            ends: UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        };
        let bytes = place.encode();
        assert_eq!(Place::decode(&bytes), Some(place));
        assert!((0..bytes.len()).all(|end| Place::decode(&bytes[..end]).is_none()));
    }
}
