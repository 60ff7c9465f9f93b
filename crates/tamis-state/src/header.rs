//! The header of a state file: version, width of the digests, description of the items, and hasher.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

use tamis::Hasher;

use crate::error::StateError;
use crate::synced::{self, SYNCED_AT, SYNCED_BYTES};

const MAGIC: [u8; 8] = *b"TAMISEEN";
/// The version of the format.
const VERSION: u8 = 1;
/// The number of bytes of magic, version, width, length of the description, and four zeros.
const FIXED_BYTES: usize = 16;
const _: () = assert!(SYNCED_AT == FIXED_BYTES as u64);
/// The offset of the description, which follows the synced length.
const TEXT_AT: usize = FIXED_BYTES + SYNCED_BYTES;
/// The number of bytes of the hash function number, and of its seed or key.
const HASHER_BYTES: usize = 17;
const CHECKSUM_BYTES: usize = 8;

/// The requirements of a caller on a state file.
#[derive(Clone, Copy, Debug)]
pub struct Requirements<'a> {
    /// The description of the items from which the digests are computed, at most 65,535 bytes. An
    /// existing file must have the same description.
    pub description: &'a str,
    /// The hasher of a new file.
    pub hasher: Hasher,
    /// If true, an existing file must have this hasher.
    pub is_hasher_fixed: bool,
    /// The width of the digests of a new file: 64 or 128 bits.
    pub width_bits: u32,
    /// If true, an existing file must have this width.
    pub is_width_fixed: bool,
}

impl Requirements<'_> {
    /// Returns the bytes of a new file at `path`. The function creates no file: a program that
    /// creates the file itself uses this function.
    ///
    /// A file that is shorter than these bytes counts as damaged. The program must therefore write
    /// and sync the bytes before the file has its name.
    ///
    /// # Errors
    ///
    /// [`StateError::DescriptionTooLong`] if the description exceeds 65,535 bytes.
    ///
    /// # Panics
    ///
    /// Panics if the width is not 64 or 128 bits.
    pub fn new_file(&self, path: &Path) -> Result<Vec<u8>, StateError> {
        let len_bytes = self.description.len();
        let len = u16::try_from(len_bytes).map_err(|_| StateError::DescriptionTooLong {
            path: path.into(),
            len_bytes,
            max_bytes: usize::from(u16::MAX),
        })?;
        assert!(matches!(self.width_bits, 64 | 128), "a digest has 64 or 128 bits");
        let header = StateHeader {
            width_bytes: (self.width_bits / 8) as u8,
            description: self.description.into(),
            hasher: self.hasher,
        };
        Ok(header.to_bytes(len))
    }
}

/// The fields of the header, except the synced length.
pub(crate) struct StateHeader {
    pub(crate) width_bytes: u8,
    pub(crate) description: String,
    pub(crate) hasher: Hasher,
}

/// Returns the checksum of a header. The checksum covers all bytes except the synced length,
/// because the synced length changes.
fn checksum(header: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let fixed = [&header[..FIXED_BYTES], &header[TEXT_AT..]].concat();
    Hasher::xxh3(0).hash(&fixed).to_le_bytes()
}

impl StateHeader {
    /// Encodes the header of a file without blocks. The length of the description is `len`.
    fn to_bytes(&self, len: u16) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, self.width_bytes]);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.resize(TEXT_AT, 0);
        bytes.extend_from_slice(self.description.as_bytes());
        let (function, key) = self.hasher.to_parts();
        bytes.push(function);
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(&checksum(&bytes));
        let len_bytes = bytes.len() as u64;
        bytes[FIXED_BYTES..TEXT_AT].copy_from_slice(&synced::encode(len_bytes));
        bytes
    }

    /// Returns the width of the digests in bits.
    pub(crate) fn width_bits(&self) -> u32 {
        u32::from(self.width_bytes) * 8
    }

    /// Reads the header of an existing file. Returns the header, the offset of the first block, and
    /// the synced length.
    pub(crate) fn read(mut file: &File, path: &Path) -> Result<(Self, u64, u64), StateError> {
        let failure = StateError::io(path);
        file.rewind().map_err(failure)?;
        let mut found = Vec::with_capacity(TEXT_AT);
        file.take(TEXT_AT as u64).read_to_end(&mut found).map_err(failure)?;
        let known = found.len().min(MAGIC.len());
        if found[..known] != MAGIC[..known] {
            return Err(StateError::NotAState { path: path.into() });
        }
        if found.len() < TEXT_AT {
            return Err(StateError::truncated(path, found.len() as u64));
        }
        let (version, width_bytes) = (found[8], found[9]);
        if version != VERSION {
            let path = path.into();
            return Err(StateError::Version { path, found: version, expected: VERSION });
        }
        let text_end = TEXT_AT + usize::from(u16::from_le_bytes([found[10], found[11]]));
        let end = text_end + HASHER_BYTES;
        let rest = (end + CHECKSUM_BYTES - TEXT_AT) as u64;
        file.take(rest).read_to_end(&mut found).map_err(failure)?;
        if found.len() < end + CHECKSUM_BYTES {
            return Err(StateError::truncated(path, found.len() as u64));
        }
        let (head, found_checksum) = found.split_at(end);
        if found_checksum != checksum(head) || !matches!(width_bytes, 8 | 16) {
            return Err(StateError::damaged(path, 0));
        }
        let synced = synced::decode(&found[FIXED_BYTES..TEXT_AT]);
        let synced = synced.ok_or_else(|| StateError::damaged(path, FIXED_BYTES as u64))?;
        let description = String::from_utf8_lossy(&head[TEXT_AT..text_end]).into_owned();
        let key = head[text_end + 1..].try_into().expect("HASHER_BYTES follow the text");
        let hasher = Hasher::from_parts(head[text_end], key);
        let hasher = hasher.ok_or_else(|| StateError::damaged(path, text_end as u64))?;
        Ok((Self { width_bytes, description, hasher }, found.len() as u64, synced))
    }

    /// Rejects a state whose digests were computed with other options.
    pub(crate) fn check(&self, path: &Path, wanted: &Requirements<'_>) -> Result<(), StateError> {
        let path = || path.to_path_buf();
        if self.description != wanted.description {
            let (found, expected) = (self.description.clone(), wanted.description.into());
            return Err(StateError::Description { path: path(), found, expected });
        }
        if wanted.is_hasher_fixed && self.hasher != wanted.hasher {
            let (found, expected) = (self.hasher, wanted.hasher);
            return Err(StateError::Hasher { path: path(), found, expected });
        }
        let (found_bits, expected_bits) = (self.width_bits(), wanted.width_bits);
        if wanted.is_width_fixed && found_bits != expected_bits {
            return Err(StateError::Width { path: path(), found_bits, expected_bits });
        }
        Ok(())
    }
}
