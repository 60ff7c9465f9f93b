//! Filters of `pybloomfiltermmap` with the recorded seeds equal the recorded files, byte for byte.

use crate::golden_data::{base64, hex, json, list, number, real, text};
use crate::support::{assert_fails, digits, encode_filter};
use tamis_formats::pybloomfiltermmap::{create, decode, plan};
use tamis_formats::{Format, Sniff, StoredFilter as _};

fn seeds(case: &serde_json::Value) -> Vec<u32> {
    list(&case["hash_seeds"]).iter().map(|seed| number(seed) as u32).collect()
}

#[test]
fn files_are_those_of_python() {
    for case in list(&json("python/pybloomfiltermmap.json")["filters"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["error_rate"]));
        let mut layers = create(capacity, rate, Some(&seeds(case))).unwrap();
        let n = number(&case["n"]);
        let items = (0..n).chain(0..n).map(|i| format!("m{i}\u{4e2d}"));
        let added = digits(items.map(|item| !layers.insert(item.as_bytes()).unwrap()));
        assert_eq!(added, text(&case["add_returned"]), "{capacity}");
        let file = base64(&case["file_base64"]);
        assert!(encode_filter("pybloomfiltermmap", &layers) == file, "{capacity}");
        assert_eq!(Format::named("pybloomfiltermmap").unwrap().sniff(&file), Sniff::Yes);
        let read = decode(&file).unwrap();
        let found = digits((0..200).map(|i| read.contains(format!("q{i}").as_bytes())));
        assert_eq!(found, text(&case["probe_q0_q199"]), "{capacity}");
    }
}

#[test]
fn bits_are_those_of_another_run_of_python() {
    for case in list(&json("python/pybloomfiltermmap.json")["data"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["error_rate"]));
        let mut layers = create(capacity, rate, Some(&seeds(case))).unwrap();
        for i in 0..if capacity == 50 { 20 } else { 5 } {
            layers.insert(format!("m{i}").as_bytes()).unwrap();
        }
        layers.insert("\u{4e2d}".as_bytes()).unwrap();
        let file = encode_filter("pybloomfiltermmap", &layers);
        assert_eq!(file[..64], hex(&case["header_hex_first_64"]));
        assert_eq!(file[number(&case["data_offset"]) as usize..], hex(&case["data_hex"]));
    }
}

#[test]
fn plans_are_those_of_python() {
    for (items, rate, bits, probes) in [
        (1, 0.5, 128, 1),
        (10, 0.1, 128, 3),
        (1000, 0.03, 7300, 5),
        (12_345, 0.0007, 186_660, 10),
        (100_000, 0.01, 958_506, 6),
    ] {
        assert_eq!(plan(items, rate), (bits, probes), "{items} {rate}");
    }
}

#[test]
fn filters_of_other_seeds_do_not_merge() {
    let [mut one, other] = [[1, 2, 3], [1, 2, 4]].map(|it| create(9, 0.1, Some(&it)).unwrap());
    assert!(!one.merge(&other).unwrap() && one.merge(&one.clone()).unwrap());
    assert_fails(create(9, 0.1, Some(&[1])), "3 probes");
}
