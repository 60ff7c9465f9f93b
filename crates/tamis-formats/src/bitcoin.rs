//! The parts of Bitcoin's wire format that its filters need: blocks, transactions, the pushes of
//! scripts, hashes.
//!
//! Nothing here validates a block or a transaction. Bytes that nodes would not parse in the same
//! way are rejected. Decoding borrows the bytes and takes at most about three times their memory.

mod block;
pub(crate) mod compact_size;
mod hash;
pub(crate) mod script;
mod transaction;

pub(crate) use block::MERKLE_ROOT_AT;
pub use block::{Block, BlockHeader};
pub use hash::{Hash256, HashError};
pub use script::pushes;
pub use transaction::{Input, Output, Transaction};
