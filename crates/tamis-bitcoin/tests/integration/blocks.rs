//! Blocks and transactions are accepted or rejected as Bitcoin nodes do.

use crate::json::{hex, json, list, text};
use tamis_bitcoin::{Block, Transaction};
use tamis_formats::DecodeError;

/// A transaction with a witness: the signed one of BIP-143's example "Native P2WPKH".
const WITH_WITNESS: &str = "\
    01000000000102fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000494830450221008b9d1dc26ba6a9cb62127b02742fa9d7\
    54cd3bebf337f7a55d114c8e5cdd30be022040529b194ba3f9281a99f2b1c0a19c0489bc22ede944ccf4ecbab4cc618ef3ed01eeffffffef51e1b804cc89d182d279\
    655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac90\
    93510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac000247304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb13\
    66d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8caed02de67eebee0121025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253\
    f62fc70f07aeee635711000000";

fn with_witness() -> Vec<u8> {
    hex(&WITH_WITNESS.into())
}

fn golden_blocks() -> Vec<Vec<u8>> {
    let blocks = [json("bitcoin/bip37.json")["merkleblocks"].clone()];
    let blocks = blocks.into_iter().chain([json("bitcoin/bip158.json")["blocks"].clone()]);
    blocks
        .flat_map(|it| list(&it).iter().map(|it| hex(&it["block_hex"])).collect::<Vec<_>>())
        .collect()
}

#[test]
fn blocks_have_their_known_hashes_and_roots() {
    for case in list(&json("bitcoin/bip158.json")["blocks"]) {
        let bytes = hex(&case["block_hex"]);
        let block = Block::decode(&bytes).unwrap();
        assert_eq!(block.header().hash().to_string(), text(&case["block_hash"]));
    }
    for bytes in golden_blocks() {
        let block = Block::decode(&bytes).unwrap();
        let together: Vec<u8> =
            block.transactions().iter().flat_map(|it| it.bytes().to_vec()).collect();
        assert!(bytes.ends_with(&together));
        if let [one] = block.transactions() {
            assert_eq!(block.header().merkle_root(), one.txid());
        }
        let (first, rest) = block.transactions().split_first().unwrap();
        assert!(first.inputs()[0].is_coinbase());
        assert!(rest.iter().flat_map(Transaction::inputs).all(|input| !input.is_coinbase()));
    }
}

#[test]
fn witnesses_are_not_hashed() {
    let bytes = with_witness();
    let whole = Transaction::decode(&bytes).unwrap();
    let txid = "e8151a2af31c368a35053ddd4bdb285a8595c769a3ad83e0fa02314a602d4609";
    assert_eq!(whole.txid().to_string(), txid);
    assert_eq!((whole.inputs().len(), whole.outputs().len()), (2, 2));
    assert_eq!(whole.outputs()[0].satoshis, 112_340_000);
    // The same transaction without marker, flag and witnesses.
    let body = &bytes[6..bytes.len() - 4];
    let witnesses = 1 + 1 + 1 + 0x47 + 1 + 0x21;
    let bare = [&bytes[..4], &body[..body.len() - witnesses], &bytes[bytes.len() - 4..]].concat();
    let bare = Transaction::decode(&bare).unwrap();
    assert_eq!(bare.txid(), whole.txid());
    assert_eq!(bare.inputs(), whole.inputs());
    assert_eq!(bare.outputs(), whole.outputs());
}

fn refused(bytes: &[u8]) -> DecodeError {
    Transaction::decode(bytes).unwrap_err()
}

#[test]
fn transactions_that_nodes_refuse_are_refused() {
    let bytes = with_witness();
    let mut other_flag = bytes.clone();
    other_flag[5] = 2;
    assert_eq!(refused(&other_flag).at, 5);
    other_flag[5] = 0;
    assert_eq!(refused(&other_flag).at, 5);

    let input = [&[7; 36][..], &[0], &[0; 4]].concat();
    let no_witness = [&[1, 0, 0, 0, 0, 1, 1][..], &input, &[0], &[0], &[0; 4]].concat();
    assert!(refused(&no_witness).to_string().contains("witnesses"));
    let no_input = [&[1, 0, 0, 0, 0, 1, 0, 0][..], &[0; 4]].concat();
    assert!(refused(&no_input).to_string().contains("number of inputs"));
    let long_count = [&[1, 0, 0, 0, 0xfd, 1, 0][..], &input, &[0], &[0; 4]].concat();
    assert!(refused(&long_count).to_string().contains("shortest form"));
    let good = [&[1, 0, 0, 0, 1][..], &input, &[0], &[0; 4]].concat();
    assert!(Transaction::decode(&good).is_ok());
    assert_eq!(refused(&[&good[..], &[0]].concat()).at, good.len() as u64);
    // Large counts for which the decoder must not allocate memory.
    for huge in [&[0xfe, 255, 255, 255, 255][..], &[0xff; 9]] {
        refused(&[&[1, 0, 0, 0], huge, &input, &[0], &[0; 4]].concat());
        refused(&[&[1, 0, 0, 0, 1], &input[..], huge, &[0; 4]].concat());
        refused(&[&[1, 0, 0, 0, 1], &input[..36], huge, &[0; 4]].concat());
    }
    assert!(Block::decode(&[&[0; 80][..], &[0]].concat()).is_err(), "no transactions");
}

#[test]
fn each_truncation_is_refused_and_each_flipped_byte_is_an_answer_or_an_error() {
    let mut bytes = with_witness();
    for len in 0..bytes.len() {
        refused(&bytes[..len]);
    }
    for at in 0..bytes.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            bytes[at] ^= flip;
            let _ = Transaction::decode(&bytes);
            bytes[at] ^= flip;
        }
    }
    for mut bytes in golden_blocks() {
        for at in 0..bytes.len() {
            assert!(Block::decode(&bytes[..at]).is_err());
            bytes[at] ^= 0x80;
            let _ = Block::decode(&bytes);
            bytes[at] ^= 0x80;
        }
    }
}
