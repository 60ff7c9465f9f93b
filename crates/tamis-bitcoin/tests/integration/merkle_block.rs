//! The proofs for a wallet's filter equal those of Bitcoin Core, bit for bit.

use crate::json::{hex, json, list, number, text, to_hex};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tamis_bitcoin::{Block, MAX_TRANSACTIONS, MerkleBlock, merkle_block};
use tamis_formats::DecodeError;
use tamis_formats::bip37::Bip37Sizing;

use crate::matching::create;

fn golden() -> Json {
    json("bitcoin/bip37.json")
}

#[test]
fn merkle_blocks_are_those_of_bitcoin_core() {
    let golden = golden();
    assert_eq!(list(&golden["merkleblocks"]).len(), 6);
    for case in list(&golden["merkleblocks"]) {
        let bytes = hex(&case["block_hex"]);
        let block = Block::decode(&bytes).unwrap();
        let mut filter = create(case, "filter_n", Bip37Sizing::Core);
        list(&case["inserted"]).iter().for_each(|item| _ = filter.insert(&hex(item)));
        assert_eq!(to_hex(&filter.encode()), text(&case["filterload_before"]));
        let proof = merkle_block(&mut filter, &block).unwrap();
        assert_eq!(to_hex(&filter.encode()), text(&case["filterload_after"]));
        assert_eq!(to_hex(&proof.encode()), text(&case["merkleblock_hex"]));
        let back = MerkleBlock::decode(&proof.encode()).unwrap();
        assert_eq!(back, proof);
        assert_eq!(back.header().hash(), block.header().hash());
        assert_eq!(back.transactions() as usize, block.transactions().len());
        let (positions, hashes): (Vec<_>, Vec<_>) = back.matched().iter().copied().unzip();
        let expected = list(&case["matched_indexes"]).iter().map(|index| number(index) as u32);
        assert_eq!(positions, expected.collect::<Vec<_>>());
        let expected =
            list(&case["matched_txids_display"]).iter().map(|it| text(it).parse().unwrap());
        assert_eq!(hashes, expected.collect::<Vec<_>>());
    }
}

/// Creates a block with this number of transactions. The header contains the root of their tree.
fn block(transactions: u32) -> Vec<u8> {
    let mut bytes = vec![0; 80];
    match transactions {
        0..253 => bytes.push(transactions as u8),
        _ => bytes.extend([&[0xfd][..], &(transactions as u16).to_le_bytes()].concat()),
    }
    for i in 0..transactions {
        bytes.extend([&i.to_le_bytes()[..], &[1], &[7; 36], &[0], &[0; 4], &[0], &[0; 4]].concat());
    }
    let mut level: Vec<[u8; 32]> =
        Block::decode(&bytes).unwrap().transactions().iter().map(|it| it.txid().0).collect();
    while level.len() > 1 {
        let pairs = level.chunks(2).map(|pair| {
            let pair = [pair[0], pair[pair.len() - 1]].concat();
            Sha256::digest(Sha256::digest(pair)).into()
        });
        level = pairs.collect();
    }
    bytes[36..68].copy_from_slice(&level[0]);
    bytes
}

#[test]
fn every_choice_of_transactions_is_proven() {
    for count in 1..=9 {
        let bytes = block(count);
        let block = Block::decode(&bytes).unwrap();
        for choice in 0..1_u32 << count {
            let mut index = 0;
            let proof = MerkleBlock::new(&block, |_| {
                index += 1;
                choice >> (index - 1) & 1 == 1
            })
            .unwrap();
            let back = MerkleBlock::decode(&proof.encode()).unwrap();
            assert_eq!(back, proof, "{count} {choice:b}");
            let proven: u32 = back.matched().iter().map(|(index, _)| 1 << index).sum();
            assert_eq!(choice, proven, "{count} {choice:b}");
        }
    }
}

fn rejected(payload: &[u8]) -> DecodeError {
    MerkleBlock::decode(payload).unwrap_err()
}

#[test]
fn an_invalid_proof_is_refused() {
    let bytes = block(7);
    let block = Block::decode(&bytes).unwrap();
    let mut index = 0;
    let proof = MerkleBlock::new(&block, |_| {
        index += 1;
        index == 4
    });
    let payload = proof.unwrap().encode();
    let flags_at = payload.len() - 2;
    assert_eq!((payload[84], payload[flags_at]), (4, 1), "four hashes, one byte of flags");
    let says = |payload: &[u8], at: usize, words: &str| {
        let error = rejected(payload);
        assert_eq!(error.at as usize, at, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    let with_count = |count: u32| {
        let mut payload = payload.clone();
        payload[80..84].copy_from_slice(&count.to_le_bytes());
        payload
    };
    says(&with_count(0), 80, "16,666");
    says(&with_count(MAX_TRANSACTIONS + 1), 80, "16,666");
    says(&with_count(3), 84, "at most the number of transactions");
    // The tree is as deep as allowed, but hashes and flags are missing.
    rejected(&with_count(MAX_TRANSACTIONS));

    let hash_less = [&payload[..84], &[3], &payload[85..flags_at - 32], &payload[flags_at..]];
    says(&hash_less.concat(), flags_at - 32, "a hash of the tree is missing");
    let hash_more = [&payload[..84], &[5], &payload[85..flags_at], &[9; 32], &payload[flags_at..]];
    says(&hash_more.concat(), flags_at, "more hashes than its tree");
    let flag_more = [&payload[..flags_at], &[2, payload[flags_at + 1], 0]].concat();
    says(&flag_more, flags_at + 2, "more flags than its tree");
    let flags_less = [&payload[..flags_at], &[0]].concat();
    says(&flags_less, flags_at, "one for eight hashes");
    // All flags are set, so the walk visits every node and the flags run out.
    let all = [&payload[..flags_at + 1], &[0xff]].concat();
    rejected(&all);
    let mut other_root = payload.clone();
    other_root[36] ^= 1;
    says(&other_root, 36, "root");
    let mut other_hash = payload.clone();
    other_hash[85] ^= 1;
    says(&other_hash, 36, "root");
    says(&[&payload[..], &[0]].concat(), payload.len(), "follow the end");
    for len in 0..payload.len() {
        rejected(&payload[..len]);
    }
}

#[test]
fn two_equal_hashes_side_by_side_are_refused() {
    // Six transactions give a tree of eight leaves, whose last two repeat the two before them
    // (CVE-2012-2459).
    let bytes = block(6);
    let block = Block::decode(&bytes).unwrap();
    let txids: Vec<_> = block.transactions().iter().map(|it| it.txid().0).collect();
    let mut payload = bytes[..80].to_vec();
    payload.extend(8_u32.to_le_bytes());
    payload.push(8);
    for index in [0, 1, 2, 3, 4, 5, 4, 5] {
        payload.extend(txids[index]);
    }
    payload.extend([2, 0xff, 0x7f]);
    let error = rejected(&payload);
    assert!(error.to_string().contains("are equal"), "{error}");
}

#[test]
fn the_largest_block_is_proven_and_a_larger_one_is_not() {
    for (count, is_allowed) in [(MAX_TRANSACTIONS, true), (MAX_TRANSACTIONS + 1, false)] {
        let bytes = block(count);
        let block = Block::decode(&bytes).unwrap();
        let proof = MerkleBlock::new(&block, |_| true);
        assert_eq!(proof.is_ok(), is_allowed);
        if let Ok(proof) = proof {
            let back = MerkleBlock::decode(&proof.encode()).unwrap();
            assert_eq!(back.matched().len(), count as usize);
        }
    }
}

#[test]
fn each_truncation_and_flipped_byte_of_a_proof_is_an_answer_or_an_error() {
    for case in list(&golden()["merkleblocks"]) {
        let mut payload = hex(&case["merkleblock_hex"]);
        for at in 0..payload.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                payload[at] ^= flip;
                let read = MerkleBlock::decode(&payload);
                payload[at] ^= flip;
                // The root hash protects the hashes. Nothing protects the padding of the flags.
                if (36..68).contains(&at) || (85..payload.len() - 3).contains(&at) {
                    assert!(read.is_err(), "byte {at}");
                }
            }
        }
    }
}
