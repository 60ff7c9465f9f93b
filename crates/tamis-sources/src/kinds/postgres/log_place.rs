//! Positions in the log of a server, and their encoding in snapshots.

use serde_json::{Value, json};

use crate::kinds::postgres::definition::{Definition, Versions};
use crate::kinds::postgres::lsn::Lsn;

/// A position in the log of a server. All transactions that end before the position are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPlace {
    /// The system identifier of the server and its timeline. A promoted standby has a new timeline.
    pub(super) server: String,
    /// The definition of the table at the start of the stream.
    pub(super) definition: Definition,
    /// The catalog versions of the relations at the last query.
    pub(super) versions: Versions,
    pub(super) position: Lsn,
}

impl LogPlace {
    /// Encodes the position for a snapshot.
    pub(super) fn encode(&self) -> Vec<u8> {
        let place = json!({
            "server": self.server,
            "table": self.definition.0,
            "versions": self.versions.0,
            "position": self.position.to_string(),
        });
        place.to_string().into_bytes()
    }

    /// Decodes a position that `encode` has written.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let place: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| place.get(name)?.as_str();
        Some(Self {
            server: text("server")?.to_owned(),
            definition: Definition(place.get("table")?.as_i64()?),
            versions: Versions(place.get("versions")?.as_i64()?),
            position: text("position")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let (definition, versions) = (Definition(-7), Versions(i64::MIN));
        let place =
            LogPlace { server: "1/2".to_owned(), definition, versions, position: Lsn(1 << 33) };
        let bytes = place.encode();
        assert_eq!(LogPlace::decode(&bytes), Some(place));
        for end in 0..bytes.len() {
            assert_eq!(LogPlace::decode(&bytes[..end]), None);
        }
        assert_eq!(LogPlace::decode(b"[]"), None);
    }
}
