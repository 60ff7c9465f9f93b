//! Cassandra's filters give the answers that Cassandra's rules define, and re-encode to equal
//! bytes.

use crate::golden_data::{hex, json, list, number};
use crate::support::{answers, assert_fails, decode, decode_with, encode_with, insert, versioned};
use tamis_formats::cassandra::{self, Release};
use tamis_formats::{DecodeErrorKind, DecodeOptions, EncodeError, Parameter};

const FILES: [(&str, &str); 3] =
    [("filter_db_4_0_hex", "nb"), ("filter_db_3_x_hex", "md"), ("filter_db_2_1_hex", "ka")];

#[test]
fn filters_of_three_layouts_are_the_same() {
    let golden = json("cassandra/cassandra.json");
    assert_eq!(list(&golden["filters"]).len(), 3);
    for case in list(&golden["filters"]) {
        for (file, version) in FILES {
            let Some(file) = case.get(file).filter(|file| file.is_string()) else { continue };
            let bytes = hex(file);
            let (probes, bits) = (&case["hash_count"], &case["capacity_bits"]);
            let mut header = (number(probes) as u32).to_be_bytes().to_vec();
            header.extend((number(bits) as u32 / 64).to_be_bytes());
            header.resize(bytes.len(), 0);
            let mut filter = decode_with("cassandra", &header, &versioned(version)).unwrap();
            let keys: Vec<_> = list(&case["keys"]).iter().map(hex).collect();
            insert(&mut filter, &keys).unwrap();
            let written = encode_with("cassandra", &filter, &versioned(version)).unwrap();
            assert!(written == bytes, "{version}: {case}");
            let read = decode_with("cassandra", &bytes, &versioned(version)).unwrap();
            assert_eq!(read, filter, "{version}");
            assert!(answers(&read, &keys).iter().all(|&found| found), "{version}");
        }
        let bits = number(&case["num_keys"]) * number(&case["buckets_per_element"]) + 20;
        assert_eq!(bits, number(&case["num_bits"]), "{case}");
    }
}

#[test]
fn probes_are_those_of_the_golden_data() {
    for case in list(&json("cassandra/cassandra.json")["filters"]) {
        let words = number(&case["capacity_bits"]) as usize / 64;
        let mut bytes = (number(&case["hash_count"]) as u32).to_be_bytes().to_vec();
        bytes.extend((words as u32).to_be_bytes());
        bytes.resize(8 + words * 8, 0);
        let mut filter = cassandra::decode(&bytes, Release::Since40).unwrap();
        filter.insert(&hex(&case["keys"][1]));
        for bit in list(&case["indexes_of_second_key_since_3.0"]) {
            let bit = number(bit) as usize;
            assert_eq!(filter.words()[bit / 64] >> (bit % 64) & 1, 1, "{case}");
        }
    }
}

#[test]
fn hashes_are_cassandras() {
    for case in list(&json("cassandra/cassandra.json")["hashes"]) {
        // In a filter of 2¹⁶ bits with one probe, the position of the set bit is the absolute value
        // of one half of the hash modulo 2¹⁶.
        for (release, half) in [(Release::Until22, "h1"), (Release::Since30, "h2")] {
            let empty = [&[0, 0, 0, 1, 0, 0, 4, 0][..], &[0; 8192]].concat();
            let mut filter = cassandra::decode(&empty, release).unwrap();
            filter.insert(&hex(&case["key"]));
            let half = u64::from_be_bytes(hex(&case[half]).try_into().unwrap());
            let bit = half.cast_signed().unsigned_abs() % 65_536;
            assert_eq!(filter.words()[bit as usize / 64], 1 << (bit % 64), "{case}");
        }
    }
}

#[test]
fn files_of_3_become_those_of_4_and_those_of_2_do_not() {
    for case in list(&json("cassandra/cassandra.json")["filters"]) {
        let file = |name: &str| case.get(name).filter(|file| file.is_string()).map(hex);
        let (Some(four), Some(three)) = (file("filter_db_4_0_hex"), file("filter_db_3_x_hex"))
        else {
            continue;
        };
        let contents = decode_with("cassandra", &three, &versioned("me")).unwrap();
        assert_eq!(encode_with("cassandra", &contents, &versioned("na")).unwrap(), four);
        let contents = decode_with("cassandra", &four, &versioned("oa")).unwrap();
        assert_eq!(encode_with("cassandra", &contents, &versioned("ma")).unwrap(), three);
        let Some(two) = file("filter_db_2_1_hex") else { continue };
        let contents = decode_with("cassandra", &two, &versioned("lb")).unwrap();
        let error = encode_with("cassandra", &contents, &versioned("na")).unwrap_err().to_string();
        assert!(error.contains("other order") && error.contains("items"), "{error}");
        assert_eq!(encode_with("cassandra", &contents, &versioned("jb")).unwrap(), two);
    }
}

#[test]
fn a_missing_version_is_requested() {
    let bytes = [&[0, 0, 0, 1, 0, 0, 0, 1][..], &[0; 8]].concat();
    let error = decode("cassandra", &bytes).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Missing(Parameter::Version));
    let contents = decode_with("cassandra", &bytes, &versioned("da")).unwrap();
    let error = encode_with("cassandra", &contents, &DecodeOptions::default()).unwrap_err();
    assert!(matches!(error, EncodeError::Missing(Parameter::Version)));
    for version in ["hf", "3.11", "", "M", "m"] {
        assert_fails(decode_with("cassandra", &bytes, &versioned(version)), "ma to me (3.x)");
        assert_fails(encode_with("cassandra", &contents, &versioned(version)), "na on");
    }
}

#[test]
fn broken_files_are_refused_by_field_and_place() {
    for (bytes, expected) in [
        (&b"\0\0\0"[..], "number of probes at byte 0"),
        (b"\0\0\0\0\0\0\0\x01", "number of probes at byte 0 is 0"),
        (b"\0\x01\0\0\0\0\0\x01\0\0\0\0\0\0\0\0", "number of probes at byte 0 is 65536"),
        (b"\0\0\0\x01\xff\0\0\0", "number of words at byte 4 is -16777216"),
        (b"\0\0\0\x01\x7f\xff\xff\xff\0", "words at byte 8"),
        (b"\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0", "end at byte 16"),
    ] {
        assert_fails(cassandra::decode(bytes, Release::Since40), expected);
    }
}

#[test]
fn filters_are_created_as_the_golden_ones() {
    // 10 bits per item and the fewest probes that keep a rate of 0.00819, which is the lowest rate
    // of that row of the table.
    for (rate, bits, probes) in [(0.00819, 256, 7), (0.092, 128, 3), (0.000744, 320, 10)] {
        let filter = cassandra::create(20, rate, Release::Since40).unwrap();
        assert_eq!((filter.rule().bits(), filter.rule().probes()), (bits, probes), "{rate}");
    }
    for (items, rate) in [(20, 1.0), (20, 1e-6), (u64::MAX, 0.01), (1 << 37, 0.01)] {
        assert_fails(cassandra::create(items, rate, Release::Since40), "items");
    }
}
