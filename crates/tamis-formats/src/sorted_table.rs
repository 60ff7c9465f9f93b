//! Finds the filter block in a whole table of LevelDB (`.ldb`) or RocksDB (`.sst`). Layout:
//! `docs/formats/leveldb.md` and `docs/formats/rocksdb.md`.

use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::reader::ByteReader;

/// Tests whether `bytes` are a whole table of LevelDB or RocksDB, which holds more than its filter.
#[must_use]
pub fn is_sorted_table(bytes: &[u8]) -> bool {
    TableKind::of(bytes).is_some()
}

/// The program that wrote a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    LevelDb,
    RocksDb,
}

const MAGIC_BYTES: usize = size_of::<u64>();
/// The two positions of blocks in the footer, padded to the longest ones.
const HANDLES_BYTES: usize = 40;

impl TableKind {
    /// Returns the kind of a whole table, by the magic number at its end.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.last_chunk::<MAGIC_BYTES>()? {
            b"\x57\xfb\x80\x8b\x24\x75\x47\xdb" => Some(TableKind::LevelDb),
            b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88" => Some(TableKind::RocksDb),
            _ => None,
        }
    }

    /// Returns the start of the name of a filter block that is read.
    fn filter_name(self) -> &'static [u8] {
        match self {
            TableKind::LevelDb => b"filter.leveldb.BuiltinBloomFilter2",
            TableKind::RocksDb => b"fullfilter.",
        }
    }

    /// Returns the filter block of a table of this kind.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for a damaged table, and for a table without a filter that can be read.
    pub(crate) fn filter_block(self, bytes: &[u8]) -> Result<&[u8], DecodeError> {
        let metaindex = block(bytes, "metaindex", self.metaindex(bytes)?)?;
        let mut others = Vec::new();
        let mut found = None;
        each_entry(metaindex, |name, value| {
            if name.starts_with(self.filter_name()) {
                found = Some(value.to_vec());
            } else if name.windows(6).any(|part| part == b"filter") {
                others.push(String::from_utf8_lossy(name).into_owned());
            }
        })?;
        let Some(handle) = found else {
            let why = if let Some(other) = others.first() {
                format!(
                    "has the filter '{other}', which is not read: write the table with a Bloom \
                     filter of {}",
                    match self {
                        TableKind::LevelDb => "LevelDB (NewBloomFilterPolicy)",
                        TableKind::RocksDb => "the whole table (partition_filters = false)",
                    }
                )
            } else {
                "has no Bloom filter: write the table with one".into()
            };
            return Err(DecodeError::new(
                "filter block",
                0,
                DecodeErrorKind::Refused { why: why.into() },
            ));
        };
        block(bytes, "filter block", handle_of(&mut ByteReader::new(&handle))?)
    }

    /// Returns the position and the length of the metaindex, which lists the filters.
    fn metaindex(self, bytes: &[u8]) -> Result<(u64, u64), DecodeError> {
        let invalid = |reason| DecodeError::invalid("footer", bytes.len(), reason);
        let footer_bytes = match self {
            TableKind::LevelDb => HANDLES_BYTES + MAGIC_BYTES,
            // A type of checksum before the handles, and a version behind them.
            TableKind::RocksDb => 1 + HANDLES_BYTES + size_of::<u32>() + MAGIC_BYTES,
        };
        let at = bytes.len().checked_sub(footer_bytes).ok_or(invalid("whole"))?;
        let mut footer = ByteReader::new(&bytes[at..]);
        if self == TableKind::LevelDb {
            return handle_of(&mut footer);
        }
        footer.u8("type of checksum")?;
        // From version 6 on, the metaindex lies directly before the footer.
        if footer.rest().starts_with(b"\x3e\x00\x7a\x00") {
            footer.bytes("checksums", 12)?;
            let len = u64::from(footer.u32("length of the metaindex")?);
            let end = at as u64;
            let start = end.checked_sub(len + BLOCK_TRAILER_BYTES as u64);
            return Ok((start.ok_or(invalid("behind its metaindex"))?, len));
        }
        handle_of(&mut footer)
    }
}

/// The type of compression and the checksum behind each block.
const BLOCK_TRAILER_BYTES: usize = 5;

/// Returns an uncompressed block.
fn block<'a>(
    bytes: &'a [u8],
    field: &'static str,
    (at, len): (u64, u64),
) -> Result<&'a [u8], DecodeError> {
    let damaged = || DecodeError::invalid(field, bytes.len(), "inside of the table");
    let start = usize::try_from(at).map_err(|_| damaged())?;
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    let end = end.ok_or_else(damaged)?;
    let block = bytes.get(start..end).ok_or_else(damaged)?;
    match bytes.get(end) {
        Some(0) => Ok(block),
        _ => {
            let why = "is compressed, which LevelDB and RocksDB do with no filter";
            let kind = DecodeErrorKind::Refused { why: why.into() };
            Err(DecodeError::new(field, end, kind))
        }
    }
}

/// Reads the position and the length of a block.
fn handle_of(reader: &mut ByteReader<'_>) -> Result<(u64, u64), DecodeError> {
    Ok((varint(reader)?, varint(reader)?))
}

fn varint(reader: &mut ByteReader<'_>) -> Result<u64, DecodeError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = reader.u8("position of a block")?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DecodeError::invalid("position of a block", reader.at(), "at most ten bytes long"))
}

/// Visits the keys and values of a block.
fn each_entry(block: &[u8], mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), DecodeError> {
    let invalid = |reason| DecodeError::invalid("metaindex", 0, reason);
    let restarts = block.last_chunk().map_or(0, |&count| u32::from_le_bytes(count));
    let behind = (u64::from(restarts) + 1) * 4;
    let end = (block.len() as u64).checked_sub(behind).ok_or(invalid("whole"))?;
    let mut reader = ByteReader::new(&block[..end as usize]);
    let mut name = Vec::new();
    while !reader.is_empty() {
        let (shared, more, len) =
            (varint(&mut reader)?, varint(&mut reader)?, varint(&mut reader)?);
        let [shared, more, len] =
            [shared, more, len].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        if shared > name.len() {
            return Err(invalid("with names that begin as the one before"));
        }
        name.truncate(shared);
        name.extend_from_slice(reader.bytes("metaindex", more)?);
        visit(&name, reader.bytes("metaindex", len)?);
    }
    Ok(())
}
