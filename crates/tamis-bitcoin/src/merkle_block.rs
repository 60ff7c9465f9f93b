//! A proof that transactions are in a block. The proof contains the branches of the Merkle tree
//! that lead to the proven transactions.
//!
//! The algorithm visits the Merkle tree in preorder, starting at the root. The proof stores a flag
//! for each visited node. The flag of a node is 1 if the node is a proven leaf or has a proven
//! descendant. If the flag of a node is 0 or the node is a leaf, the proof stores the hash of the
//! node. The algorithm visits the children of a node only if the flag of the node is 1.
//!
//! ```text
//!              root 1              of a b c d e, c is proven
//!             /      \
//!      (ab)(cd) 1     (ee)(ee) 0  flags   1 1 0 1 1 0 0
//!       /      \
//!     ab 0     cd 1               hashes  ab, c, d, (ee)(ee)
//!             /    \
//!           c 1    d 0
//! ```

use std::fmt;

use tamis_formats::bitcoin::{Hash256, compact_size};
use tamis_formats::{ByteReader, DecodeError, DecodeErrorKind};

use crate::block::{Block, BlockHeader, MERKLE_ROOT_AT};
use crate::transaction::Transaction;

/// The maximum number of transactions in a block. A block has at most 4,000,000 weight units, and
/// the smallest transaction has 240 weight units.
///
/// Before Bitcoin had witnesses, a block had at most 1,000,000 bytes and the smallest transaction
/// had 60 bytes. The quotient 1,000,000 / 60 equals the quotient 4,000,000 / 240.
pub const MAX_TRANSACTIONS: u32 = 1_000_000 / 60;

/// The message `merkleblock`: a block header, and a proof that some transactions are in the block.
///
/// [`decode`](Self::decode) checks the proof but not the header. The receiver must check that the
/// hash of the header is in the chain with the most work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerkleBlock {
    header: BlockHeader,
    transactions: u32,
    hashes: Vec<Hash256>,
    // Flag `i` is bit `i % 8` of byte `i / 8`.
    flags: Vec<u8>,
    matched: Vec<(u32, Hash256)>,
}

/// The error for a block with more transactions than a proof can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTooLarge {
    /// The number of transactions of the block.
    pub transactions: usize,
}

impl fmt::Display for BlockTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a block of {} transactions: at most {MAX_TRANSACTIONS}", self.transactions)
    }
}

impl std::error::Error for BlockTooLarge {}

impl MerkleBlock {
    /// Creates a proof of the transactions for which `is_matched` returns true. Calls `is_matched`
    /// once for each transaction, in order.
    ///
    /// This method temporarily allocates memory for two hashes per transaction.
    ///
    /// # Errors
    ///
    /// [`BlockTooLarge`] if wallets would reject the proof.
    pub fn new(
        block: &Block<'_>,
        mut is_matched: impl FnMut(&Transaction<'_>) -> bool,
    ) -> Result<Self, BlockTooLarge> {
        let transactions = block.transactions();
        let too_large = BlockTooLarge { transactions: transactions.len() };
        let count = u32::try_from(transactions.len()).map_err(|_| too_large)?;
        if count > MAX_TRANSACTIONS {
            return Err(too_large);
        }
        let leaves: Vec<_> = transactions.iter().map(|it| (it.txid(), is_matched(it))).collect();
        let matched = (0..).zip(&leaves).filter(|(_, (_, is_matched))| *is_matched);
        let mut merkle_block = Self {
            header: *block.header(),
            transactions: count,
            hashes: Vec::new(),
            flags: Vec::new(),
            matched: matched.map(|(index, &(txid, _))| (index, txid)).collect(),
        };
        // The first level contains the leaves, and the last level contains the root.
        let mut levels = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let pairs = below.chunks(2).map(|pair| {
                let ((left, is_left), (right, is_right)) = (pair[0], pair[pair.len() - 1]);
                (parent(left, right), is_left || is_right)
            });
            levels.push(pairs.collect());
        }
        let mut flags = Vec::new();
        merkle_block.add_node(&levels, 0, &mut flags);
        let bytes = flags
            .chunks(8)
            .map(|bits| (0..).zip(bits).fold(0, |byte, (i, &is_set)| byte | u8::from(is_set) << i));
        merkle_block.flags = bytes.collect();
        Ok(merkle_block)
    }

    /// Adds node `index` of the last level, and the nodes below this node, to the proof. The
    /// recursion depth is at most 15.
    fn add_node(&mut self, levels: &[Vec<(Hash256, bool)>], index: usize, flags: &mut Vec<bool>) {
        let Some((level, below)) = levels.split_last() else { return };
        // If the last node of a level has no right neighbor, the parent hash covers the left hash
        // twice. The proof contains no hash for a missing right neighbor.
        let Some(&(hash, is_proven)) = level.get(index) else { return };
        flags.push(is_proven);
        if below.is_empty() || !is_proven {
            self.hashes.push(hash);
        } else {
            self.add_node(below, index * 2, flags);
            self.add_node(below, index * 2 + 1, flags);
        }
    }

    /// Decodes the payload of `merkleblock` and checks the proof. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] in each of these cases:
    ///
    /// * the payload is truncated;
    /// * the number of transactions is 0 or above [`MAX_TRANSACTIONS`];
    /// * the payload has more hashes than transactions, or fewer flags than hashes;
    /// * the tree needs more or fewer hashes or flags than the payload has;
    /// * two neighboring hashes are equal (a forgery, CVE-2012-2459);
    /// * the root of the tree differs from the Merkle root in the header.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(payload);
        let header = BlockHeader::read(&mut reader)?;
        let count_at = reader.clone();
        let transactions = reader.u32("number of transactions")?;
        if transactions == 0 || transactions > MAX_TRANSACTIONS {
            return Err(count_at.unexpected("number of transactions", "1 to 16,666", transactions));
        }
        let count_at = reader.clone();
        let count = compact_size::read_count(&mut reader, "number of hashes", 32)?;
        if count > transactions as usize {
            let expected = "at most the number of transactions";
            return Err(count_at.unexpected("number of hashes", expected, count as u64));
        }
        let hashes_at = reader.at();
        let (hashes, _) = reader.bytes("hashes", count * 32)?.as_chunks();
        let hashes: Vec<_> = hashes.iter().map(|&hash| Hash256(hash)).collect();
        let count_at = reader.clone();
        let flags = compact_size::read_bytes(&mut reader, "flags")?.to_vec();
        if flags.len() * 8 < hashes.len() {
            let expected = "at least one for eight hashes";
            let found = flags.len() as u64;
            return Err(count_at.unexpected("number of bytes of flags", expected, found));
        }
        reader.end("flags")?;
        let flags_at = reader.at() - flags.len();
        let matched = Vec::new();
        let mut proof = Self { header, transactions, hashes, flags, matched };
        proof.check(hashes_at, flags_at)?;
        Ok(proof)
    }

    /// Checks the tree and stores the proven transactions in `matched`.
    fn check(&mut self, hashes_at: usize, flags_at: usize) -> Result<(), DecodeError> {
        let words = |field, at: usize, reason| {
            let kind = DecodeErrorKind::Damaged { reason };
            DecodeError::new(field, at, kind)
        };
        let mut walk = Walk { proof: self, hashes: 0, flags: 0, matched: Vec::new() };
        let depth = u32::BITS - (walk.proof.transactions - 1).leading_zeros();
        let root = walk.node(depth, 0).map_err(|fault| match fault {
            Fault::Hashes => {
                let at = hashes_at + walk.proof.hashes.len() * 32;
                words("hashes", at, "a hash of the tree is missing")
            }
            Fault::Flags => {
                words("flags", flags_at + walk.proof.flags.len(), "a flag of its tree is missing")
            }
            Fault::Twice => words(
                "hashes",
                hashes_at + (walk.hashes - 1) * 32,
                "two hashes side by side in its tree are equal",
            ),
        })?;
        let Walk { hashes, flags, matched, .. } = walk;
        if hashes < self.hashes.len() {
            let at = hashes_at + hashes * 32;
            return Err(words("hashes", at, "it has more hashes than its tree needs"));
        }
        let used = flags.div_ceil(8);
        if used < self.flags.len() {
            return Err(words("flags", flags_at + used, "it has more flags than its tree needs"));
        }
        if root != self.header.merkle_root() {
            let reason = "the root of its tree is not the header's";
            return Err(words("merkle root", MERKLE_ROOT_AT, reason));
        }
        self.matched = matched;
        Ok(())
    }

    /// Encodes the payload of `merkleblock`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = self.header.0.to_vec();
        payload.extend(self.transactions.to_le_bytes());
        compact_size::write(self.hashes.len() as u64, &mut payload);
        self.hashes.iter().for_each(|hash| payload.extend(hash.0));
        compact_size::write(self.flags.len() as u64, &mut payload);
        payload.extend_from_slice(&self.flags);
        payload
    }

    /// Returns the header of the block.
    #[must_use]
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// Returns the number of transactions of the block. The sender of the message chose the number
    /// of transactions, and the proof does not cover this number.
    #[must_use]
    pub fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Returns the proven transactions: the index of each transaction in the block, and the hash of
    /// the transaction.
    #[must_use]
    pub fn matched(&self) -> &[(u32, Hash256)] {
        &self.matched
    }
}

/// Returns the hash of a parent node from the hashes of the two children.
fn parent(left: Hash256, right: Hash256) -> Hash256 {
    Hash256::of(&[&left.0, &right.0])
}

/// The reason why a tree is invalid.
enum Fault {
    Hashes,
    Flags,
    Twice,
}

/// The state of a preorder traversal of a proof's tree.
struct Walk<'a> {
    proof: &'a MerkleBlock,
    // The numbers of hashes and flags that the traversal has read.
    hashes: usize,
    flags: usize,
    matched: Vec<(u32, Hash256)>,
}

impl Walk<'_> {
    /// Returns the hash of node `index` at `height` above the leaves. The recursion depth is at
    /// most 15.
    fn node(&mut self, height: u32, index: u32) -> Result<Hash256, Fault> {
        let byte = *self.proof.flags.get(self.flags / 8).ok_or(Fault::Flags)?;
        let is_proven = byte >> (self.flags % 8) & 1 == 1;
        self.flags += 1;
        if height > 0 && is_proven {
            let left = self.node(height - 1, index * 2)?;
            let nodes_below = self.proof.transactions.div_ceil(1 << (height - 1));
            if index * 2 + 1 == nodes_below {
                return Ok(parent(left, left));
            }
            let right = self.node(height - 1, index * 2 + 1)?;
            return if left == right { Err(Fault::Twice) } else { Ok(parent(left, right)) };
        }
        let hash = *self.proof.hashes.get(self.hashes).ok_or(Fault::Hashes)?;
        self.hashes += 1;
        if is_proven {
            self.matched.push((index, hash));
        }
        Ok(hash)
    }
}
