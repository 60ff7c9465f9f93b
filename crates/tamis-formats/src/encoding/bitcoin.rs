//! The parts of Bitcoin's wire format that its filters use: hashes and compact sizes. The crate `tamis-bitcoin` reads
//! blocks and transactions.

pub mod compact_size;
mod hash;

pub use hash::{Hash256, HashError};
