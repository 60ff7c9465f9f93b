//! The header of a state file: version, width of the digests, description of the keys, and hasher.

use std::fs::File;
use std::io::{self, Seek};

use tamis::Hasher;

use crate::commands::dedup::state::log::{cut, damaged};
use crate::commands::dedup::state::synced::{self, SYNCED_AT, SYNCED_BYTES};
use crate::exit::Failure;
use crate::io::read::read_up_to;

pub(super) const MAGIC: [u8; 8] = *b"TAMISEEN";
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

/// The requirements of a run on its state.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The description of the keys and records from which the digests are computed.
    pub description: &'a str,
    /// The hasher of a new file.
    pub hasher: Hasher,
    /// If true, an existing file must have this hasher.
    pub is_hasher_fixed: bool,
    /// The width of the digests of a new file.
    pub width_bits: u32,
    /// If true, an existing file must have this width.
    pub is_width_fixed: bool,
}

/// The fields of the header, except the synced length.
pub(super) struct StateHeader {
    pub(super) width_bytes: u8,
    pub(super) description: String,
    pub(super) hasher: Hasher,
}

/// Returns the checksum of a header. The checksum covers all bytes except the synced length,
/// because the synced length changes.
fn checksum(header: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let fixed = [&header[..FIXED_BYTES], &header[TEXT_AT..]].concat();
    Hasher::xxh3(0).hash(&fixed).to_le_bytes()
}

impl StateHeader {
    /// Encodes the header of a file without blocks.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let len = u16::try_from(self.description.len()).unwrap_or(u16::MAX);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, self.width_bytes]);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.resize(TEXT_AT, 0);
        bytes.extend_from_slice(&self.description.as_bytes()[..usize::from(len)]);
        let (function, key) = self.hasher.to_parts();
        bytes.push(function);
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(&checksum(&bytes));
        let len_bytes = bytes.len() as u64;
        bytes[FIXED_BYTES..TEXT_AT].copy_from_slice(&synced::encode(len_bytes));
        bytes
    }

    /// Reads the header of an existing file. Returns the header, the offset of the first block, and
    /// the synced length.
    pub(super) fn read(file: &mut File, name: &str) -> Result<(Self, u64, u64), Failure> {
        let failure = |error: io::Error| Failure::io(name, &error);
        file.rewind().map_err(failure)?;
        let mut found = vec![0; TEXT_AT];
        let len = read_up_to(file, &mut found).map_err(failure)?;
        let known = len.min(MAGIC.len());
        if found[..known] != MAGIC[..known] {
            return Err(Failure::new(format!("{name}: is not a state file of 'tamis dedup'")));
        }
        if len < TEXT_AT {
            return Err(cut(name, len as u64));
        }
        let (version, width_bytes) = (found[8], found[9]);
        if version != VERSION {
            return Err(Failure::new(format!(
                "{name}: is a state of version {version}, and this program reads version \
                 {VERSION}; use another tamis, or another state"
            )));
        }
        let text_end = TEXT_AT + usize::from(u16::from_le_bytes([found[10], found[11]]));
        let end = text_end + HASHER_BYTES;
        found.resize(end + CHECKSUM_BYTES, 0);
        let rest = read_up_to(file, &mut found[TEXT_AT..]).map_err(failure)?;
        if TEXT_AT + rest < found.len() {
            return Err(cut(name, (TEXT_AT + rest) as u64));
        }
        let (head, found_checksum) = found.split_at(end);
        if found_checksum != checksum(head) || !matches!(width_bytes, 8 | 16) {
            return Err(damaged(name, 0));
        }
        let synced = synced::decode(&found[FIXED_BYTES..TEXT_AT]);
        let synced = synced.ok_or_else(|| damaged(name, FIXED_BYTES as u64))?;
        let description = String::from_utf8_lossy(&head[TEXT_AT..text_end]).into_owned();
        let key = head[text_end + 1..].try_into().expect("HASHER_BYTES follow the text");
        let hasher = Hasher::from_parts(head[text_end], key);
        let hasher = hasher.ok_or_else(|| damaged(name, text_end as u64))?;
        Ok((Self { width_bytes, description, hasher }, found.len() as u64, synced))
    }

    /// Rejects a state that a run with other options created.
    pub(super) fn check(&self, name: &str, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let (held, asked) = (&self.description, wanted.description);
        if held != asked {
            return Err(Failure::new(format!(
                "{name}: remembers '{held}', but this run asks for '{asked}'; use the same options \
                 or another state"
            )));
        }
        if wanted.is_hasher_fixed && self.hasher != wanted.hasher {
            return Err(Failure::new(format!(
                "{name}: hashes by {}, not by {}; leave out --seed or use another state",
                self.hasher, wanted.hasher
            )));
        }
        let width_bits = u32::from(self.width_bytes) * 8;
        if wanted.is_width_fixed && width_bits != wanted.width_bits {
            return Err(Failure::new(format!(
                "{name}: holds {width_bits}-bit hashes, not {}-bit ones; leave out --hash-bits \
                 or use another state",
                wanted.width_bits
            )));
        }
        Ok(())
    }
}
