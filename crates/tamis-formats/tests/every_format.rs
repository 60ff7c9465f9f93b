//! What holds of every row of `FORMATS`, on the golden files of each.

mod golden_data;

use golden_data::{base64, hex, json, list, number};
use tamis_formats::{Contents, DecodeErrorKind, EncodeError, FORMATS, Format, Funnel, Items, Told};

/// A whole file, and what must be told of it.
struct Golden {
    format: &'static str,
    name: String,
    bytes: Vec<u8>,
    told: Told,
}

fn golden() -> Vec<Golden> {
    [
        tamis(),
        guava(),
        bitmaps(),
        my_bloom_filter(),
        byte_buffer(),
        c_hashcode(),
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
    let files = std::fs::read_dir(golden_data::path("tamis")).unwrap().map(|entry| entry.unwrap());
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "tamis"))
        .map(|file| Golden {
            format: "tamis",
            name: file.file_name().into_string().unwrap(),
            bytes: std::fs::read(file.path()).unwrap(),
            told: Told::default(),
        })
        .collect()
}

fn guava() -> Vec<Golden> {
    let golden = json("guava/filters.json");
    // Small ones: each byte of each is cut and flipped.
    let small = |filter: &&serde_json::Value| filter["write_to_len"].as_u64() < Some(1000);
    list(&golden["filters"])
        .iter()
        .filter(small)
        .map(|filter| Golden {
            format: "guava",
            name: filter["id"].to_string(),
            bytes: base64(&filter["write_to_base64"]),
            told: Told::default(),
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
        told: Told::default(),
    };
    steps
        .flat_map(|(i, step)| {
            let bytes = hex(&step["bytes_after"]);
            // Redis turns the bits of each byte around.
            let redis = bytes.iter().map(|byte| byte.reverse_bits()).collect();
            [file("java-bitmap", i, bytes), file("redis-bits", i, redis)]
        })
        .collect()
}

/// The bits of recorded positions, as `BitSet.toByteArray` has them.
fn my_bloom_filter() -> Vec<Golden> {
    let golden = json("seeds_java/my_bloom_filter.json");
    let mut bytes = Vec::new();
    for item in list(&golden["positions"]) {
        for bit in list(&item["positions"]).iter().map(number) {
            // Others are far apart, and each byte is cut and flipped.
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
        told: Told::default(),
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
            told: Told::default(),
        })
        .collect()
}

/// The recorded positions in 512 bits: what AND leaves of them.
fn c_hashcode() -> Vec<Golden> {
    let golden = json("seeds_java/c_hashcode.json");
    let mut bytes = vec![0; 64];
    for case in list(&golden["positions"]) {
        for bit in list(&case["cap_1048576"]).iter().map(|bit| number(bit) as usize % 512) {
            bytes[bit / 8] |= 1 << (bit % 8);
        }
    }
    vec![Golden { format: "c-hashcode", name: "512".into(), bytes, told: Told::default() }]
}

fn pybloom_live() -> Vec<Golden> {
    let golden = json("python/pybloom_live.json");
    let file = |format, case: &serde_json::Value| {
        let (name, bytes) = (case["error_rate"].to_string(), base64(case.get("file_base64")?));
        Some(Golden { format, name, bytes, told: Told::default() })
    };
    let single = list(&golden["filters"]).iter().chain(list(&golden["more"]["filters"]));
    let scalable = list(&golden["more"]["scalable"]).iter().chain([&golden["scalable"]]);
    single
        .filter_map(|case| file("pybloom-live", case))
        .chain(scalable.filter_map(|case| file("pybloom-live-scalable", case)))
        .collect()
}

fn pybloomfiltermmap() -> Vec<Golden> {
    let golden = json("python/pybloomfiltermmap.json");
    list(&golden["filters"])
        .iter()
        .map(|case| Golden {
            format: "pybloomfiltermmap",
            name: case["error_rate"].to_string(),
            bytes: base64(&case["file_base64"]),
            told: Told::default(),
        })
        .collect()
}

fn rbloom() -> Vec<Golden> {
    list(&json("python/rbloom.json"))
        .iter()
        .map(|case| Golden {
            format: "rbloom",
            name: case["fpr"].to_string(),
            bytes: hex(&case["saved_hex"]),
            told: Told::default(),
        })
        .collect()
}

fn roaring() -> Vec<Golden> {
    let golden = json("roaring/bitmaps.json");
    // As plain bitmaps those up to 2³² would take 512 MiB each.
    let small = list(&golden["cases"])
        .iter()
        .filter(|case| case.get("base64").is_some() && case["name"] != "some");
    small
        .map(|case| Golden {
            format: "roaring",
            name: format!("{} {}", case["name"], case["width"]),
            bytes: base64(&case["base64"]),
            told: Told::default(),
        })
        .collect()
}

fn format(name: &str) -> &'static Format {
    Format::named(name).unwrap_or_else(|| panic!("no format {name}"))
}

#[test]
fn every_format_has_a_golden_file_and_a_page() {
    for format in FORMATS {
        assert!(golden().iter().any(|golden| golden.format == format.name), "{}", format.name);
        let page = golden_data::path(&format!("../../docs/formats/{}.md", format.name));
        assert!(page.exists(), "{}", page.display());
    }
}

#[test]
fn every_golden_file_is_recognised_read_and_written_again() {
    for Golden { format: name, name: file, bytes, told } in golden() {
        let format = format(name);
        let possible = Format::of(&bytes);
        assert!(
            possible.iter().any(|it| it.name == name)
                || (format.sniff)(&bytes) == tamis_formats::Sniff::No,
            "{name} {file}: {possible:?}"
        );
        let contents =
            (format.decode)(&bytes, &told).unwrap_or_else(|error| panic!("{name} {file}: {error}"));
        let Some(encode) = format.encode else { continue };
        let mut again = Vec::new();
        encode(&contents, &told, &mut again).unwrap();
        assert!(again == bytes, "{name} {file}");
    }
}

#[test]
fn each_truncation_and_each_flipped_byte_is_an_answer_or_an_error() {
    for Golden { format: name, name: file, mut bytes, told } in golden() {
        let format = format(name);
        let before = peak_bytes();
        for len in 0..bytes.len() {
            let _ = (
                (format.sniff)(&bytes[..len]),
                (format.decode)(&bytes[..len], &told).map(|it| it.facts()),
            );
        }
        for at in 0..bytes.len() {
            // All bits of the head; one of each byte behind it, where all bytes mean the same.
            let flips: &[u8] = if at < 128 { &[1, 2, 4, 8, 16, 32, 64, 128, 255] } else { &[128] };
            for flip in flips {
                bytes[at] ^= flip;
                let _ =
                    ((format.sniff)(&bytes), (format.decode)(&bytes, &told).map(|it| it.facts()));
                bytes[at] ^= flip;
            }
        }
        let grown = peak_bytes() - before;
        let allowed = 4 * bytes.len() as u64 + SLACK_BYTES;
        assert!(grown <= allowed, "{name} {file}: {grown} bytes for {}", bytes.len());
    }
}

/// What other tests of this program may take meanwhile: for each thread, malloc reserves 128 MiB for a moment.
const SLACK_BYTES: u64 = 1 << 30;

/// The most address space that this process ever had: a size in a file that is believed shows in it, touched or not.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

#[test]
fn a_format_without_a_place_says_so() {
    let all: Vec<Contents> = golden()
        .into_iter()
        .map(|golden| (format(golden.format).decode)(&golden.bytes, &golden.told).unwrap())
        .collect();
    for format in FORMATS {
        for contents in &all {
            let mut bytes = Vec::new();
            let Some(encode) = format.encode else { continue };
            match encode(contents, &Told::default(), &mut bytes) {
                Ok(()) => {}
                Err(EncodeError::NoPlace(why)) => {
                    assert!(why.contains("items") || why.contains("at most"), "{why}");
                }
                Err(EncodeError::Missing(_)) => {}
                Err(error) => panic!("{}: {error}", format.name),
            }
        }
    }
}

#[test]
fn every_created_filter_keeps_its_items_and_comes_back() {
    let told = Told { items: Some(1000), rate: Some(0.01), ..Told::default() };
    for format in FORMATS {
        let Some(create) = format.create else { continue };
        // Numbers are items of every funnel.
        let funnel = match format.items {
            Items::Are(funnel) => funnel,
            Items::Asked => Funnel::Bytes,
        };
        let key = |i| funnel.key(format!("{i:04}").as_bytes(), &mut Vec::new()).unwrap().to_vec();
        let keys: Vec<Vec<u8>> = (0..1000).map(key).collect();
        let mut contents = create(&told).unwrap_or_else(|error| panic!("{}: {error}", format.name));
        let mut answers = tamis::Answers::new();
        contents.insert_each(&keys, &mut answers).unwrap();
        contents.contains_each(&keys, &mut answers);
        assert_eq!(answers.count_ones(), keys.len(), "{}", format.name);
        let mut bytes = Vec::new();
        format.encode.expect("what is created is written")(&contents, &told, &mut bytes).unwrap();
        let back = (format.decode)(&bytes, &told).unwrap();
        assert_eq!(back, contents, "{}", format.name);
        // Without a size there is none, unless all have the same.
        let unsized_ = create(&Told::default());
        assert!(unsized_.is_err() || unsized_.ok() == create(&told).ok(), "{}", format.name);
    }
}

#[test]
fn what_nobody_told_is_asked_for_by_name() {
    for Golden { format: name, name: file, bytes, told } in golden() {
        let decoded = (format(name).decode)(&bytes, &Told::default());
        if told == Told::default() {
            assert!(decoded.is_ok(), "{name} {file}");
        } else if let Err(error) = decoded {
            assert!(matches!(error.kind, DecodeErrorKind::Missing(_)), "{name} {file}: {error}");
        }
    }
}
