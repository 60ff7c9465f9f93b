//! RocksDB's filter blocks give the same answers in Tamis as in RocksDB. Tamis builds and
//! re-encodes them to equal bytes.

use crate::golden_data::{hex, json, list, number, real};
use crate::support::{answers, assert_fails, encode, encode_filter, insert};
use tamis_formats::rocksdb::{self, Generation};
use tamis_formats::{ForeignBloom, Format};

fn bloom(bytes: &[u8]) -> ForeignBloom {
    rocksdb::decode(bytes).unwrap().downcast_ref::<ForeignBloom>().unwrap().clone()
}

#[test]
fn filters_of_both_generations_are_built_as_in_rocksdb() {
    let golden = json("lsm/lsm_blocks.json");
    assert_eq!(list(&golden["rocksdb"]).len(), 5);
    for case in list(&golden["rocksdb"]) {
        let (keys, bits_per_key) = (number(&case["keys"]) as u64, real(&case["bits_per_key"]));
        let generation = match number(&case["format_version"]) {
            5.. => Generation::FastLocal,
            _ => Generation::Legacy,
        };
        let mut filter = rocksdb::create(keys, bits_per_key, generation).unwrap();
        (0..keys).for_each(|i| _ = filter.insert(format!("r{i:06}").as_bytes()));
        let bytes = hex(&case["filter_block_hex"]);
        assert_eq!(bloom(&bytes), filter, "{case}");
        assert!(encode_filter("rocksdb", &filter) == bytes, "{case}");
    }
}

#[test]
fn keys_of_every_length_to_2100_hash_as_in_rocksdb() {
    let bytes: Vec<u8> = (0..2100_u32).map(|i| (i * 5) as u8).collect();
    let golden = json("lsm/rocksdb_lengths.json");
    for (case, generation) in
        list(&golden["cases"]).iter().zip([Generation::FastLocal, Generation::Legacy])
    {
        let mut filter = rocksdb::create(2100, real(&case["bits_per_key"]), generation).unwrap();
        (1..=2100).for_each(|len| _ = filter.insert(&bytes[..len]));
        let expected = hex(&case["filter_block_hex"]);
        assert!(encode_filter("rocksdb", &filter) == expected, "{generation:?}");
    }
}

#[test]
fn probes_are_planned_as_in_rocksdb() {
    for row in list(&json("lsm/rocksdb_lengths.json")["plans_of_6400_keys"]["rows"]) {
        let filter = rocksdb::create(6400, real(&row[0]), Generation::FastLocal).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&row[1]), "{row}");
        assert_eq!(i128::from(filter.rule().probes()), number(&row[2]), "{row}");
    }
}

#[test]
fn hashes_of_all_cases_are_those_of_rocksdb() {
    let cases = json("lsm/lsm_blocks.json")["rocksdb_hash64"]["cases"].clone();
    assert_eq!(list(&cases).len(), 24);
    for case in list(&cases) {
        let key: Vec<_> = (0..number(&case["length"]) as u32).map(|i| (i * 5) as u8).collect();
        // With one probe and 128 lines, the set bit shows the seven high bits of the low half and
        // the nine high bits of the high half.
        let mut filter = bloom(&[&[0; 128 * 64][..], &[0xff, 0, 1, 0, 0]].concat());
        filter.insert(&key);
        let hash = u64::from_be_bytes(hex(&case["hash"]).try_into().unwrap());
        let bit = (hash as u32 >> 25) as usize * 512 + (hash >> 55) as usize;
        assert_eq!(filter.words()[bit / 64], 1 << (bit % 64), "{case}");
    }
}

#[test]
fn tails_of_the_old_hash_are_signed() {
    let one = bloom(&[&[0; 64][..], &[1, 1, 0, 0, 0]].concat());
    let place = |key: &[u8]| {
        let mut filter = one.clone();
        filter.insert(key);
        (0..512).find(|bit| filter.words()[bit / 64] >> (bit % 64) & 1 == 1)
    };
    // The hash with a signed tail is 0x0f2ba540, that of LevelDB 0x5b663814.
    assert_eq!(place(b"\xc3\x97"), Some(0x140));
    assert_eq!(place(b"b"), Some(0x1c4));
}

#[test]
fn reserved_trailers_answer_yes_as_in_rocksdb() {
    for trailer in [
        [0, 1, 0, 0, 0],
        [0xff, 1, 7, 0, 0],
        [0xff, 0, 0, 0, 0],
        [0xff, 0, 31, 0, 0],
        [0xff, 0, 0x27, 0, 0],
        [0xff, 0, 7, 1, 0],
        [0xfd, 0, 0, 0, 0],
        [0x80, 0, 0, 0, 0],
    ] {
        let bytes = [&[0; 64][..], &trailer].concat();
        let mut contents = rocksdb::decode(&bytes).unwrap();
        assert_eq!(answers(&contents, &["a", "b"]), [true, true], "{trailer:?}");
        let info = contents.info();
        assert!(info.rate_now == 1.0 && info.warnings[0].contains("every item may be present"));
        assert!(insert(&mut contents, &["a"]).is_err());
        assert!(contents.merge(&contents.clone()).is_err());
        assert_eq!(encode("rocksdb", &contents).unwrap(), bytes);
    }
}

#[test]
fn ribbon_and_damage_are_refused_by_name() {
    for (len, trailer, expected) in [
        (64, [0xfe, 0, 0, 0, 0], "Ribbon"),
        (64, [6, 3, 0, 0, 0], "number of lines at byte 65 is 3"),
        (64, [6, 0, 0, 0, 0], "number of lines at byte 65 is 0"),
        (64, [6, 2, 0, 0, 0], "power of two"),
        (0, [6, 1, 0, 0, 0], "number of lines"),
        (0, [0xff, 0, 7, 0, 0], "whole lines"),
        (65, [0xff, 0, 7, 0, 0], "whole lines"),
    ] {
        let bytes = [&vec![0; len][..], &trailer].concat();
        assert_fails(rocksdb::decode(&bytes), expected);
    }
    // Two blocks of 128 slots with 3 columns each.
    let ribbon = [&[1; 96][..], &[0xfe, 0, 2, 0, 0]].concat();
    assert_eq!(Format::of(&ribbon)[0].name, "rocksdb", "so that its error names Ribbon");
    assert!(rocksdb::decode(&[0; 4]).unwrap_err().to_string().contains("truncated"));
}

#[test]
fn filters_with_longer_cache_lines_are_read() {
    let bytes = [&[0; 3 * 128][..], &[6, 3, 0, 0, 0]].concat();
    let mut filter = bloom(&bytes);
    assert_eq!(filter.rule().bits(), 3 * 1024);
    assert!(filter.insert(b"key") && filter.contains(b"key"));
    assert_eq!(encode_filter("rocksdb", &bloom(&bytes)), bytes);
}

#[test]
fn the_rate_is_the_mean_over_lines() {
    // The sums modulo 512 often repeat bits. So the rate of the legacy filter is measured.
    for generation in [Generation::Legacy, Generation::FastLocal] {
        let mut filter = rocksdb::create(20_000, 10.0, generation).unwrap();
        (0..20_000_u32).for_each(|i| _ = filter.insert(&i.to_le_bytes()));
        let taken = (20_000..220_000_u32).filter(|i| filter.contains(&i.to_le_bytes())).count();
        let (measured, estimated) = (taken as f64 / 200_000.0, filter.estimate_rate());
        assert!((measured / estimated - 1.0).abs() < 0.08, "{measured} {estimated}");
    }
}
