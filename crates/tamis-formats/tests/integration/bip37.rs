//! Filters of wallets, and the transactions that they match, equal those of Bitcoin Core, bit for
//! bit.

use crate::golden_data::{hex, json, list, number, real, text, to_hex};
use crate::support::{encode, planned};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tamis_formats::bip37::{Bip37Sizing, MAX_BYTES, MAX_PROBES, Update, WalletFilter, plan};
use tamis_formats::{Contents, CreateError, ForeignBloom, Format, bip37};

fn golden() -> Json {
    json("bitcoin/bip37.json")
}

/// Creates the empty filter that a row of the golden data describes.
fn create(row: &Json, items: &str, sizing: Bip37Sizing) -> WalletFilter {
    let (n, tweak) = (number(&row[items]) as u32, number(&row["tweak"]) as u32);
    let update = Update::of(number(&row["flags"]) as u8);
    WalletFilter::create(n, real(&row["fp_rate"]), tweak, update, sizing).unwrap()
}

fn payload(bytes: usize, probes: u32, flags: u8) -> Vec<u8> {
    let mut payload = vec![0xfd];
    payload.extend((bytes as u16).to_le_bytes());
    payload.resize(3 + bytes, 0);
    payload.extend(probes.to_le_bytes());
    payload.extend([0, 0, 0, 0, flags]);
    payload
}

#[test]
fn murmur3_is_the_one_of_32_bits() {
    for case in list(&golden()["murmur3_x86_32"]) {
        // The filter has one probe, and the tweak makes its seed 0. The filter has the largest
        // size, so the probe keeps most bits of the hash.
        let (data, seed) = (hex(&case["data"]), number(&case["seed"]) as u32);
        let mut bytes = payload(MAX_BYTES, 1, 0);
        let tweak_at = 3 + MAX_BYTES + 4;
        bytes[tweak_at..tweak_at + 4].copy_from_slice(&seed.to_le_bytes());
        let mut filter = WalletFilter::decode(&bytes).unwrap();
        filter.insert(&data);
        let bit = number(&case["hash"]) as u64 % (MAX_BYTES as u64 * 8);
        assert_eq!(filter.filter().words()[bit as usize / 64], 1 << (bit % 64), "{case}");
    }
}

#[test]
fn both_formulas_plan_as_their_programs_do() {
    let golden = golden();
    let rows = list(&golden["sizing"]["rows"]);
    assert_eq!(rows.len(), 180);
    let mut differ = 0;
    for row in rows {
        let (n, p) = (number(&row[0]) as u32, real(&row[1]));
        let expected = |at: usize| (number(&row[at]) as usize, number(&row[at + 1]) as u32);
        assert_eq!(plan(n, p, Bip37Sizing::Core), Ok(expected(2)), "{row}");
        assert_eq!(plan(n, p, Bip37Sizing::Real), Ok(expected(4)), "{row}");
        differ += usize::from(expected(2) != expected(4));
    }
    assert_eq!(differ, 13);
}

#[test]
fn plans_without_a_result_are_refused() {
    for rate in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        let error = plan(1, rate, Bip37Sizing::Core).unwrap_err();
        assert!(matches!(error, CreateError::Refused(_)), "{rate}");
    }
    assert!(plan(0, 0.1, Bip37Sizing::Core).is_err());
    assert_eq!(plan(5, 1.0, Bip37Sizing::Real), Ok((0, 0)));
    assert_eq!(plan(u32::MAX, 1e-300, Bip37Sizing::Core), Ok((MAX_BYTES, 0)));
    assert_eq!(plan(1, 1e-300, Bip37Sizing::Core).unwrap().1, MAX_PROBES);
}

#[test]
fn filters_are_those_of_bitcoin_core() {
    for row in list(&golden()["filters"]) {
        let mut filter = create(row, "n_elements", Bip37Sizing::Core);
        let rule = filter.filter().rule().clone();
        assert_eq!(i128::from(rule.bits()), number(&row["filter_bytes"]) * 8);
        assert_eq!(i128::from(rule.probes()), number(&row["hash_funcs"]));
        for (i, item) in list(&row["inserted"]).iter().enumerate() {
            filter.insert(&hex(item));
            if i == 0 {
                let bits =
                    list(&row["first_item_bit_indexes"]).iter().map(|bit| number(bit) as u64);
                let mut words = vec![0; filter.filter().words().len()];
                bits.for_each(|bit| words[bit as usize / 64] |= 1_u64 << (bit % 64));
                assert_eq!(filter.filter().words(), words);
            }
        }
        let payload = filter.encode();
        assert_eq!(to_hex(&Sha256::digest(&payload)), text(&row["filterload_sha256"]));
        if row["filterload_hex"].is_string() {
            assert_eq!(to_hex(&payload), text(&row["filterload_hex"]));
        }
        assert_eq!(WalletFilter::decode(&payload).unwrap(), filter);
        for probe in list(&row["probes"]) {
            assert_eq!(filter.contains(&hex(&probe[0])), probe[1].as_bool().unwrap(), "{probe}");
        }
    }
}

#[test]
fn filters_without_bytes_or_hash_functions_match_every_item() {
    let golden = golden();
    let cases =
        list(&golden["edge_cases"]).iter().filter(|case| case["filterload_hex"].is_string());
    let mut count = 0;
    for case in cases {
        let payload = hex(&case["filterload_hex"]);
        let (mut filter, rest) = WalletFilter::decode_start(&payload).unwrap();
        assert!(filter.contains(b"") && filter.contains(b"anything"));
        assert!(!filter.insert(b"anything"));
        // One of the two recordings has an extra byte at the end, which nodes ignore.
        assert_eq!(filter.encode(), payload[..payload.len() - rest.len()]);
        assert_eq!(WalletFilter::decode(&payload).is_ok(), rest.is_empty());
        let info = Contents::new(ForeignBloom::from(filter)).info();
        assert_eq!((info.rate_now, info.items), (1.0, f64::INFINITY));
        assert!(info.warnings[0].contains("every item"), "{:?}", info.warnings);
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn payloads_for_which_nodes_disconnect_are_refused() {
    assert!(WalletFilter::decode(&payload(MAX_BYTES, MAX_PROBES, 0)).is_ok());
    for (bytes, probes, at) in [(MAX_BYTES + 1, 1, 0), (300, MAX_PROBES + 1, 303)] {
        let error = WalletFilter::decode(&payload(bytes, probes, 0)).unwrap_err();
        assert_eq!(error.at, at);
        assert!(error.to_string().contains("at most"), "{error}");
    }
    // A length in three bytes that fits one byte, and extra bytes at the end.
    assert!(WalletFilter::decode(&payload(252, 1, 0)).is_err());
    assert!(WalletFilter::decode(&[payload(300, 1, 0), vec![0]].concat()).is_err());
}

#[test]
fn reserved_flags_are_kept_with_a_warning() {
    let bytes = payload(300, 5, 0b1111_1101);
    let filter = ForeignBloom::from(WalletFilter::decode(&bytes).unwrap());
    let rule: &bip37::Bip37 = filter.rule().downcast_ref().unwrap();
    assert_eq!((rule.flags(), Update::of(rule.flags())), (0xfd, Update::All));
    assert_eq!(Update::of(3), Update::None);
    let contents = Contents::new(filter);
    assert!(contents.info().warnings[0].contains("0xfd"));
    assert_eq!(encode("bip37", &contents).unwrap(), bytes);
}

#[test]
fn a_useless_new_filter_is_refused_with_advice() {
    let create = Format::named("bip37").unwrap().create;
    for (items, rate) in [(150_000, 0.01), (1, 0.5), (0, 0.01), (1 << 32, 0.01), (1, 2.0)] {
        let error = create(&planned(items, rate)).unwrap_err().to_string();
        assert!(error.contains("BIP-37") || error.contains("at most"), "{error}");
    }
    for (items, rate) in [(144_000, 0.01), (1, 0.01)] {
        create(&planned(items, rate)).unwrap();
    }
}
