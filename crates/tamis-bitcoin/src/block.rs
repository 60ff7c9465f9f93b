//! Decodes blocks. A block consists of a header and transactions.

use tamis_formats::bitcoin::{Hash256, compact_size};
use tamis_formats::{ByteReader, DecodeError};

use crate::transaction::{MIN_BYTES, Transaction};

/// A block header, as 80 encoded bytes. The hash of the header identifies the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader(
    /// The encoded fields: version, hash of the previous block, Merkle root, time, target and
    /// nonce.
    pub [u8; 80],
);

/// The offset of the Merkle root, after the version and the hash of the previous block.
pub(crate) const MERKLE_ROOT_AT: usize = 4 + 32;

/// A block that borrows the encoded bytes.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::Block;
///
/// let transaction = [&[1, 0, 0, 0, 1][..], &[0; 37], &[0xff; 4], &[0, 0, 0, 0, 0]].concat();
/// let block = Block::decode(&[&[0; 80][..], &[1], &transaction].concat())
///     .map(|block| block.transactions().len());
/// assert_eq!(block, Ok(1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    header: BlockHeader,
    transactions: Vec<Transaction<'a>>,
}

impl BlockHeader {
    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        reader.array("block header").map(Self)
    }

    /// Returns the hash of the block, which is the hash of the header.
    #[must_use]
    pub fn hash(&self) -> Hash256 {
        Hash256::of(&[&self.0])
    }

    /// Returns the Merkle root of the transactions.
    #[must_use]
    pub fn merkle_root(&self) -> Hash256 {
        let mut root = [0; 32];
        root.copy_from_slice(&self.0[MERKLE_ROOT_AT..MERKLE_ROOT_AT + 32]);
        Hash256(root)
    }
}

impl<'a> Block<'a> {
    /// Decodes a block. Rejects trailing bytes.
    ///
    /// This method does not check the proof of work or the Merkle root.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a node would reject the bytes, or if the block has no transactions.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let header = BlockHeader::read(&mut reader)?;
        let field = "number of transactions";
        let count_at = reader.clone();
        let count = compact_size::read_count(&mut reader, field, MIN_BYTES)?;
        if count == 0 {
            return Err(count_at.unexpected(field, "1 or more", 0));
        }
        let mut transactions = Vec::with_capacity(count);
        for _ in 0..count {
            transactions.push(Transaction::read(&mut reader)?);
        }
        reader.end("transactions")?;
        Ok(Self { header, transactions })
    }

    /// Returns the block header.
    #[must_use]
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// Returns the transactions of the block, at least one.
    #[must_use]
    pub fn transactions(&self) -> &[Transaction<'a>] {
        &self.transactions
    }
}
