//! The encoding of a change in the log.

use crate::persistence::log::frame::{get_bytes, get_u64, put_bytes, put_u64};

/// A change in the form that the log stores. The record contains all parameters of the change, so a
/// replay reads no option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    /// A command that changed a value, and the time at which the command ran.
    Command { now_millis: u64, argv: Vec<&'a [u8]> },
    /// The hashes of items that were new to a Bloom filter. Inserting the hashes again changes
    /// nothing.
    Inserted { now_millis: u64, key: &'a [u8], hashes: Vec<u64> },
    /// A whole value in serialized form, and the expiry time of its key.
    Value { key: &'a [u8], expires_millis: Option<u64>, serialization: &'a [u8] },
}

/// The first byte of a record.
mod tag {
    pub const COMMAND: u8 = 1;
    pub const INSERTED: u8 = 2;
    pub const VALUE: u8 = 3;
}

impl<'a> Record<'a> {
    /// Encodes the record and appends the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Record::Command { now_millis, argv } => {
                out.push(tag::COMMAND);
                put_u64(out, *now_millis);
                put_u64(out, argv.len() as u64);
                argv.iter().for_each(|word| put_bytes(out, word));
            }
            Record::Inserted { now_millis, key, hashes } => {
                out.push(tag::INSERTED);
                put_u64(out, *now_millis);
                put_bytes(out, key);
                put_u64(out, hashes.len() as u64);
                hashes.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
            }
            Record::Value { key, expires_millis, serialization } => {
                out.push(tag::VALUE);
                put_bytes(out, key);
                put_u64(out, expires_millis.map_or(0, |at| at.saturating_add(1)));
                put_bytes(out, serialization);
            }
        }
    }

    /// Decodes a record. Advances `bytes` past the record. Returns `None` if `bytes` does not start
    /// with a record.
    pub fn decode(bytes: &mut &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(match kind {
            tag::COMMAND => {
                let now_millis = get_u64(bytes)?;
                let len = get_u64(bytes)?;
                // An argument takes at least one byte in the log.
                let fits = usize::try_from(len).ok().filter(|&len| len > 0 && len <= bytes.len());
                let mut argv = Vec::with_capacity(fits?.min(1 << 10));
                for _ in 0..len {
                    argv.push(get_bytes(bytes)?);
                }
                Record::Command { now_millis, argv }
            }
            tag::INSERTED => {
                let (now_millis, key) = (get_u64(bytes)?, get_bytes(bytes)?);
                let len = usize::try_from(get_u64(bytes)?).ok()?.checked_mul(8)?;
                let (hashes, rest) = bytes.split_at_checked(len)?;
                *bytes = rest;
                let (hashes, _) = hashes.as_chunks::<8>();
                let hashes = hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
                Record::Inserted { now_millis, key, hashes }
            }
            tag::VALUE => {
                let (key, expires) = (get_bytes(bytes)?, get_u64(bytes)?);
                let serialization = get_bytes(bytes)?;
                Record::Value { key, expires_millis: expires.checked_sub(1), serialization }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_decoded_and_truncated_ones_are_not() {
        let records = [
            Record::Command { now_millis: 7, argv: vec![b"BF.ADD", b"k", b""] },
            Record::Inserted { now_millis: 1 << 60, key: b"", hashes: vec![1, u64::MAX] },
            Record::Value { key: b"k", expires_millis: Some(5), serialization: &[9; 300] },
            Record::Value { key: b"k", expires_millis: None, serialization: b"" },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(Record::decode(&mut rest), Some(record));
            assert!(rest.is_empty());
            for len in 0..bytes.len() {
                assert_eq!(Record::decode(&mut &bytes[..len]), None);
            }
        }
    }
}
