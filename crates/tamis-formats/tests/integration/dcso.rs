//! Filters of DCSO's `bloom` give the same answers in Tamis, and re-encode to equal bytes.

use crate::golden_data::{hex, json, list, number, real, text};
use crate::support::{answers, assert_plans, assert_refused, encode, insert};
use tamis_formats::dcso::{create, decode, plan};
use tamis_formats::{Contents, Format, Sniff};

fn items(range: std::ops::Range<i128>) -> Vec<Vec<u8>> {
    range.map(|i| format!("item {i}").into_bytes()).collect()
}

#[test]
fn filters_are_those_of_dcso() {
    for case in list(&json("dcso/dcso.json")["filters"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["rate"]));
        let mut contents = Contents::new(create(capacity, rate).unwrap());
        insert(&mut contents, &items(0..number(&case["inserted"]))).unwrap();
        let file = hex(&case["file_hex"]);
        let data = text(&case["data"]).as_bytes();
        // `create` attaches no data.
        let written = [&encode("dcso", &contents).unwrap(), data].concat();
        assert_eq!(written, file, "{capacity} {rate}");
        assert_eq!(Format::named("dcso").unwrap().sniff(&file), Sniff::Yes);
        let read = decode(&file).unwrap();
        assert_eq!(read.data(), data);
        let read = Contents::new(read);
        assert_eq!(encode("dcso", &read).unwrap(), file);
        let expected: Vec<i128> = list(&case["found_of_400"]).iter().map(number).collect();
        let expected: Vec<bool> = (0..400).map(|i| expected.contains(&i)).collect();
        assert_eq!(answers(&read, &items(0..400)), expected, "{capacity} {rate}");
    }
}

#[test]
fn plans_are_those_of_dcso() {
    assert_plans(&json("dcso/dcso.json")["plans"], plan);
}

#[test]
fn filters_merge_as_by_join() {
    let join = &json("dcso/dcso.json")["join"];
    let read = |field: &str| Contents::new(decode(&hex(&join[field])).unwrap());
    let mut first = read("first_hex");
    first.merge(&read("second_hex")).unwrap();
    assert_eq!(encode("dcso", &first).unwrap(), hex(&join["joined_hex"]));
}

#[test]
fn broken_files_are_refused_by_field() {
    let good = hex(&json("dcso/dcso.json")["filters"][1]["file_hex"]);
    let changes = [
        (0, 2, "the version at byte 0"),
        (23, 0x7f, "the rate at byte 16"),
        (24, 0, "the number of probes at byte 24"),
        (39, 0xff, "the number of probes at byte 24"),
    ];
    assert_refused(&good, decode, &changes);
    assert!(decode(&good[..good.len() - 1]).is_err());
    assert!(create(1, 0.9).is_err(), "no bits");
}
