//! Filters of Parquet columns give the same answers as in other readers, and re-encode to equal
//! bytes.

use crate::golden_data::{base64, hex, json, list, number, real, text};
use crate::support::{assert_fails, encode, planned};
use tamis::{AnyFilter, Bits as _, Hasher, Kind, ParquetBloom, Plan};
use tamis_formats::{
    Contents, DecodeError, DecodeErrorKind, DecodeOptions, Funnel, TamisFile, parquet,
};

fn decode(bytes: &[u8]) -> Result<ParquetBloom, DecodeError> {
    parquet::decode(bytes, &DecodeOptions::default())
}

fn bitset(filter: &ParquetBloom) -> Vec<u8> {
    filter.bits().words().iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn funnels_equal_the_plain_encoding() {
    let mut tested = 0;
    for case in list(&json("parquet/filters.json")["hashes"]) {
        let funnel = match text(&case["type"]) {
            "int32" => Funnel::Int,
            "int64" => Funnel::Long,
            "float" => Funnel::Float,
            "double" => Funnel::Double,
            _ => continue,
        };
        let item = case["value"].to_string();
        let mut scratch = Vec::new();
        let key = funnel.key(item.trim_matches('"').as_bytes(), &mut scratch).unwrap();
        assert_eq!(key, hex(&case["plain_hex"]), "{case}");
        assert_eq!(format!("{:016x}", Hasher::xxh64(0).hash(key)), text(&case["hash"]));
        tested += 1;
    }
    assert!(tested >= 20, "{tested}");
}

#[test]
fn filters_are_at_the_offsets_in_whole_files() {
    let golden = json("parquet/writers.json");
    for file in list(&golden["parquet_files"]) {
        let bytes = base64(&file["file_base64"]);
        for column in list(&file["columns"]) {
            let at = number(&column["bloom_filter_offset"]) as usize;
            let len = number(&column["bloom_filter_length"]) as usize;
            let (filter, rest) =
                parquet::decode_start(&bytes[at..], &DecodeOptions::default()).unwrap();
            assert_eq!(bytes.len() - at - rest.len(), len, "{}", column["column"]);
            assert_eq!(bitset(&filter), hex(&column["bitset_hex"]), "{}", column["column"]);
            let again = encode("parquet", &Contents::new(filter)).unwrap();
            assert_eq!(again, bytes[at..at + len], "{}", column["column"]);
        }
    }
}

#[test]
fn lengths_must_be_those_of_the_header() {
    for case in list(&json("parquet/writers.json")["header_plus_bitset_parsing"]) {
        let read = decode(&hex(&case["hex"]));
        assert_eq!(read.is_ok(), case["rust_result"].get("blocks").is_some(), "{case}");
        if let Err(error) = read {
            let kind = error.kind;
            let is_length =
                matches!(kind, DecodeErrorKind::Truncated { .. } | DecodeErrorKind::TooLong { .. });
            assert!(is_length, "{case}: {kind:?}");
        }
    }
}

#[test]
fn unknown_choices_and_broken_blocks_are_refused_by_name() {
    let good = [&b"\x15\x40\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0"[..], &[7; 32]].concat();
    assert!(decode(&good).is_ok());
    for (at, byte, field) in [
        (3, 0x2c, "algorithm"),
        (7, 0x2c, "hash"),
        (11, 0x2c, "compression"),
        (4, 1, "algorithm"),
        (14, 0x1c, "end of the header"),
        (1, 0x42, "number of bytes"),
        (1, 0, "number of bytes"),
        (1, 0x3f, "number of bytes"),
        (0, 0x16, "number of bytes"),
    ] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains("expected"), "{error}");
    }
    for size in [&b"\x15\xc0\x00"[..], b"\x15\xff\xff\xff\xff\x1f", b"\x15\x80\x80\x80\x80\x80\x01"]
    {
        let bytes = [size, &good[2..]].concat();
        assert_fails(decode(&bytes), "shortest form");
    }
}

#[test]
fn plans_equal_those_of_the_writers() {
    let golden = json("parquet/writers.json");
    for row in list(&golden["optimal_num_of_bits"]["rows"]) {
        let bits = parquet::java_bits(number(&row[0]) as u64, real(&row[1]));
        assert_eq!(bits.map(i128::from), Some(number(&row[2])), "{row}");
    }
    for case in list(&golden["size_rounding_and_errors"]) {
        if let Some(requested) = case.get("requested_bytes") {
            let bytes = parquet::java_bytes(number(requested) as i64);
            assert_eq!(i128::from(bytes), number(&case["bitset_bytes"]), "{case}");
        } else if let Some(rate) = case.get("fpp") {
            assert_eq!(parquet::java_bits(10, real(rate)), None, "{case}");
        }
    }
    for row in list(&golden["rust_parquet_60_new_with_ndv_fpp"]["rows"]) {
        let bytes = parquet::rust_bytes(number(&row[0]) as u64, real(&row[1]));
        assert_eq!(bytes.map(i128::from), row[2].as_u64().map(i128::from), "{row}");
    }
    let default = parquet::pyarrow_bytes(parquet::PYARROW_ITEMS, parquet::PYARROW_RATE);
    assert_eq!(default, Some(1 << 20));
    assert_eq!(parquet::pyarrow_bytes(40, 0.05), Some(64), "the columns of the golden file");
}

#[test]
fn the_rust_crate_folds_to_these_bytes() {
    for case in list(&json("parquet/writers.json")["rust_parquet_60_fold"]["cases"]) {
        let (items, rate) = (number(&case["ndv"]) as u64, real(&case["fpp"]));
        let bytes = parquet::rust_bytes(items, rate).unwrap();
        assert_eq!(i128::from(bytes), number(&case["bytes_before"]), "{case}");
        let mut filter = parquet::empty(bytes, &DecodeOptions::default()).unwrap();
        let (_, last) = text(&case["items"]).rsplit_once("..f").unwrap();
        (0..=last.parse::<u32>().unwrap()).for_each(|i| _ = filter.insert(&format!("f{i}")));
        let folded = parquet::fold(&filter, rate).unwrap();
        let expected = hex(&case["written_with_header_hex"]);
        assert_eq!(encode("parquet", &Contents::new(folded)).unwrap(), expected, "{case}");
    }
}

#[test]
fn filters_merge_as_in_parquet_java() {
    let golden = &json("parquet/filters.json")["merge"];
    let [mut left, right, merged] = ["left", "right", "merged"].map(|name| {
        let bits = hex(&golden[name]);
        let mut bytes = vec![0x15, 0x80, 0x04];
        bytes.extend(b"\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0");
        assert_eq!(bits.len(), 256);
        bytes.extend(bits);
        Contents::new(decode(&bytes).unwrap())
    });
    left.merge(&right).unwrap();
    assert_eq!(left, merged);
    let other = Contents::new(parquet::empty(32, &DecodeOptions::default()).unwrap());
    assert!(left.merge(&other).unwrap_err().to_string().contains("2048 bits"));
}

#[test]
fn tamis_files_hold_the_same_filter_both_ways() {
    let plan = Plan::for_kind(Kind::Parquet, 1000, 0.01).unwrap();
    let mut filter = ParquetBloom::from_plan(&plan, Hasher::xxh64(0)).unwrap();
    (0..1000_u32).for_each(|i| _ = filter.insert(&i));
    let contents = Contents::new(TamisFile::new(AnyFilter::Parquet(filter.clone())));
    let column = encode("parquet", &contents).unwrap();
    let back = Contents::new(parquet::decode(&column, &planned(1000, 0.01)).unwrap());
    let file = TamisFile::decode(&encode("tamis", &back).unwrap()).unwrap();
    assert_eq!(file.filter, AnyFilter::Parquet(filter));
    assert_eq!(encode("parquet", &Contents::new(file)).unwrap(), column);

    let seeded = ParquetBloom::from_plan(&plan, Hasher::xxh64(1)).unwrap();
    let contents = Contents::new(TamisFile::new(AnyFilter::Parquet(seeded)));
    let error = encode("parquet", &contents).unwrap_err();
    assert!(error.contains("xxh64 seed 1") && error.contains("items"), "{error}");
}

#[test]
fn a_filter_without_a_plan_gets_a_capacity_from_its_size() {
    let filter = parquet::empty(1 << 20, &DecodeOptions::default()).unwrap();
    let plan = filter.plan();
    assert_eq!(plan.rate(), parquet::JAVA_RATE);
    assert!((700_000..900_000).contains(&plan.items()), "{}", plan.items());
}
