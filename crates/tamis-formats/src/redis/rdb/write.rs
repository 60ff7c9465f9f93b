//! Writes snapshots of strings and hashes.

use std::io;

use crate::redis::rdb::opcode;
use crate::redis::rdb_encoding::crc64::crc64;
use crate::redis::rdb_encoding::{RdbWriter, value_type};

/// A value of a snapshot that [`write_snapshot`] writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotValue {
    /// A string.
    String(Vec<u8>),
    /// A hash, as pairs of field and value.
    Hash(Vec<(&'static str, String)>),
}

/// Writes a snapshot with the given keys in database 0. Every Redis since version 5 can load the snapshot. The whole
/// snapshot is built in memory before the first write.
///
/// # Errors
///
/// The error of `out`, if the write fails.
///
/// # Examples
///
/// ```
/// use tamis_formats::{Rdb, SnapshotValue, write_snapshot};
///
/// let mut bytes = Vec::new();
/// write_snapshot([(b"a".to_vec(), SnapshotValue::String(b"1".to_vec()))], &mut bytes)?;
/// assert_eq!(Rdb::new(&bytes)?.entries().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_snapshot(
    values: impl IntoIterator<Item = (Vec<u8>, SnapshotValue)>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut to = RdbWriter::default();
    to.raw(format!("REDIS{WRITTEN_VERSION:04}").as_bytes());
    to.raw(&[opcode::SELECT_DATABASE]);
    to.length(0);
    for (key, value) in values {
        match value {
            SnapshotValue::String(bytes) => {
                to.raw(&[value_type::STRING]);
                to.bytes(&key);
                to.bytes(&bytes);
            }
            SnapshotValue::Hash(fields) => {
                to.raw(&[value_type::HASH]);
                to.bytes(&key);
                to.length(fields.len() as u64);
                for (field, value) in fields {
                    to.bytes(field.as_bytes());
                    to.bytes(value.as_bytes());
                }
            }
        }
    }
    to.raw(&[opcode::END]);
    let bytes = to.into_bytes();
    out.write_all(&bytes)?;
    out.write_all(&crc64(&bytes).to_le_bytes())
}

/// The RDB version in written snapshots: the version of Redis 5, which all later servers read.
const WRITTEN_VERSION: u32 = 9;
