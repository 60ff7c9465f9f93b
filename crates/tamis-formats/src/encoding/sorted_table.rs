//! Finds the filter block in a whole table file of LevelDB (`.ldb`) or RocksDB (`.sst`). Layouts:
//! `docs/formats/leveldb.md` and `docs/formats/rocksdb.md`.

use crc_fast::{CrcAlgorithm, Digest};
use xxhash_rust::xxh3::xxh3_64;

use crate::encoding::reader::ByteReader;
use crate::errors::{DecodeError, DecodeErrorKind};

/// Tests whether `bytes` are a whole table of LevelDB or RocksDB. A table contains data and a filter.
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
/// The size of the two block positions in the footer, including the padding.
const HANDLES_BYTES: usize = 40;

impl TableKind {
    /// Returns the kind of a whole table. The magic number at the end of a table shows which program wrote the table.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.last_chunk::<MAGIC_BYTES>()? {
            b"\x57\xfb\x80\x8b\x24\x75\x47\xdb" => Some(TableKind::LevelDb),
            b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88" => Some(TableKind::RocksDb),
            _ => None,
        }
    }

    /// Returns the start of the name of a readable filter block.
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
    /// [`DecodeError`] if the table is damaged or has no filter that can be read.
    pub(crate) fn filter_block(self, bytes: &[u8]) -> Result<&[u8], DecodeError> {
        let (metaindex, checksums) = self.footer(bytes)?;
        let metaindex = block(bytes, "metaindex", metaindex, checksums)?;
        let (mut found, mut other, mut properties) = (None, None, None);
        each_entry(metaindex, |name, value| {
            if name.starts_with(self.filter_name()) {
                found = Some(value.to_vec());
            } else if name == b"rocksdb.properties" {
                properties = Some(value.to_vec());
            } else if other.is_none() && name.windows(6).any(|part| part == b"filter") {
                other = Some(String::from_utf8_lossy(name).into_owned());
            }
        })?;
        let refused = |why: String| DecodeError::refused("filter block", 0, why);
        let Some(handle) = found else {
            let why = if let Some(other) = other {
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
            return Err(refused(why));
        };
        if let Some(handle) = properties {
            let handle = handle_of(&mut ByteReader::new(&handle))?;
            let mut has_keys = true;
            each_entry(block(bytes, "properties", handle, checksums)?, |name, value| {
                has_keys &= name != WHOLE_KEYS || value != b"0";
            })?;
            if !has_keys {
                let why = "has the prefixes of keys and not the keys: write the table with \
                           whole_key_filtering = true";
                return Err(refused(why.into()));
            }
        }
        block(bytes, "filter block", handle_of(&mut ByteReader::new(&handle))?, checksums)
    }

    /// Returns the position and the length of the metaindex, and the checksums of the blocks. The metaindex is the
    /// block that lists the filters of the table.
    fn footer(self, bytes: &[u8]) -> Result<((u64, u64), Checksums), DecodeError> {
        let invalid = |reason| DecodeError::invalid("footer", bytes.len(), reason);
        let footer_bytes = match self {
            TableKind::LevelDb => HANDLES_BYTES + MAGIC_BYTES,
            // RocksDB stores the type of the checksums before the block positions, and the version after the block
            // positions.
            TableKind::RocksDb => 1 + HANDLES_BYTES + size_of::<u32>() + MAGIC_BYTES,
        };
        let at = bytes.len().checked_sub(footer_bytes).ok_or(invalid("whole"))?;
        let mut footer = ByteReader::new(&bytes[at..]);
        if self == TableKind::LevelDb {
            return Ok((handle_of(&mut footer)?, Checksums { kind: CRC32C, base: 0 }));
        }
        let kind = footer.u8("type of checksum")?;
        // Since version 6 of the RocksDB table format, the metaindex is directly before the footer.
        if footer.rest().starts_with(b"\x3e\x00\x7a\x00") {
            footer.bytes("start and checksum of the footer", 8)?;
            let base = footer.u32("base of the checksums")?;
            let len = u64::from(footer.u32("length of the metaindex")?);
            let end = at as u64;
            let start = end.checked_sub(len + BLOCK_TRAILER_BYTES as u64);
            let metaindex = (start.ok_or(invalid("behind its metaindex"))?, len);
            return Ok((metaindex, Checksums { kind, base }));
        }
        Ok((handle_of(&mut footer)?, Checksums { kind, base: 0 }))
    }
}

/// The RocksDB table property that is true if the filter contains whole keys.
const WHOLE_KEYS: &[u8] = b"rocksdb.block.based.table.whole.key.filtering";

/// The checksum types that Tamis verifies.
const CRC32C: u8 = 1;
const XXH3: u8 = 4;

/// How the checksums of the blocks are computed.
#[derive(Clone, Copy, Debug)]
struct Checksums {
    kind: u8,
    /// The base is not 0 if the checksum of a block depends on the position of the block.
    base: u32,
}

impl Checksums {
    /// Tests whether `checksum` is the checksum of a block at position `at` of the file. The checksum includes the type
    /// byte after the block. For a checksum type that Tamis does not verify, the result is always true.
    fn are_right(self, checksum: u32, at: u64, block: &[u8], type_byte: u8) -> bool {
        let expected = match self.kind {
            CRC32C => {
                let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
                digest.update(block);
                digest.update(&[type_byte]);
                (digest.finalize() as u32).rotate_right(15).wrapping_add(0xa282_ead8)
            }
            XXH3 => xxh3_64(block) as u32 ^ u32::from(type_byte).wrapping_mul(0x6b90_83d9),
            _ => return true,
        };
        let of_position = match self.base {
            0 => 0,
            base => base ^ (at as u32).wrapping_add((at >> 32) as u32),
        };
        checksum == expected.wrapping_add(of_position)
    }
}

/// The size of the compression type and the checksum after each block.
const BLOCK_TRAILER_BYTES: usize = 5;

/// Returns an uncompressed block whose checksum is correct.
fn block<'a>(
    bytes: &'a [u8],
    field: &'static str,
    (at, len): (u64, u64),
    checksums: Checksums,
) -> Result<&'a [u8], DecodeError> {
    let damaged = || DecodeError::invalid(field, bytes.len(), "inside of the table");
    let start = usize::try_from(at).map_err(|_| damaged())?;
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    let end = end.ok_or_else(damaged)?;
    let block = bytes.get(start..end).ok_or_else(damaged)?;
    let mut trailer = ByteReader::new(bytes.get(end..).ok_or_else(damaged)?);
    let type_byte = trailer.u8(field)?;
    if type_byte != 0 {
        let why = "is compressed: LevelDB and RocksDB never compress this block";
        return Err(DecodeError::refused(field, end, why));
    }
    if !checksums.are_right(trailer.u32("checksum of a block")?, at, block, type_byte) {
        return Err(DecodeError::new(field, start, DecodeErrorKind::Checksum));
    }
    Ok(block)
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

/// The longest accepted name of an entry. Names of filters and properties are much shorter than 1,024 bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Calls `visit` with each key and value of a block.
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
        // Without a limit on the length of a name, many small entries could each repeat a name of several megabytes.
        if shared.saturating_add(more) > MAX_NAME_BYTES {
            return Err(invalid("with names of at most 1,024 bytes"));
        }
        name.truncate(shared);
        name.extend_from_slice(reader.bytes("metaindex", more)?);
        visit(&name, reader.bytes("metaindex", len)?);
    }
    Ok(())
}
