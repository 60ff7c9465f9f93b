//! Decodes Bitcoin's blocks, transactions and scripts for the filters of wallets (BIP-37) and the
//! filters of blocks (BIP-158). The crate `tamis-formats` reads and writes the filters of wallets
//! and blocks.
//!
//! ```
//! use tamis_bitcoin::{Transaction, match_transaction};
//! use tamis_formats::bip37::{Bip37Sizing, Update, WalletFilter};
//!
//! let key_hash = [7; 20];
//! let mut filter = WalletFilter::create(10, 0.0001, 0, Update::All, Bip37Sizing::Core)?;
//! filter.insert(&key_hash);
//!
//! // A transaction that pays 5,000 satoshis to the key with the hash `key_hash`.
//! let script = [&[0x76, 0xa9, 20][..], &key_hash, &[0x88, 0xac]].concat();
//! let input = [&[1][..], &[9; 36], &[0], &[0xff; 4]].concat();
//! let output = [&[1][..], &5000_u64.to_le_bytes(), &[25], &script].concat();
//! let bytes = [&[1, 0, 0, 0], &input[..], &output, &[0; 4]].concat();
//! let transaction = Transaction::decode(&bytes)?;
//! assert!(match_transaction(&mut filter, &transaction));
//! assert!(filter.contains(&transaction.outpoint(0)), "finds the transaction that spends it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | item | meaning |
//! | --- | --- |
//! | [`Block`], [`BlockHeader`], [`Transaction`] | the decoded wire format, which borrows the encoded bytes |
//! | [`pushes`] | the data that a script pushes |
//! | [`match_transaction`], [`merkle_block`] | the answers of a node for a filter of a wallet |
//! | [`MerkleBlock`] | a proof that transactions are in a block |
//! | [`PeerFilter`] | the filter that a node keeps for a wallet, and the messages that change the filter |
//! | [`basic_filter`], [`filter_header`] | the filter of a block, and the header of the filter |
//!
//! This crate does not validate blocks or transactions. The decoders reject bytes that a node would
//! reject or would parse differently. The decoders borrow the bytes and allocate at most about
//! three times the length of the bytes. `examples/spv.rs` simulates a wallet and a node with
//! recorded blocks.
#![forbid(unsafe_code)]

mod block;
mod block_filter;
mod matching;
mod merkle_block;
mod messages;
mod script;
mod transaction;

pub use block::{Block, BlockHeader};
pub use block_filter::{FilterError, basic_filter, filter_header};
pub use matching::{match_transaction, merkle_block};
pub use merkle_block::{BlockTooLarge, MAX_TRANSACTIONS, MerkleBlock};
pub use messages::{
    MAX_ITEM_BYTES, MessageError, PeerFilter, decode_filter_add, encode_filter_add,
};
pub use script::pushes;
pub use transaction::{Input, Output, Transaction};
