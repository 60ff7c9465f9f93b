//! The golden files of every format.

use serde_json::Value as Json;
use tamis_formats::DecodeOptions;

use super::{Golden, base64, hex, json, list, number, real, text};

/// Every golden file.
pub fn golden() -> Vec<Golden> {
    let recorded =
        LISTS.iter().flat_map(|(format, list, name, bytes)| recorded(format, list, name, bytes));
    [
        tamis(),
        guava(),
        bitmaps(),
        my_bloom_filter(),
        c_hashcode(),
        redis_bitmap(),
        redis_bitmaps(),
        redisbloom(),
        redisson(),
        bip37(),
        bip158(),
        cassandra(),
        hadoop(),
        hadoop_dynamic(),
        orc(),
        scalable(),
        roaring(),
    ]
    .into_iter()
    .flatten()
    .chain(recorded)
    .collect()
}

/// Lists of recorded files: the format, the JSON file and the list in it, and the members with the
/// name of a case and with its bytes.
const LISTS: [(&str, &str, &str, &str); 18] = [
    ("byte-buffer", "seeds_java/byte_buffer.json/filters", "size", "bytes_hex"),
    ("parquet", PARQUET, "items", "written_with_header_hex"),
    ("spark", "spark/spark.json/spark_bloom_filter", "bit_size", "write_to_base64"),
    ("hive", "hive/hive.json", "max_entries", "serialized_base64"),
    ("stream-lib", "stream-lib/stream_lib.json", "buckets", "serialized_base64"),
    ("bits-and-blooms", BITS_AND_BLOOMS, "bits", "write_to_hex"),
    ("bits-and-blooms-json", BITS_AND_BLOOMS, "bits", "marshal_json"),
    ("dcso", "dcso/dcso.json/filters", "capacity", "file_hex"),
    ("abloom", "abloom/abloom.json/filters", "capacity", "to_bytes_hex"),
    ("bloom-filters", "bloom-filters/bloom-filters.json/filters", "bits", "json"),
    ("rocksdb", "lsm/lsm_blocks.json/rocksdb", "keys", "filter_block_hex"),
    ("leveldb", "lsm/lsm_blocks.json/leveldb", "keys", "filter_block_hex"),
    ("pybloomfiltermmap", "python/pybloomfiltermmap.json/filters", "error_rate", "file_base64"),
    ("rbloom", "python/rbloom.json", "fpr", "saved_hex"),
    ("pybloom-live", "python/pybloom_live.json/filters", "error_rate", "file_base64"),
    ("pybloom-live", "python/pybloom_live.json/more/filters", "error_rate", "file_base64"),
    ("pybloom-live-scalable", "python/pybloom_live.json/more/scalable", "n", "file_base64"),
    ("roaring", "roaring/java.json", "name", "hex"),
];
const PARQUET: &str = "parquet/writers.json/rust_parquet_60_fold/cases";
const BITS_AND_BLOOMS: &str = "bits-and-blooms/bits-and-blooms.json/filters";

/// Reads a row of [`LISTS`]. The name of the member with the bytes ends with their encoding.
fn recorded(format: &'static str, cases: &str, name: &str, bytes: &str) -> Vec<Golden> {
    let (file, pointer) = cases.split_once(".json").unwrap();
    let decode = match bytes.rsplit('_').next() {
        Some("hex") => hex,
        Some("base64") => base64,
        _ => |json: &Json| text(json).into(),
    };
    let golden = json(&format!("{file}.json"));
    // The recorded data contain only the bytes of small files.
    let cases = list(golden.pointer(pointer).unwrap()).iter().filter(|it| it.get(bytes).is_some());
    let files: Vec<_> = cases
        .map(|case| Golden::new(format, case[name].to_string(), decode(&case[bytes])))
        .collect();
    assert!(!files.is_empty(), "no case of {file}{pointer} has the member {bytes}");
    files
}

fn tamis() -> Vec<Golden> {
    let files = std::fs::read_dir(super::path("tamis")).unwrap().map(|entry| entry.unwrap());
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "tamis"))
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            Golden::new("tamis", name, std::fs::read(file.path()).unwrap())
        })
        .collect()
}

fn guava() -> Vec<Golden> {
    let golden = json("guava/filters.json");
    // Small files: the tests truncate them at each byte and flip each byte.
    let small = |filter: &&Json| filter["write_to_len"].as_u64() < Some(1000);
    list(&golden["filters"])
        .iter()
        .filter(small)
        .map(|filter| {
            Golden::new("guava", filter["id"].to_string(), base64(&filter["write_to_base64"]))
        })
        .collect()
}

fn bitmaps() -> Vec<Golden> {
    let golden = json("seeds_java/bitmap.json");
    let steps = list(&golden["bitmap_000"]["trace"]).iter().enumerate();
    let file = |format, i, bytes| Golden::new(format, format!("step {i}"), bytes);
    steps
        .flat_map(|(i, step)| {
            let bytes = hex(&step["bytes_after"]);
            // Redis numbers the bits of a byte from the most significant one.
            let redis = bytes.iter().map(|byte| byte.reverse_bits()).collect();
            [file("java-bitmap", i, bytes), file("redis-bits", i, redis)]
        })
        .collect()
}

/// Sets the bits of the recorded positions, in the form of `BitSet.toByteArray`.
fn my_bloom_filter() -> Vec<Golden> {
    let golden = json("seeds_java/my_bloom_filter.json");
    let mut bytes = Vec::new();
    for item in list(&golden["positions"]) {
        for bit in list(&item["positions"]).iter().map(number) {
            // Skips the other recorded positions, because they are far apart. The test flips every
            // byte, so it needs a small bitmap.
            if (0..4096).contains(&bit) {
                let at = bit as usize / 8;
                bytes.resize(bytes.len().max(at + 1), 0);
                bytes[at] |= 1 << (bit % 8);
            }
        }
    }
    let file = |name: &str, bytes| Golden::new("my-bloom-filter", name, bytes);
    vec![file("positions", bytes), file("empty", Vec::new())]
}

/// The recorded positions modulo 512, which is the position AND 511.
fn c_hashcode() -> Vec<Golden> {
    let golden = json("seeds_java/c_hashcode.json");
    let mut bytes = vec![0; 64];
    for case in list(&golden["positions"]) {
        for bit in list(&case["cap_1048576"]).iter().map(|bit| number(bit) as usize % 512) {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
    }
    vec![Golden::new("c-hashcode", "512", bytes)]
}

fn roaring() -> Vec<Golden> {
    let golden = json("roaring/bitmaps.json");
    // Omits values near 2³²: as a plain bitmap, a set with such values would take 512 MiB.
    let small = list(&golden["cases"])
        .iter()
        .filter(|case| case.get("base64").is_some() && case["name"] != "some");
    small
        .map(|case| {
            let name = format!("{} {}", case["name"], case["width"]);
            Golden::new("roaring", name, base64(&case["base64"]))
        })
        .collect()
}

fn redisbloom() -> Vec<Golden> {
    let golden = json("redisbloom/redisbloom.json");
    let of_filter = |filter: &Json| {
        let key = Some(text(&filter["name"]).into());
        Golden {
            format: "redisbloom",
            name: filter["name"].to_string(),
            bytes: super::chunks_as_commands(filter),
            options: DecodeOptions { key, ..DecodeOptions::default() },
        }
    };
    list(&golden["filters"]).iter().map(of_filter).collect()
}

fn redis_bitmap() -> Vec<Golden> {
    let golden = &json("seeds_java/redis_helper.json")["bloom_filter_helper_000_003"];
    let article = &golden["article_test_main"];
    vec![bitmap("redis-bitmap", "article", &article["redis_string_hex"], 1000, 0.1)]
}

fn redis_bitmaps() -> Vec<Golden> {
    let golden = json("seeds_java/redis_bitmaps.json");
    let small = list(&golden["redis_bitmaps_002"]).iter().flat_map(|case| {
        let (n, fpp) = (number(&case["n"]) as u64, real(&case["fpp"]));
        let keys = list(&case["keys"]).iter().filter(|key| key.get("hex").is_some());
        keys.map(move |key| bitmap("redis-bitmaps", text(&key["key"]), &key["hex"], n, fpp))
    });
    small.collect()
}

fn redisson() -> Vec<Golden> {
    let golden = json("redisson/filters.json");
    let small = list(&golden["filters"]).iter().filter(|it| it.get("redis_string_hex").is_some());
    small
        .map(|it| {
            let n = number(&it["expected_insertions"]) as u64;
            let fpp = real(&it["false_probability"]);
            bitmap("redisson", &n.to_string(), &it["redis_string_hex"], n, fpp)
        })
        .collect()
}

/// A Redis string, and the capacity and rate of its filter.
fn bitmap(format: &'static str, name: &str, string: &Json, n: u64, fpp: f64) -> Golden {
    let options = DecodeOptions { items: Some(n), rate: Some(fpp), ..DecodeOptions::default() };
    Golden { format, name: name.into(), bytes: hex(string), options }
}

fn bip37() -> Vec<Golden> {
    let golden = json("bitcoin/bip37.json");
    let no_bytes = list(&golden["edge_cases"]).iter().take(1);
    let rows = list(&golden["filters"]).iter().chain(no_bytes);
    rows.filter(|row| row["filterload_hex"].is_string())
        .map(|row| Golden::new("bip37", text(&row["filterload_hex"]), hex(&row["filterload_hex"])))
        .collect()
}

fn bip158() -> Vec<Golden> {
    let golden = json("bitcoin/bip158.json");
    list(&golden["blocks"])
        .iter()
        .map(|block| Golden {
            format: "bip158",
            name: block["height"].to_string(),
            bytes: hex(&block["basic_filter_hex"]),
            options: DecodeOptions {
                block_hash: Some(text(&block["block_hash"]).parse().unwrap()),
                ..DecodeOptions::default()
            },
        })
        .collect()
}

fn cassandra() -> Vec<Golden> {
    let golden = json("cassandra/cassandra.json");
    let files = list(&golden["filters"]).iter().flat_map(|filter| {
        [("filter_db_4_0_hex", "na"), ("filter_db_3_x_hex", "me"), ("filter_db_2_1_hex", "la")]
            .map(|(file, version)| (filter.get(file), version))
    });
    files
        .filter_map(|(file, version)| Some((file?, version)))
        .map(|(file, version)| Golden {
            format: "cassandra",
            name: version.into(),
            bytes: hex(file),
            options: DecodeOptions { version: Some(version.into()), ..DecodeOptions::default() },
        })
        .collect()
}

fn hadoop() -> Vec<Golden> {
    let golden = json("hadoop/hadoop.json");
    let of = |format, case: &Json| {
        let name = format!("{} {}", case["hash_type"], case["vector_size"]);
        Golden::new(format, name, hex(&case["writable_hex"]))
    };
    let foreign_bloom = list(&golden["hadoop_bloom_filter"]).iter().map(|case| of("hadoop", case));
    foreign_bloom.chain([of("hadoop-counting", &golden["hadoop_counting_bloom_filter"])]).collect()
}

/// Rows that Hadoop wrote, after the header of a `DynamicBloomFilter`.
fn hadoop_dynamic() -> Vec<Golden> {
    let golden = json("hadoop/hadoop.json");
    let filters = list(&golden["hadoop_bloom_filter"]).iter().zip(1..);
    filters
        .map(|(case, rows)| {
            let bytes = dynamic_of_rows(&hex(&case["writable_hex"]), rows);
            Golden::new("hadoop-dynamic", format!("{rows} rows"), bytes)
        })
        .collect()
}

/// Repeats a `BloomFilter` as the rows of a `DynamicBloomFilter` with 9 records per row.
pub fn dynamic_of_rows(row: &[u8], rows: u32) -> Vec<u8> {
    let header = &row[..13];
    let numbers = [9, 9, rows].map(u32::to_be_bytes);
    [header, numbers.as_flattened(), &row.repeat(rows as usize)].concat()
}

fn orc() -> Vec<Golden> {
    let golden = json("orc/orc.json");
    let filters: Vec<_> = list(&golden).iter().map(orc_message).collect();
    let file = |name: &str, bytes| Golden::new("orc", name, bytes);
    // Large files. The tests truncate and flip them at every byte, too.
    let mut files: Vec<_> = filters.iter().map(|it| file("one row group", it.clone())).collect();
    files.push(file("two row groups", [&filters[0][..], &filters[2]].concat()));
    files
}

/// A recorded filter as one row group of a `BLOOM_FILTER_UTF8` stream, in Protocol Buffers.
pub fn orc_message(case: &Json) -> Vec<u8> {
    fn varint(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 128 {
            bytes.push(number as u8 | 128);
            number /= 128;
        }
        bytes.push(number as u8);
        bytes
    }
    let words = base64(&case["bitset_little_endian_longs_base64"]);
    let probes = varint(number(&case["num_hash_functions"]) as usize);
    let message = [&[0x08][..], &probes, &[0x1a], &varint(words.len()), &words].concat();
    [&[0x0a][..], &varint(message.len()), &message].concat()
}

fn scalable() -> Vec<Golden> {
    let case = &json("python/pybloom_live.json")["scalable"];
    vec![Golden::new("pybloom-live-scalable", "scalable", base64(&case["file_base64"]))]
}
