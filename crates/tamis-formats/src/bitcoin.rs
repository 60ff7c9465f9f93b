//! Just as much of Bitcoin's bytes as its filters need: blocks, transactions, the pushes of scripts, hashes.
//!
//! Nothing here tells whether a block or a transaction is valid. Bytes are refused unless they are what every node reads
//! them as; decoding borrows them and takes at most about three times their memory.

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
