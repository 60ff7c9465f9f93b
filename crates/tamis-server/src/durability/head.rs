//! The head that every log and snapshot begins with.
//!
//! ```text
//! | magic: 8 bytes | version: u32 | position: u64 | check: u32 |
//! ```
//!
//! The check is XXH3-64 of the 20 bytes before, cut to 32 bits. Logs have it from version 2 on and snapshots from
//! version 3 on, so that a file of a later version is told apart from a damaged one.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How long a head is.
pub(super) const BYTES: usize = CHECK_AT + 4;
/// Where the position stands.
pub(super) const POSITION_AT: usize = 12;
const CHECK_AT: usize = POSITION_AT + 8;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// It is one of this version, with this position.
    Valid(u64),
    /// It is one of another version.
    OtherVersion,
    /// It is damaged, or of another file. The position is what stands in its place.
    Damaged(u64),
}

/// Returns the bytes of a head.
pub(super) fn encode(magic: &[u8; 8], version: u32, position: u64) -> [u8; BYTES] {
    let mut head = [0; BYTES];
    head[..8].copy_from_slice(magic);
    head[8..POSITION_AT].copy_from_slice(&version.to_le_bytes());
    head[POSITION_AT..CHECK_AT].copy_from_slice(&position.to_le_bytes());
    let check = check_of(&head);
    head[CHECK_AT..].copy_from_slice(&check);
    head
}

/// Reads a head.
pub(super) fn read(head: &[u8; BYTES], magic: &[u8; 8], version: u32) -> Head {
    let (its_version, position) = (&head[8..POSITION_AT], &head[POSITION_AT..CHECK_AT]);
    let position = u64::from_le_bytes(position.try_into().expect("eight bytes"));
    if head[CHECK_AT..] != check_of(head) || head[..8] != *magic {
        Head::Damaged(position)
    } else if its_version != version.to_le_bytes() {
        Head::OtherVersion
    } else {
        Head::Valid(position)
    }
}

fn check_of(head: &[u8; BYTES]) -> [u8; 4] {
    (xxh3_64_with_seed(&head[..CHECK_AT], 0) as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_bit_is_damage_and_never_another_version() {
        let head = encode(b"TAMISLOG", 2, 77);
        assert_eq!(read(&head, b"TAMISLOG", 2), Head::Valid(77));
        assert_eq!(read(&head, b"TAMISLOG", 3), Head::OtherVersion);
        for bit in 0..BYTES * 8 {
            let mut flipped = head;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read(&flipped, b"TAMISLOG", 2), Head::Damaged(_)), "bit {bit}");
        }
    }
}
