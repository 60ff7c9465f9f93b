//! The golden files of every format.

use tamis_formats::DecodeOptions;

use super::python::{pybloom_live, pybloomfiltermmap, rbloom};
use super::{Golden, base64, hex, json, list, number, text};

/// Every golden file.
pub fn golden() -> Vec<Golden> {
    [
        tamis(),
        guava(),
        bitmaps(),
        my_bloom_filter(),
        byte_buffer(),
        c_hashcode(),
        redis_bitmap(),
        redis_bitmaps(),
        redisbloom(),
        redisson(),
        bip37(),
        bip158(),
        parquet(),
        spark(),
        cassandra(),
        hadoop(),
        hadoop_dynamic(),
        hive(),
        orc(),
        stream_lib(),
        bits_and_blooms(),
        bits_and_blooms_json(),
        dcso(),
        abloom(),
        bloom_filters(),
        lsm(),
        pybloom_live(),
        pybloomfiltermmap(),
        rbloom(),
        roaring(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn tamis() -> Vec<Golden> {
    let files = std::fs::read_dir(super::path("tamis")).unwrap().map(|entry| entry.unwrap());
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "tamis"))
        .map(|file| Golden {
            format: "tamis",
            name: file.file_name().into_string().unwrap(),
            bytes: std::fs::read(file.path()).unwrap(),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn guava() -> Vec<Golden> {
    let golden = json("guava/filters.json");
    // Small files: the tests truncate them at each byte and flip each byte.
    let small = |filter: &&serde_json::Value| filter["write_to_len"].as_u64() < Some(1000);
    list(&golden["filters"])
        .iter()
        .filter(small)
        .map(|filter| Golden {
            format: "guava",
            name: filter["id"].to_string(),
            bytes: base64(&filter["write_to_base64"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn bitmaps() -> Vec<Golden> {
    let golden = json("seeds_java/bitmap.json");
    let steps = list(&golden["bitmap_000"]["trace"]).iter().enumerate();
    let file = |format, i, bytes| Golden {
        format,
        name: format!("step {i}"),
        bytes,
        options: DecodeOptions::default(),
    };
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
    let file = |name: &str, bytes| Golden {
        format: "my-bloom-filter",
        name: name.into(),
        bytes,
        options: DecodeOptions::default(),
    };
    vec![file("positions", bytes), file("empty", Vec::new())]
}

fn byte_buffer() -> Vec<Golden> {
    let golden = json("seeds_java/byte_buffer.json");
    list(&golden["filters"])
        .iter()
        .map(|filter| Golden {
            format: "byte-buffer",
            name: filter["size"].to_string(),
            bytes: hex(&filter["bytes_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
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
    vec![Golden {
        format: "c-hashcode",
        name: "512".into(),
        bytes,
        options: DecodeOptions::default(),
    }]
}

fn roaring() -> Vec<Golden> {
    let golden = json("roaring/bitmaps.json");
    // Omits values near 2³²: as a plain bitmap, a set with such values would take 512 MiB.
    let small = list(&golden["cases"])
        .iter()
        .filter(|case| case.get("base64").is_some() && case["name"] != "some");
    small
        .map(|case| Golden {
            format: "roaring",
            name: format!("{} {}", case["name"], case["width"]),
            bytes: base64(&case["base64"]),
            options: DecodeOptions::default(),
        })
        .chain(list(&json("roaring/java.json")).iter().map(|case| Golden {
            format: "roaring",
            name: format!("java {}", case["name"]),
            bytes: hex(&case["hex"]),
            options: DecodeOptions::default(),
        }))
        .collect()
}

fn redisbloom() -> Vec<Golden> {
    let golden = json("redisbloom/redisbloom.json");
    let of_filter = |filter: &serde_json::Value| {
        let key = Some(super::text(&filter["name"]).into());
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
        let (n, fpp) = (super::number(&case["n"]) as u64, super::real(&case["fpp"]));
        let keys = list(&case["keys"]).iter().filter(|key| key.get("hex").is_some());
        keys.map(move |key| bitmap("redis-bitmaps", super::text(&key["key"]), &key["hex"], n, fpp))
    });
    small.collect()
}

fn redisson() -> Vec<Golden> {
    let golden = json("redisson/filters.json");
    let small = list(&golden["filters"]).iter().filter(|it| it.get("redis_string_hex").is_some());
    small
        .map(|it| {
            let n = super::number(&it["expected_insertions"]) as u64;
            let fpp = super::real(&it["false_probability"]);
            bitmap("redisson", &n.to_string(), &it["redis_string_hex"], n, fpp)
        })
        .collect()
}

/// A Redis string, and the capacity and rate of its filter.
fn bitmap(format: &'static str, name: &str, hex: &serde_json::Value, n: u64, fpp: f64) -> Golden {
    let options = DecodeOptions { items: Some(n), rate: Some(fpp), ..DecodeOptions::default() };
    Golden { format, name: name.into(), bytes: super::hex(hex), options }
}

fn bip37() -> Vec<Golden> {
    let golden = json("bitcoin/bip37.json");
    let no_bytes = list(&golden["edge_cases"]).iter().take(1);
    let rows = list(&golden["filters"]).iter().chain(no_bytes);
    rows.filter(|row| row["filterload_hex"].is_string())
        .map(|row| Golden {
            format: "bip37",
            name: text(&row["filterload_hex"]).into(),
            bytes: hex(&row["filterload_hex"]),
            options: DecodeOptions::default(),
        })
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

fn parquet() -> Vec<Golden> {
    let golden = json("parquet/writers.json");
    list(&golden["rust_parquet_60_fold"]["cases"])
        .iter()
        .map(|case| Golden {
            format: "parquet",
            name: case["items"].to_string(),
            bytes: hex(&case["written_with_header_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn spark() -> Vec<Golden> {
    list(&json("spark/spark.json")["spark_bloom_filter"])
        .iter()
        .map(|case| Golden {
            format: "spark",
            name: format!("{} {}", case["version"], case["bit_size"]),
            bytes: base64(&case["write_to_base64"]),
            options: DecodeOptions::default(),
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
    let of = |format, case: &serde_json::Value| Golden {
        format,
        name: format!("{} {}", case["hash_type"], case["vector_size"]),
        bytes: hex(&case["writable_hex"]),
        options: DecodeOptions::default(),
    };
    let foreign_bloom = list(&golden["hadoop_bloom_filter"]).iter().map(|case| of("hadoop", case));
    foreign_bloom.chain([of("hadoop-counting", &golden["hadoop_counting_bloom_filter"])]).collect()
}

fn lsm() -> Vec<Golden> {
    let golden = json("lsm/lsm_blocks.json");
    let of = |format: &'static str| {
        let cases = list(&golden[format]).iter();
        cases.map(move |case| Golden {
            format,
            name: format!("{} keys", case["keys"]),
            bytes: hex(&case["filter_block_hex"]),
            options: DecodeOptions::default(),
        })
    };
    of("rocksdb").chain(of("leveldb")).collect()
}

/// Rows that Hadoop wrote, after the header of a `DynamicBloomFilter`.
fn hadoop_dynamic() -> Vec<Golden> {
    let golden = json("hadoop/hadoop.json");
    let filters = list(&golden["hadoop_bloom_filter"]).iter().zip(1..);
    filters
        .map(|(case, rows)| Golden {
            format: "hadoop-dynamic",
            name: format!("{rows} rows"),
            bytes: dynamic_of_rows(&hex(&case["writable_hex"]), rows),
            options: DecodeOptions::default(),
        })
        .collect()
}

/// Repeats a `BloomFilter` as the rows of a `DynamicBloomFilter` with 9 records per row.
pub fn dynamic_of_rows(row: &[u8], rows: u32) -> Vec<u8> {
    let header = &row[..13];
    let numbers = [9, 9, rows].map(u32::to_be_bytes);
    [header, numbers.as_flattened(), &row.repeat(rows as usize)].concat()
}

fn hive() -> Vec<Golden> {
    list(&json("hive/hive.json"))
        .iter()
        .map(|case| Golden {
            format: "hive",
            name: case["max_entries"].to_string(),
            bytes: base64(&case["serialized_base64"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn orc() -> Vec<Golden> {
    let golden = json("orc/orc.json");
    let filters: Vec<_> = list(&golden).iter().map(orc_message).collect();
    let file = |name: &str, bytes| Golden {
        format: "orc",
        name: name.into(),
        bytes,
        options: DecodeOptions::default(),
    };
    // Large files. The tests truncate and flip them at every byte, too.
    let mut files: Vec<_> = filters.iter().map(|it| file("one row group", it.clone())).collect();
    files.push(file("two row groups", [&filters[0][..], &filters[2]].concat()));
    files
}

/// A recorded filter as one row group of a `BLOOM_FILTER_UTF8` stream, in Protocol Buffers.
pub fn orc_message(case: &serde_json::Value) -> Vec<u8> {
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

fn stream_lib() -> Vec<Golden> {
    list(&json("stream-lib/stream_lib.json"))
        .iter()
        .map(|case| Golden {
            format: "stream-lib",
            name: case["buckets"].to_string(),
            bytes: base64(&case["serialized_base64"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn bits_and_blooms() -> Vec<Golden> {
    list(&json("bits-and-blooms/bits-and-blooms.json")["filters"])
        .iter()
        .map(|case| Golden {
            format: "bits-and-blooms",
            name: case["bits"].to_string(),
            bytes: hex(&case["write_to_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn bits_and_blooms_json() -> Vec<Golden> {
    list(&json("bits-and-blooms/bits-and-blooms.json")["filters"])
        .iter()
        .map(|case| Golden {
            format: "bits-and-blooms-json",
            name: case["bits"].to_string(),
            bytes: text(&case["marshal_json"]).into(),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn dcso() -> Vec<Golden> {
    list(&json("dcso/dcso.json")["filters"])
        .iter()
        .map(|case| Golden {
            format: "dcso",
            name: case["capacity"].to_string(),
            bytes: hex(&case["file_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn abloom() -> Vec<Golden> {
    list(&json("abloom/abloom.json")["filters"])
        .iter()
        .map(|case| Golden {
            format: "abloom",
            name: case["capacity"].to_string(),
            bytes: hex(&case["to_bytes_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

fn bloom_filters() -> Vec<Golden> {
    list(&json("bloom-filters/bloom-filters.json")["filters"])
        .iter()
        .map(|case| Golden {
            format: "bloom-filters",
            name: case["bits"].to_string(),
            bytes: text(&case["json"]).into(),
            options: DecodeOptions::default(),
        })
        .collect()
}
