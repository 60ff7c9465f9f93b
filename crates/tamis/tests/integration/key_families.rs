//! Tests items that have a pattern: with the default hash, filters of every kind keep the requested
//! rate for all families of items.
//!
//! A good hash removes the pattern of the items. Keys and seed are fixed, so a test that passes
//! once always passes.

use crate::support::{count_found, filled};
use tamis::{Hasher, Kind, Plan};

/// The number of items in each filter.
const ITEMS: u64 = 20_000;

/// The name of a family, and a function that makes an item from a number. Items of numbers below
/// [`ITEMS`] are inserted; items of larger numbers are absent.
type Family = (&'static str, fn(u64) -> Vec<u8>);

const FAMILIES: [Family; 25] = [
    ("sequential u64", |i| bytes(i)),
    ("sequential u32", |i| (i as u32).to_le_bytes().into()),
    ("big-endian", |i| i.to_be_bytes().into()),
    ("stride 10", |i| bytes(i * 10)),
    ("stride 1000", |i| bytes(i * 1000)),
    ("stride 4096: pages", |i| bytes(i << 12)),
    ("shifted by 16", |i| bytes(i << 16)),
    ("shifted by 32", |i| bytes(i << 32)),
    ("shifted by 40", |i| bytes(i << 40)),
    ("both halves", |i| bytes(i << 32 | i)),
    ("bits reversed", |i| bytes(i.reverse_bits())),
    ("inverted", |i| bytes(!i)),
    ("floats", |i| (i as f64).to_le_bytes().into()),
    ("fractions", |i| (1.0 / (i + 1) as f64).to_le_bytes().into()),
    ("timestamps in ms", |i| bytes(1_760_000_000_000 + i * 7)),
    ("timestamps in ns", |i| bytes(1_760_000_000_000_000_000 + i * 1_000_000)),
    ("snowflake ids", |i| bytes((1_700_000_000 + i / 4) << 22 | 5 << 12 | (i % 4))),
    ("pointers", |i| bytes(0x7f3a_0000_1000 + i * 48)),
    ("decimal text", |i| i.to_string().into()),
    ("padded decimal text", |i| format!("{i:012}").into()),
    ("text with a prefix", |i| format!("user:profile:{i}").into()),
    ("URLs", |i| format!("https://example.org/shop/item?id={i}&lang=zh").into()),
    ("UUIDs of a counter", |i| [bytes(0x4000_8000_0000), bytes(i)].concat()),
    ("two ids", |i| [(i as u32 % 141).to_le_bytes(), (i as u32 / 141).to_le_bytes()].concat()),
    ("long records", |i| [[b'x'; 150].as_slice(), &bytes(i)].concat()),
];

fn bytes(i: u64) -> Vec<u8> {
    i.to_le_bytes().into()
}

/// Gray code: adjacent items differ in one bit.
fn gray(i: u64) -> Vec<u8> {
    bytes(i ^ i >> 1)
}

#[test]
fn every_kind_keeps_its_rate_for_every_family_of_keys() {
    let gray: Family = ("one bit to the next", gray);
    for (name, item) in FAMILIES.into_iter().chain([gray]) {
        let members: Vec<Vec<u8>> = (0..ITEMS).map(item).collect();
        for (rate, lookups) in [(0.01, 100_000), (1e-4, 1_000_000)] {
            let absent: Vec<Vec<u8>> = (ITEMS..ITEMS + lookups).map(item).collect();
            for kind in Kind::ALL {
                let plan = Plan::for_kind(kind, ITEMS, rate).unwrap();
                let filter = filled(&plan, Hasher::default(), &members);
                let found = count_found(&filter, &absent) as f64;
                // The noise of the lookups, plus the differences between the rates of filters with
                // the same plan.
                let (lookups, n) = (lookups as f64, ITEMS as f64);
                let expected = lookups * rate;
                let noise = (expected + expected * expected / n * 8.0).sqrt();
                assert!(
                    found <= expected + 5.0 * noise,
                    "{name}, {kind} at {rate}: {found} of {lookups}, not {expected}"
                );
            }
        }
    }
}
