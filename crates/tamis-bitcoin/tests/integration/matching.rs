//! Filters of wallets match the same transactions as in Bitcoin Core, and the same messages change
//! them in the same way.

use serde_json::Value as Json;
use tamis_bitcoin::{
    MAX_ITEM_BYTES, MessageError, PeerFilter, Transaction, decode_filter_add, encode_filter_add,
    match_transaction,
};
use tamis_formats::bip37::{Bip37Sizing, Update, WalletFilter};

use crate::json::{hex, json, list, number, real, text, to_hex};

fn golden() -> Json {
    json("bitcoin/bip37.json")
}

/// Creates the empty filter that a row of the golden data describes.
pub fn create(row: &Json, items: &str, sizing: Bip37Sizing) -> WalletFilter {
    let (n, tweak) = (number(&row[items]) as u32, number(&row["tweak"]) as u32);
    let update = Update::of(number(&row["flags"]) as u8);
    WalletFilter::create(n, real(&row["fp_rate"]), tweak, update, sizing).unwrap()
}

/// A payload of `filterload` with an empty filter of 300 zero bytes.
fn payload(probes: u32, flags: u8) -> Vec<u8> {
    let mut payload = vec![0xfd, 44, 1];
    payload.resize(3 + 300, 0);
    payload.extend(probes.to_le_bytes());
    payload.extend([0, 0, 0, 0, flags]);
    payload
}

#[test]
fn items_for_which_nodes_disconnect_are_refused() {
    let item = [7; MAX_ITEM_BYTES + 1];
    assert_eq!(encode_filter_add(&item), None);
    let longest = encode_filter_add(&item[1..]).unwrap();
    assert_eq!(decode_filter_add(&longest).unwrap(), &item[1..]);
    let too_long = [&[0xfd, 0x09, 0x02][..], &item].concat();
    assert!(decode_filter_add(&too_long).unwrap_err().to_string().contains("520"));
    for bad in [&[][..], &[2, 1], &[0xfd, 1, 0, 5]] {
        assert!(decode_filter_add(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_node_keeps_the_filter_of_the_last_messages() {
    let mut peer = PeerFilter::default();
    assert_eq!(peer.receive("filteradd", &[1, 9]), Err(MessageError::NoFilter));
    peer.receive("filterload", &payload(5, 1)).unwrap();
    peer.receive("filteradd", &[1, 9]).unwrap();
    let before = peer.clone();
    assert!(peer.receive("filterload", &payload(51, 1)).is_err());
    assert!(peer.receive("filteradd", &[2, 7]).is_err());
    assert_eq!(peer.receive("ping", &[]), Err(MessageError::OtherMessage));
    assert_eq!(peer, before);
    let filter = peer.filter_mut().unwrap();
    assert!(filter.contains(&[9]) && !filter.contains(&[8]));
    peer.receive("filterclear", b"left unread").unwrap();
    assert_eq!(peer.filter(), None);
}

#[test]
fn transactions_match_and_change_the_filter_as_they_do_in_nodes() {
    let golden = golden();
    let bytes = hex(&golden["transaction_matching"]["tx_hex"]);
    let transaction = Transaction::decode(&bytes).unwrap();
    let cases = list(&golden["transaction_matching"]["cases"]);
    assert_eq!(cases.len(), 9);
    for case in cases {
        let mut filter = create(case, "filter_n", Bip37Sizing::Core);
        filter.insert(&hex(&case["insert"]));
        assert_eq!(case["relevant"], match_transaction(&mut filter, &transaction), "{case}");
        assert_eq!(to_hex(&filter.encode()), text(&case["filterload_after"]), "{case}");
    }
}

#[test]
fn outpoints_are_inserted_as_the_flags_say() {
    let key = [&[3][..], &[5; 32]].concat();
    let hash = [6; 20];
    let to_key = [&[33][..], &key, &[0xac]].concat();
    let multisig = [&[0x51, 33][..], &key, &[0x51, 0xae]].concat();
    let to_hash = [&[0x76, 0xa9, 20][..], &hash, &[0x88, 0xac]].concat();
    let twice = [&[20][..], &hash, &[20], &hash].concat();
    let cut_behind_a_push = [&[20][..], &hash, &[20]].concat();
    let other = vec![0, 0x4c, 0];
    let scripts = [to_key, multisig, to_hash, twice, cut_behind_a_push, other];
    let mut bytes = [&[1, 0, 0, 0, 1][..], &[7; 36], &[0], &[0xff; 4], &[6]].concat();
    for script in &scripts {
        bytes.extend([0; 8]);
        bytes.push(script.len() as u8);
        bytes.extend_from_slice(script);
    }
    bytes.extend([0; 4]);
    let transaction = Transaction::decode(&bytes).unwrap();
    for (update, expected) in [
        (Update::None, [false; 6]),
        (Update::All, [true, true, true, true, true, false]),
        (Update::PublicKeyOnly, [true, true, false, false, false, false]),
    ] {
        let mut filter = WalletFilter::create(100, 1e-6, 5, update, Bip37Sizing::Core).unwrap();
        filter.insert(&key);
        filter.insert(&hash);
        assert!(match_transaction(&mut filter, &transaction));
        let inserted = [0, 1, 2, 3, 4, 5].map(|i| filter.contains(&transaction.outpoint(i)));
        assert_eq!(inserted, expected, "{update}");
    }
}

#[test]
fn every_transaction_matches_a_filter_without_bytes_or_hash_functions() {
    let golden = golden();
    let bytes = hex(&golden["transaction_matching"]["tx_hex"]);
    let transaction = Transaction::decode(&bytes).unwrap();
    let cases = list(&golden["edge_cases"]).iter();
    let mut count = 0;
    for case in cases.filter(|case| case["filterload_hex"].is_string()) {
        let payload = hex(&case["filterload_hex"]);
        let (mut filter, _) = WalletFilter::decode_start(&payload).unwrap();
        assert!(match_transaction(&mut filter, &transaction));
        count += 1;
    }
    assert_eq!(count, 2);
}
