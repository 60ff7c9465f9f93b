//! Writes snapshots of strings and hashes.

use std::io;

use crate::rdb::opcode;
use crate::rdb_encoding::crc64::crc64;
use crate::rdb_encoding::{RdbWriter, value_type};

/// A value to be written.
pub(crate) enum Written {
    /// A string.
    String(Vec<u8>),
    /// A hash.
    Hash(Vec<(&'static str, String)>),
}

/// Writes a snapshot of database 0 that every Redis since 5 loads.
pub(crate) fn write(
    values: impl IntoIterator<Item = (Vec<u8>, Written)>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut to = RdbWriter::default();
    to.raw(format!("REDIS{WRITTEN_VERSION:04}").as_bytes());
    to.raw(&[opcode::SELECT_DATABASE]);
    to.length(0);
    for (key, value) in values {
        match value {
            Written::String(bytes) => {
                to.raw(&[value_type::STRING]);
                to.bytes(&key);
                to.bytes(&bytes);
            }
            Written::Hash(fields) => {
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

/// The RDB version that is written: that of Redis 5, which all later servers read.
const WRITTEN_VERSION: u32 = 9;
