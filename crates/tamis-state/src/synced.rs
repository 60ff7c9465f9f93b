//! The synced length of a state: the number of bytes that a sync has put on the disk.
//!
//! The synced length is stored in the header, in 16 bytes that lie in one sector. The order of the
//! operations is:
//!
//! 1. Blocks are appended and synced. After the sync of the blocks, the synced length is raised.
//! 2. Before the log is cut, the synced length is lowered and synced. After the cut, the file is
//!    synced again, so that no old block reappears behind new blocks after a power loss.
//!
//! The synced length therefore never exceeds the bytes on the disk after any power loss. An invalid
//! block before the synced length is damage. An invalid block behind the synced length is the torn
//! tail of a killed run.

use tamis::Hasher;

/// The offset of the synced length in the file.
pub(crate) const SYNCED_AT: u64 = 16;
/// The number of bytes of the synced length and its checksum.
pub(crate) const SYNCED_BYTES: usize = 16;

/// Encodes a synced length with its checksum.
pub(crate) fn encode(len_bytes: u64) -> [u8; SYNCED_BYTES] {
    let len_bytes = len_bytes.to_le_bytes();
    let checksum = Hasher::xxh3(SYNCED_AT).hash(&len_bytes).to_le_bytes();
    let mut bytes = [0; SYNCED_BYTES];
    bytes[..8].copy_from_slice(&len_bytes);
    bytes[8..].copy_from_slice(&checksum);
    bytes
}

/// Decodes a synced length. Returns `None` if the stored checksum is not the checksum of the synced
/// length.
pub(crate) fn decode(bytes: &[u8]) -> Option<u64> {
    let len_bytes = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    (bytes == encode(len_bytes)).then_some(len_bytes)
}
