//! The smallest files of Roaring bitmaps take no more memory than documented. This test has its own
//! process, because it measures the memory of the process.

mod memory;

use memory::{SLACK_BYTES, peak_bytes};
use tamis_formats::roaring::decode;

#[test]
fn runs_take_four_times_their_bytes_and_single_values_eighteen() {
    for (name, bytes, times) in [
        ("short runs before long ones", short_before_long(), 4),
        ("a value in each stretch of 2³²", lonely(400_000), 18),
    ] {
        let before = peak_bytes();
        let count = decode(&bytes).unwrap().set.len();
        let grown = peak_bytes() - before;
        assert!(
            grown <= times * bytes.len() as u64 + SLACK_BYTES,
            "{name}: {grown} for {}",
            bytes.len()
        );
        assert!(count > 0, "{name}");
    }
}

/// Creates 65,536 containers, each with two runs: a single value, and 9,000 values. As a bitmap,
/// each container would take 8 KiB.
fn short_before_long() -> Vec<u8> {
    let len = 1_usize << 16;
    let mut bytes = [0x3b, 0x30, 0xff, 0xff].to_vec();
    bytes.resize(bytes.len() + len / 8, 0xff);
    bytes.extend((0..len).flat_map(|key| [key as u16, 9_000]).flat_map(u16::to_le_bytes));
    let container = [2_u16, 7, 0, 100, 8_999].map(u16::to_le_bytes).concat();
    let first = bytes.len() + 4 * len;
    bytes.extend((0..len).flat_map(|i| ((first + i * container.len()) as u32).to_le_bytes()));
    bytes.extend(container.repeat(len));
    bytes
}

/// Returns the bytes of `maps` 32-bit bitmaps with one value each and the shortest header.
fn lonely(maps: u32) -> Vec<u8> {
    let map = [0x3b, 0x30, 0, 0, 0, 1, 0, 0, 0, 7, 0];
    let maps_of = |i: u32| i.to_le_bytes().into_iter().chain(map);
    u64::from(maps).to_le_bytes().into_iter().chain((0..maps).flat_map(maps_of)).collect()
}
