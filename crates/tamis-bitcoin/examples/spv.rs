//! A wallet that finds its payments without downloading blocks, on recorded blocks of Bitcoin.
//!
//! ```sh
//! cargo run -p tamis-bitcoin --example spv
//! ```
//!
//! The wallet sends a filter of its keys to a node (`filterload`). For each block, the node answers
//! with a proof (`merkleblock`) and the transactions that matched. The wallet checks the proof and
//! keeps its own transactions. See `docs/formats/bip37.md`.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::path::Path;

use serde_json::Value as Json;
use tamis_bitcoin::{Block, MerkleBlock, PeerFilter, Transaction, merkle_block, pushes};
use tamis_formats::bip37::{Bip37Sizing, Update, WalletFilter};
use tamis_formats::bitcoin::Hash256;

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", run()?);
    Ok(())
}

/// Syncs a wallet of three keys with a node that has all recorded blocks. Returns a printable
/// account statement.
fn run() -> Result<String, Box<dyn Error>> {
    let (blocks, keys) = recorded()?;
    // A real wallet first gets all headers and selects the chain with the most work.
    let chain: Vec<_> = blocks.iter().map(|block| hash_of(block)).collect::<Result<_, _>>()?;
    let whole_bytes: usize = blocks.iter().map(Vec::len).sum();
    let mut node = Node { blocks, peer: PeerFilter::default() };
    let mut wallet = Wallet::new(keys);
    let mut account = String::new();

    let filter = wallet.filter()?;
    let rule = filter.filter().rule();
    writeln!(
        account,
        "wallet   {} keys in a filter of {} bytes, {} hash functions",
        wallet.keys.len(),
        rule.bits() / 8,
        rule.probes()
    )?;
    let mut sent_bytes = filter.encode().len();
    node.peer.receive("filterload", &filter.encode())?;
    for hash in chain {
        let answer = node.filtered_block(hash).ok_or("the node has no such block, or no filter")?;
        sent_bytes += answer.proof.len() + answer.transactions.iter().map(Vec::len).sum::<usize>();
        let (transactions, events) = wallet.take(hash, &answer)?;
        let matched = answer.transactions.len();
        writeln!(account, "block    {hash}: {matched} of {transactions} transactions match")?;
        events.iter().try_for_each(|event| writeln!(account, "         {event}"))?;
    }
    writeln!(account, "balance  {}, in {} coins", Coins(wallet.balance()), wallet.coins.len())?;
    writeln!(account, "sent     {sent_bytes} bytes instead of {whole_bytes}")?;
    Ok(account)
}

/// The wallet: its keys and its coins.
struct Wallet {
    // Public keys, and the hashes of other public keys.
    keys: Vec<Vec<u8>>,
    /// The outpoints that the keys can spend, with their amounts.
    coins: HashMap<[u8; 36], u64>,
}

/// An event of a wallet.
struct Event {
    sign: char,
    satoshis: u64,
    txid: Hash256,
}

/// An amount, displayed in bitcoins.
struct Coins(u64);

impl Wallet {
    fn new(keys: Vec<Vec<u8>>) -> Self {
        Self { keys, coins: HashMap::new() }
    }

    /// Creates the filter that the wallet sends. The filter holds the keys and the coins, because a
    /// transaction that spends a coin may not contain the key.
    fn filter(&self) -> Result<WalletFilter, Box<dyn Error>> {
        // The capacity includes the outpoints that the node may add. A real wallet would choose the
        // tweak at random.
        let (items, rate, tweak) = (10 + self.coins.len() as u32, 0.000_001, 0x5eed);
        let mut filter = WalletFilter::create(items, rate, tweak, Update::All, Bip37Sizing::Core)?;
        self.keys.iter().for_each(|key| _ = filter.insert(key));
        self.coins.keys().for_each(|outpoint| _ = filter.insert(outpoint));
        Ok(filter)
    }

    /// Checks the node's answer for block `hash`, and stores the transactions of this wallet. The
    /// filter also matches some transactions of others. Returns the number of transactions in the
    /// block, and the events.
    fn take(
        &mut self,
        hash: Hash256,
        answer: &Answer,
    ) -> Result<(u32, Vec<Event>), Box<dyn Error>> {
        let proof = MerkleBlock::decode(&answer.proof)?;
        if proof.header().hash() != hash {
            return Err("a proof of another block".into());
        }
        if proof.matched().len() != answer.transactions.len() {
            return Err("not every transaction that is proven came with the proof".into());
        }
        let mut events = Vec::new();
        for (&(_, txid), bytes) in proof.matched().iter().zip(&answer.transactions) {
            let transaction = Transaction::decode(bytes)?;
            if transaction.txid() != txid {
                return Err("a transaction that is not proven".into());
            }
            let spent = transaction.inputs().iter().filter_map(|it| self.coins.remove(it.outpoint));
            let spent = spent.sum();
            let mut received = 0;
            for (index, output) in (0..).zip(transaction.outputs()) {
                if pushes(output.script).any(|data| self.keys.iter().any(|key| key == data)) {
                    self.coins.insert(transaction.outpoint(index), output.satoshis);
                    received += output.satoshis;
                }
            }
            for (sign, satoshis) in [('-', spent), ('+', received)] {
                if satoshis > 0 {
                    events.push(Event { sign, satoshis, txid });
                }
            }
        }
        Ok((proof.transactions(), events))
    }

    fn balance(&self) -> u64 {
        self.coins.values().sum()
    }
}

/// The node: whole blocks, and the filter of the connected wallet.
struct Node {
    blocks: Vec<Vec<u8>>,
    peer: PeerFilter,
}

/// The answer of a node for a block.
struct Answer {
    /// The payload of `merkleblock`.
    proof: Vec<u8>,
    /// The payloads of `tx`, in the order of the proof.
    transactions: Vec<Vec<u8>>,
}

impl Node {
    /// Answers a request for a filtered block. Returns `None` if there is no such block or no
    /// filter.
    fn filtered_block(&mut self, hash: Hash256) -> Option<Answer> {
        let filter = self.peer.filter_mut()?;
        let block = self.blocks.iter().find(|block| hash_of(block).is_ok_and(|it| it == hash))?;
        let block = Block::decode(block).ok()?;
        let proof = merkle_block(filter, &block).ok()?;
        let matched = proof.matched().iter();
        let transactions =
            matched.map(|&(at, _)| block.transactions()[at as usize].bytes().to_vec()).collect();
        Some(Answer { proof: proof.encode(), transactions })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} by {}", self.sign, Coins(self.satoshis), self.txid)
    }
}

impl fmt::Display for Coins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08}", self.0 / 100_000_000, self.0 % 100_000_000)
    }
}

fn hash_of(block: &[u8]) -> Result<Hash256, Box<dyn Error>> {
    Ok(Block::decode(block)?.header().hash())
}

type Recorded = (Vec<Vec<u8>>, Vec<Vec<u8>>);

/// Returns the blocks of the golden data without repeats, and three keys that occur in them.
fn recorded() -> Result<Recorded, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/bitcoin/bip37.json");
    let golden: Json = serde_json::from_slice(&std::fs::read(path)?)?;
    let (mut blocks, mut keys) = (Vec::new(), Vec::new());
    for case in golden["merkleblocks"].as_array().ok_or("no blocks")? {
        let block = unhex(case["block_hex"].as_str().ok_or("no block")?)?;
        if !blocks.contains(&block) {
            blocks.push(block);
        }
        // An item of the length of a transaction hash is not a key.
        for item in case["inserted"].as_array().ok_or("no items")? {
            let item = unhex(item.as_str().ok_or("no item")?)?;
            if item.len() != 32 && !keys.contains(&item) {
                keys.push(item);
            }
        }
    }
    Ok((blocks, keys))
}

fn unhex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node, a wallet that has sent its filter, and the hash of the first block.
    fn synced() -> (Node, Wallet, Hash256) {
        let (blocks, keys) = recorded().unwrap();
        let (hash, wallet) = (hash_of(&blocks[0]).unwrap(), Wallet::new(keys));
        let mut node = Node { blocks, peer: PeerFilter::default() };
        node.peer.receive("filterload", &wallet.filter().unwrap().encode()).unwrap();
        (node, wallet, hash)
    }

    #[test]
    fn the_wallet_finds_what_it_got_and_spent() {
        let account = run().unwrap();
        for line in [
            "3 keys in a filter of 35 bytes, 19 hash functions",
            "ecbec34ae6: 3 of 4 transactions match",
            "+ 24.00000000 by 28204cad",
            "- 24.00000000 by 6b0f8a73",
            "62337458dc45: 0 of 1 transactions match",
            "+ 200.00000000 by 02981fa0",
            "balance  251.00000000, in 3 coins",
        ] {
            assert!(account.contains(line), "{line} in\n{account}");
        }
    }

    #[test]
    fn the_wallet_rejects_a_dishonest_node() {
        let (mut node, mut wallet, hash) = synced();
        let cheat = |wallet: &mut Wallet, change: fn(&mut Answer)| {
            let (mut node, ..) = synced();
            let mut answer = node.filtered_block(hash).unwrap();
            change(&mut answer);
            wallet.take(hash, &answer).map(|_| ()).unwrap_err().to_string()
        };
        let left_out = cheat(&mut wallet, |answer| _ = answer.transactions.pop());
        assert!(left_out.contains("not every"), "{left_out}");
        let more_coins = cheat(&mut wallet, |answer| {
            let transaction = &mut answer.transactions[0];
            let lock_time_at = transaction.len() - 4;
            transaction[lock_time_at] ^= 1;
        });
        assert!(more_coins.contains("not proven"), "{more_coins}");
        let other_proof = cheat(&mut wallet, |answer| answer.proof[90] ^= 1);
        assert!(other_proof.contains("root"), "{other_proof}");
        let other_block = cheat(&mut wallet, |answer| answer.proof[0] ^= 1);
        assert!(other_block.contains("another block"), "{other_block}");
        assert_eq!(wallet.balance(), 0);
        wallet.take(hash, &node.filtered_block(hash).unwrap()).unwrap();
        assert_eq!(wallet.balance(), 100_000_000);
    }

    #[test]
    fn a_node_without_a_filter_has_no_answer() {
        let (mut node, _, hash) = synced();
        assert!(node.filtered_block(Hash256::default()).is_none());
        node.peer.receive("filterclear", &[]).unwrap();
        assert!(node.filtered_block(hash).is_none());
    }
}
