//! The header at the start of every log and snapshot.
//!
//! ```text
//! | magic: 8 bytes | version: u32 | position: u64 | check: u32 | secret: u64 | its check: u32 |
//! ```
//!
//! The first check is the XXH3-64 hash of the 20 bytes before the check, truncated to 32 bits. With
//! the first check, a reader can distinguish a file of a later version from a damaged file.
//!
//! The secret is random and not 0. The secret is the seed of all checks after the header. A client
//! does not know the secret, so bytes that a client chose never look like a part of the file to a
//! repair.

use std::io;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The length of a header, in bytes.
pub(super) const BYTES: usize = SECRET_AT + FIELD_BYTES;
/// The offset of the position in a header.
const POSITION_AT: usize = 12;
const CHECK_AT: usize = POSITION_AT + 8;
const SECRET_AT: usize = CHECK_AT + 4;

/// A type of file: its magic and its version.
#[derive(Debug)]
pub(super) struct Kind {
    pub magic: &'static [u8; 8],
    pub version: u32,
}

/// The content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileHeader {
    /// The header is valid and has the version in [`Kind`].
    Valid { position: u64, secret: u64 },
    /// The header is valid and has a version other than the version in [`Kind`].
    OtherVersion,
    /// The header is damaged, or the file is not of the expected type. The position is read from
    /// its usual offset. The secret is 0 if the check of the secret is wrong.
    Damaged { position: u64, secret: u64 },
}

/// Encodes a header.
pub(super) fn encode(kind: &Kind, position: u64, secret: u64) -> Vec<u8> {
    let mut header = kind.magic.to_vec();
    header.extend(kind.version.to_le_bytes());
    header.extend(position.to_le_bytes());
    header.extend(check_of(&header));
    header.extend(field(secret, SECRET_SEED));
    header
}

/// Reads a header from the first bytes of a file.
pub(super) fn parse(bytes: &[u8], kind: &Kind) -> FileHeader {
    let Some((fixed, rest)) = bytes.split_first_chunk::<SECRET_AT>() else {
        return FileHeader::Damaged { position: 0, secret: 0 };
    };
    let position = &fixed[POSITION_AT..CHECK_AT];
    let position = u64::from_le_bytes(position.try_into().expect("eight bytes"));
    let version = u32::from_le_bytes(fixed[8..POSITION_AT].try_into().expect("four bytes"));
    let is_whole = fixed[CHECK_AT..] == check_of(&fixed[..CHECK_AT]) && fixed[..8] == *kind.magic;
    let secret = rest.get(..FIELD_BYTES).and_then(|bytes| parse_field(bytes, SECRET_SEED));
    match secret {
        Some(secret) if is_whole && version == kind.version => {
            FileHeader::Valid { position, secret }
        }
        _ if is_whole && version != kind.version => FileHeader::OtherVersion,
        _ => FileHeader::Damaged { position, secret: secret.unwrap_or(0) },
    }
}

fn check_of(bytes: &[u8]) -> [u8; 4] {
    (xxh3_64_with_seed(bytes, 0) as u32).to_le_bytes()
}

/// Returns a random secret that is not 0.
///
/// # Errors
///
/// Returns an error if the system provides no random numbers.
pub(super) fn new_secret() -> io::Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| io::Error::other(format!("the system gives no random number: {error}")))?;
    Ok(u64::from_le_bytes(bytes).max(1))
}

/// The length of a number with its own check, in bytes.
pub(super) const FIELD_BYTES: usize = 12;
/// The seed for the check of a secret.
const SECRET_SEED: u64 = 1;

/// Encodes a number with its check. The check is the XXH3-64 hash of the eight bytes of the number,
/// truncated to 32 bits.
pub(super) fn field(number: u64, seed: u64) -> [u8; FIELD_BYTES] {
    let mut field = [0; FIELD_BYTES];
    field[..8].copy_from_slice(&number.to_le_bytes());
    let check = xxh3_64_with_seed(&field[..8], seed) as u32;
    field[8..].copy_from_slice(&check.to_le_bytes());
    field
}

/// Reads a number with its check. Returns `None` if the check is wrong.
pub(super) fn parse_field(bytes: &[u8], seed: u64) -> Option<u64> {
    let number = u64::from_le_bytes(*bytes.first_chunk()?);
    (bytes == field(number, seed)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { magic: b"TAMISLOG", version: 1 };

    #[test]
    fn a_flipped_bit_is_damage_and_never_another_version() {
        let header = encode(&KIND, 77, 99);
        assert_eq!(header.len(), BYTES);
        assert_eq!(parse(&header, &KIND), FileHeader::Valid { position: 77, secret: 99 });
        let later = Kind { version: 2, ..KIND };
        assert_eq!(parse(&header, &later), FileHeader::OtherVersion);
        for bit in 0..header.len() * 8 {
            let mut flipped = header.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let parsed = parse(&flipped, &KIND);
            assert!(matches!(parsed, FileHeader::Damaged { .. }), "bit {bit}");
        }
        for len in 0..header.len() {
            let parsed = parse(&header[..len], &KIND);
            assert!(matches!(parsed, FileHeader::Damaged { .. }), "{len} bytes");
        }
    }
}
