//! Filters of Python's `abloom` give the same answers in Tamis, and re-encode to equal bytes.

use crate::golden_data::{hex, json, list, number, real, text};
use crate::support::{answers, assert_fails, assert_refused, digits, encode, insert};
use tamis_formats::abloom::{create, decode, plan};
use tamis_formats::{AbloomType, Contents, Funnel};

/// Returns the golden items as the keys that abloom's hash gives.
fn keys() -> Vec<Vec<u8>> {
    let golden = json("abloom/abloom.json");
    let items = list(&golden["items"]).iter();
    items
        .map(|item| {
            let (of, item) = match (text(&item[0]), &item[1]) {
                ("str", item) => (AbloomType::Bytes, text(item).into()),
                ("bytes", item) => (AbloomType::Bytes, hex(item)),
                ("int", item) => (AbloomType::Int, text(item).into()),
                ("float", item) => (AbloomType::Float, text(item).into()),
                (other, _) => panic!("type {other}"),
            };
            Funnel::Abloom(of).key(&item, &mut Vec::new()).unwrap().to_vec()
        })
        .collect()
}

#[test]
fn filters_are_those_of_abloom() {
    const FREE_THREADING_AT: usize = 29;
    let keys = keys();
    for case in list(&json("abloom/abloom.json")["filters"]) {
        let (capacity, rate) = (number(&case["capacity"]) as u64, real(&case["rate"]));
        let mut contents = Contents::new(create(capacity, rate).unwrap());
        let expected = text(&case["new"]);
        let new = insert(&mut contents, &keys[..expected.len()]).unwrap();
        assert_eq!(digits(new), expected, "{capacity} {rate}");
        let file = hex(&case["to_bytes_hex"]);
        let mut written = encode("abloom", &contents).unwrap();
        // `create` makes no filter for several threads.
        written[FREE_THREADING_AT] = file[FREE_THREADING_AT];
        assert_eq!(written, file, "{capacity} {rate}");
        let read = Contents::new(decode(&file).unwrap());
        assert_eq!(encode("abloom", &read).unwrap(), file);
        let found = digits(answers(&read, &keys));
        assert_eq!(found, text(&case["found_0_399"]), "{capacity} {rate}");
        assert_eq!(read.info().rate_planned, Some(rate));
    }
}

#[test]
fn plans_are_those_of_abloom() {
    for case in list(&json("abloom/abloom.json")["plans"]) {
        let blocks = plan(number(&case["items"]) as u64, real(&case["rate"]));
        assert_eq!(i128::from(blocks) * 512, number(&case["bits"]), "{case}");
    }
}

#[test]
fn filters_of_equal_size_merge() {
    let keys = keys();
    let filter = |from: usize, to: usize| {
        let mut contents = Contents::new(create(100, 0.01).unwrap());
        insert(&mut contents, &keys[from..to]).unwrap();
        contents
    };
    let mut merged = filter(0, 40);
    merged.merge(&filter(30, 90)).unwrap();
    assert_eq!(merged, filter(0, 90));
    let larger = Contents::new(create(1_000, 0.01).unwrap());
    assert_fails(merged.merge(&larger), "layouts differ");
}

#[test]
fn broken_files_are_refused_by_field() {
    let good = hex(&json("abloom/abloom.json")["filters"][1]["to_bytes_hex"]);
    let changes = [
        (0, b'a', "the magic number at byte 0"),
        (4, 1, "the version at byte 4 is 1, expected 2"),
        (12, 0, "the capacity at byte 5 is 0"),
        (11, 9, "the number of blocks at byte 21 is 1, expected the number that the capacity"),
        (5, 0xff, "the number of blocks at byte 21"),
        (13, 0xbf, "the rate at byte 13"),
        (13, 0x7f, "the rate at byte 13"),
        (28, 0, "the number of blocks at byte 21 is 0"),
        (28, 2, "the number of blocks at byte 21 is 2"),
        (21, 0xff, "the number of blocks at byte 21"),
        (29, 2, "the free threading at byte 29 is 2"),
    ];
    assert_refused(&good, decode, &changes);
    for len in 0..good.len() {
        let error = decode(&good[..len]).unwrap_err().to_string();
        assert!(error.starts_with("truncated in the"), "{len}: {error}");
    }
    assert!(decode(&[&good[..], &[0]].concat()).is_err());
    // The plan is consistent, and the bits are missing: nothing is allocated.
    let numbers = [1 << 50, 0.01_f64.to_bits(), plan(1 << 50, 0.01)].map(u64::to_be_bytes);
    let huge = [&b"ABLM\x02"[..], numbers.as_flattened(), &[0; 65]].concat();
    let error = decode(&huge).unwrap_err().to_string();
    assert!(error.starts_with("truncated in the words"), "{error}");
}
