//! The `Parquet` strategy sets the same bits as Parquet's own writers.

use crate::golden_json::{hex, json, list, text};
use serde_json::Value;
use tamis::{Bits as _, Geometry, Hasher, Kind, ParquetBloom, Plan};

fn golden() -> Value {
    json("parquet/filters.json")
}

fn empty(bitset_bytes: u64) -> ParquetBloom {
    let plan =
        Plan::from_parts(Kind::Parquet, 1, 0.01, bitset_bytes * 8, Geometry::Probes(8)).unwrap();
    ParquetBloom::from_plan(&plan, Hasher::xxh64(0)).unwrap()
}

fn filter<I: AsRef<[u8]>>(bitset_bytes: u64, items: impl IntoIterator<Item = I>) -> ParquetBloom {
    let mut filter = empty(bitset_bytes);
    for item in items {
        filter.insert(item.as_ref());
    }
    filter
}

fn bitset(filter: &ParquetBloom) -> Vec<u8> {
    filter.bits().words().iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn from_bitset(bitset: &[u8]) -> ParquetBloom {
    let mut filter = empty(bitset.len() as u64);
    for (word, bytes) in filter.words_mut().iter_mut().zip(bitset.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    filter
}

/// Checks that the filter answers as another program does. `answers` contains `1` for yes and `0`
/// for no.
fn assert_answers(filter: &ParquetBloom, items: &[Vec<u8>], answers: &Value) {
    let found: String =
        items.iter().map(|item| if filter.contains(item) { '1' } else { '0' }).collect();
    assert_eq!(found, text(answers));
}

#[test]
fn value_hashes_are_those_of_parquet_java() {
    let golden = golden();
    let hashes = list(&golden["hashes"]);
    assert_eq!(hashes.len(), 32);
    for case in hashes {
        let value = match case["value"]["repeat"].as_str() {
            Some(repeat) => {
                repeat.repeat(case["value"]["count"].as_u64().unwrap() as usize).into_bytes()
            }
            None => hex(&case["plain_hex"]),
        };
        let hash = Hasher::xxh64(0).hash(&value);
        assert_eq!(format!("{hash:016x}"), text(&case["hash"]), "{case}");
    }
}

#[test]
fn bit_sets_are_those_of_parquet_java() {
    for case in list(&golden()["filters"]) {
        let (_, last) = text(&case["items"]).rsplit_once("key").unwrap();
        let last: u32 = last.parse().unwrap();
        let len = case["bitset_bytes"].as_u64().unwrap();
        let filter = filter(len, (0..=last).map(|i| format!("key{i}")));
        assert_eq!(bitset(&filter), hex(&case["bitset_hex"]), "{}", case["items"]);
        let lookups = text(&case["probe_results"]).len();
        let items: Vec<_> = (0..lookups).map(|i| format!("key{i}").into_bytes()).collect();
        assert_answers(&filter, &items, &case["probe_results"]);
    }
}

#[test]
fn block_counts_need_not_be_powers_of_two() {
    for case in list(&golden()["block_counts_not_a_power_of_two"]["cases"]) {
        let blocks = case["blocks"].as_u64().unwrap();
        let items = 4 * blocks as i32;
        let filter = filter(blocks * 32, (0..items).map(|i| (i * 7919).to_le_bytes()));
        assert_eq!(bitset(&filter), hex(&case["bitset_hex"]), "{blocks} blocks");
        let lookups: Vec<_> = list(&case["probes_plain_hex"]).iter().map(hex).collect();
        assert_answers(&filter, &lookups, &case["probe_results"]);
    }
}

#[test]
fn merged_bit_sets_are_those_of_parquet_java() {
    let case = &golden()["merge"];
    let count = case["count"].as_i64().unwrap();
    let len = hex(&case["left"]).len() as u64;
    let mut left = filter(len, (0..count).map(|i| (i as i32).to_le_bytes()));
    let right = filter(len, (0..count).map(i64::to_le_bytes));
    assert_eq!(bitset(&left), hex(&case["left"]));
    assert_eq!(bitset(&right), hex(&case["right"]));
    left.merge(&right).unwrap();
    assert_eq!(bitset(&left), hex(&case["merged"]));
}

#[test]
fn folded_filters_of_the_rust_crate_equal_filters_built_at_that_size() {
    for case in list(&golden()["rust_parquet_60_fold"]["cases"]) {
        let (_, last) = text(&case["items"]).rsplit_once("..f").unwrap();
        let last: u32 = last.parse().unwrap();
        let len = case["bytes_after_fold"].as_u64().unwrap();
        let filter = filter(len, (0..=last).map(|i| format!("f{i}")));
        assert_eq!(bitset(&filter), hex(&case["bitset_after_hex"]), "{}", case["items"]);
    }
}

#[test]
fn columns_written_by_pyarrow_answer_as_other_readers_do() {
    let golden = golden();
    let columns = list(&golden["parquet_file_pyarrow"]["columns"]);
    assert_eq!(columns.len(), 5);
    for column in columns {
        let filter = from_bitset(&hex(&column["bitset_hex"]));
        let absent: Vec<_> = list(&column["absent_plain_hex"]).iter().map(hex).collect();
        assert_answers(&filter, &absent, &column["absent_results"]);
        let present = list(&column["present_plain_hex"]);
        assert!(present.iter().all(|item| filter.contains(&hex(item))), "{}", column["column"]);
    }
}

#[test]
fn columns_written_by_duckdb_are_rebuilt() {
    let golden = golden();
    let column = |i: usize| hex(&golden["parquet_file_duckdb"]["columns"][i]["bitset_hex"]);
    assert_eq!(bitset(&filter(32, (0..20_i64).map(|i| (i * 1001).to_le_bytes()))), column(0));
    assert_eq!(bitset(&filter(32, (0..15).map(|i| format!("name-{i}")))), column(1));
}
