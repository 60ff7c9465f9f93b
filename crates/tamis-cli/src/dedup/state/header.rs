//! The header of a state file: version, width of the digests, description of the keys, and hasher.

use std::fs::File;
use std::io::{self, Seek};

use tamis::{HashFunction, Hasher};

use crate::dedup::state::log::damaged;
use crate::exit::Failure;
use crate::read::read_up_to;

pub(super) const MAGIC: [u8; 8] = *b"TAMISEEN";
/// The version of new files. Version 1 has no field for the hasher. In version 1, the description
/// ends with the seed of XXH3.
const VERSION: u8 = 2;
/// The bytes of magic, version, width and length of the description.
pub(super) const FIXED_BYTES: usize = 12;
/// The bytes of the hash function number, and of its seed or key.
const HASHER_BYTES: usize = 17;
const CHECKSUM_BYTES: usize = 8;

/// The requirements of a run on its state.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// The description of the keys and records behind the digests.
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

/// The fields of the header.
pub(super) struct StateHeader {
    pub(super) width_bytes: u8,
    pub(super) description: String,
    pub(super) hasher: Hasher,
}

/// Returns the checksum of a header.
fn checksum(header: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Hasher::xxh3(0).hash(header).to_le_bytes()
}

impl StateHeader {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let len = u16::try_from(self.description.len()).unwrap_or(u16::MAX);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, self.width_bytes]);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&self.description.as_bytes()[..usize::from(len)]);
        let (function, key) = self.hasher.to_parts();
        bytes.push(function);
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(&checksum(&bytes));
        bytes
    }

    /// Reads the header of an existing file. Returns the header and the offset of the first block.
    pub(super) fn read(file: &mut File, name: &str) -> Result<(Self, u64), Failure> {
        let failure = |error: io::Error| Failure::io(name, &error);
        file.rewind().map_err(failure)?;
        let mut found = vec![0; FIXED_BYTES];
        if read_up_to(file, &mut found).map_err(failure)? < FIXED_BYTES || found[..8] != MAGIC {
            return Err(Failure::new(format!("{name}: is not a state file of 'tamis dedup'")));
        }
        let (version, width_bytes) = (found[8], found[9]);
        if !(1..=VERSION).contains(&version) {
            return Err(Failure::new(format!(
                "{name}: is a state of version {version}, and this program reads versions up to \
                 {VERSION}; use the newer tamis"
            )));
        }
        let text_end = FIXED_BYTES + usize::from(u16::from_le_bytes([found[10], found[11]]));
        let end = text_end + if version == 1 { 0 } else { HASHER_BYTES };
        found.resize(end + CHECKSUM_BYTES, 0);
        let rest = read_up_to(file, &mut found[FIXED_BYTES..]).map_err(failure)?;
        let (head, found_checksum) = found.split_at(end);
        let is_whole = FIXED_BYTES + rest == found.len();
        if !is_whole || found_checksum != checksum(head) {
            return Err(damaged(name, 0));
        }
        if !matches!(width_bytes, 8 | 16) {
            return Err(damaged(name, 9));
        }
        let mut description = String::from_utf8_lossy(&head[FIXED_BYTES..text_end]).into_owned();
        let hasher = if version == 1 {
            let seed = description
                .rsplit_once(", hash xxh3 seed ")
                .and_then(|(text, seed)| Some((text.to_owned(), seed.parse().ok()?)));
            let (text, seed) = seed.ok_or_else(|| damaged(name, FIXED_BYTES as u64))?;
            description = text;
            Hasher::xxh3(seed)
        } else {
            let key = head[text_end + 1..].try_into().expect("HASHER_BYTES follow the text");
            Hasher::from_parts(head[text_end], key).ok_or_else(|| damaged(name, text_end as u64))?
        };
        Ok((Self { width_bytes, description, hasher }, found.len() as u64))
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
        // Older releases hash with XXH3 and the seed.
        let is_same = self.hasher == wanted.hasher
            || self.hasher.function() == HashFunction::Xxh3
                && self.hasher.to_parts().1 == wanted.hasher.to_parts().1
                && !wanted.hasher.is_keyed();
        if wanted.is_hasher_fixed && !is_same {
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
