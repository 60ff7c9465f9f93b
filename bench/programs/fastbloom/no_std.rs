#![no_std]

use fastbloom::BloomFilter;

/// Estimates the number of distinct sensors in a log.
pub fn count_sensors(log: &[u32]) -> usize {
    let mut seen = BloomFilter::with_false_pos(0.01).seed(&0).expected_items(log.len());
    log.iter().filter(|sensor| !seen.insert(sensor)).count()
}
