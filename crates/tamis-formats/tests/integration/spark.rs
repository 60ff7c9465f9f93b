//! Spark's filters give the same answers in Tamis as in Spark, and re-encode to equal bytes.

use crate::golden_data::{base64, hex, json, list, number, real, text, to_hex};
use crate::support::{assert_fails, encode_filter, planned, versioned};
use serde_json::Value as Json;
use tamis_formats::spark::{self, Version};
use tamis_formats::{Charset, Contents, Format, Funnel};

fn version(golden: &Json) -> Version {
    match text(&golden["version"]) {
        "V1" => Version::V1,
        _ => Version::V2 { seed: number(&golden["seed"]) as i32 },
    }
}

fn key(funnel: Funnel, item: &str) -> Vec<u8> {
    funnel.key(item.as_bytes(), &mut Vec::new()).unwrap().to_vec()
}

const TEXT: Funnel = Funnel::Text(Charset::Utf8);

#[test]
fn filters_of_both_versions_are_the_same() {
    let golden = json("spark/spark.json");
    assert_eq!(list(&golden["spark_bloom_filter"]).len(), 8);
    for case in list(&golden["spark_bloom_filter"]) {
        let items = number(&case["expected_items"]) as u64;
        let bits = number(&case["num_bits"]) as u64;
        let mut filter = spark::create_with_bits(items, bits, version(case)).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&case["bit_size"]), "{case}");
        let (_, put) = text(&case["put"]).split_once("i<").unwrap();
        let put: u32 = put.split_once(':').unwrap().0.parse().unwrap();
        for i in 0..put {
            let end = if i % 7 == 0 { "中" } else { "" };
            filter.insert(&match i % 2 {
                0 => key(Funnel::Long, &i.to_string()),
                _ => key(TEXT, &format!("s{i}{end}")),
            });
        }
        filter.insert(&[1, 2, 0xff]);
        for (funnel, probes) in [(Funnel::Long, "probe_long"), (TEXT, "probe_string")] {
            for probe in list(&case[probes]) {
                let item = probe[0].to_string();
                let item = probe[0].as_str().unwrap_or(&item);
                let found = filter.contains(&key(funnel, item));
                assert_eq!(found, probe[1].as_bool().unwrap(), "{case}: {item}");
            }
        }
        assert_eq!(i128::from(filter.count_ones()), number(&case["cardinality"]), "{case}");
        let rate = real(&case["expected_fpp"]);
        // Spark assumes independent probes.
        let stated = filter.fill().powf(filter.rule().probes().into());
        assert!((stated / rate - 1.0).abs() < 1e-12, "{case}");
        let bytes = base64(&case["write_to_base64"]);
        assert_eq!(spark::decode(&bytes).unwrap(), filter, "{case}");
        assert!(encode_filter("spark", &filter) == bytes, "{case}");
    }
}

#[test]
fn create_plans_as_spark_does() {
    for case in list(&json("spark/spark.json")["spark_default_create"]) {
        let (items, rate) = (number(&case["n"]) as u64, real(&case["fpp"]));
        let filter = spark::create(items, rate, Version::V2 { seed: 0 }).unwrap();
        assert_eq!(i128::from(filter.rule().bits()), number(&case["bit_size"]), "{case}");
        let start = to_hex(&encode_filter("spark", &filter)[..16]);
        assert_eq!(start, text(&case["first_16_bytes"]), "{case}");
    }
    for (items, rate) in [(0, 0.01), (1, 1.0), (1, 0.0), (1, f64::NAN), (1 << 40, 1e-9)] {
        assert_fails(spark::create(items, rate, Version::V1), "plan");
    }
}

#[test]
fn the_default_is_a_version_that_every_spark_reads() {
    let created = spark::create(1000, 0.03, Version::default()).unwrap();
    assert_eq!(encode_filter("spark", &created)[..4], 1_u32.to_be_bytes());
    let created = (Format::named("spark").unwrap().create)(&planned(1000, 0.03)).unwrap();
    assert_eq!(created, Contents::new(spark::create(1000, 0.03, Version::V1).unwrap()));
}

#[test]
fn read_from_fails_where_spark_does() {
    for case in list(&json("spark/spark.json")["spark_read_from"]) {
        let read = spark::decode(&hex(&case["hex"]));
        // Spark reads a filter without bits, but fails at the first lookup.
        let is_ok = case["result"] == "ok" && number(&case["bit_size"]) > 0;
        assert_eq!(read.is_ok(), is_ok, "{case}");
        if let Err(error) = read {
            assert!(error.to_string().contains("byte"), "{error}");
        }
    }
}

#[test]
fn only_equal_versions_and_seeds_merge() {
    let versions = [Version::V1, Version::V2 { seed: 0 }, Version::V2 { seed: 1 }];
    for one in versions {
        for other in versions {
            let [mut a, mut b] = [one, other].map(|it| spark::create(100, 0.03, it).unwrap());
            a.insert(b"left");
            b.insert(b"right");
            assert_eq!(a.merge(&b), one == other);
            assert!(one != other || a.contains(b"left") && a.contains(b"right"));
        }
    }
}

#[test]
fn a_version_that_the_bytes_contradict_is_refused() {
    let decode = Format::named("spark").unwrap().decode;
    for (version, other) in [(Version::V1, "2"), (Version::V2 { seed: 0 }, "1")] {
        let bytes = encode_filter("spark", &spark::create_with_bits(10, 64, version).unwrap());
        assert!(decode(&bytes, &versioned(if other == "2" { "1" } else { "2" })).is_ok());
        assert!(decode(&bytes, &versioned(other)).is_err());
        assert!(decode(&bytes, &versioned("3")).is_err());
    }
}
