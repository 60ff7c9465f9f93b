//! Tests that run for every row of `FORMATS`, on the golden files of the format.

use crate::golden_data::Golden;
use crate::golden_data::files::golden;
use crate::support::{answers, encode_with, format, insert, planned};
use tamis_formats::{
    Contents, DecodeErrorKind, DecodeOptions, Detection, EncodeError, FORMATS, Format, Funnel,
    ItemCollector, ItemCount, ItemDomain, Items, Parameter,
};

#[test]
fn every_format_has_a_golden_file_and_a_page() {
    for format in FORMATS {
        assert!(golden().iter().any(|golden| golden.format == format.name), "{}", format.name);
        let page = crate::golden_data::path(&format!("../../docs/formats/{}.md", format.name));
        assert!(page.exists(), "{}", page.display());
    }
}

/// The number of golden files per format that seed its fuzz target.
const SEEDS: usize = 4;

/// The fuzz target of each format starts from the smallest golden files of the format. `cargo
/// xtask` finds the formats by these files. `TAMIS_BLESS=1` writes them.
#[test]
fn every_format_has_seeds_for_its_fuzz_target() {
    for format in FORMATS {
        let mut files: Vec<_> =
            golden().into_iter().filter(|golden| golden.format == format.name).collect();
        files.sort_by_key(|golden| golden.bytes.len());
        for (i, golden) in files.iter().take(SEEDS).enumerate() {
            let seeds = crate::golden_data::path("../../fuzz/seeds/format").join(format.name);
            let seed = seeds.join(i.to_string());
            if std::env::var_os("TAMIS_BLESS").is_some() {
                std::fs::create_dir_all(&seeds).unwrap();
                std::fs::write(&seed, &golden.bytes).unwrap();
            }
            let is_current = std::fs::read(&seed).is_ok_and(|bytes| bytes == golden.bytes);
            assert!(is_current, "{}", seed.display());
        }
    }
}

#[test]
fn every_golden_file_is_recognised_read_and_written_again() {
    for Golden { format: name, name: file, bytes, options } in golden() {
        let format = format(name);
        let possible = Format::of(&bytes);
        let decoded = (format.decode)(&bytes, &options);
        let contents = decoded.unwrap_or_else(|error| panic!("{name} {file}: {error}"));
        // The file of a filter without bits is mostly zeros, as are many other files.
        let info = contents.info();
        let is_empty_set = info.items_are == ItemCount::Exact && info.items == 0.0;
        let has_bytes =
            matches!(format.detection, Detection::ByBytes(_)) && info.bits > 0 && !is_empty_set;
        assert!(
            possible.iter().any(|it| it.name == name)
                || !has_bytes
                || options != DecodeOptions::default(),
            "{name} {file}: {possible:?}"
        );
        // Files without a header may have any bytes.
        assert!(possible.len() <= 1 || !has_bytes, "{name} {file}: {possible:?}");
        assert!(encode_with(name, &contents, &options).unwrap() == bytes, "{name} {file}");
    }
}

/// Bytes that are no filter of a format with a header.
fn other_files() -> Vec<(String, Vec<u8>)> {
    let text = |len: usize| -> Vec<u8> {
        (0..len).map(|i| b"the quick brown fox\n"[i * i % 20]).collect()
    };
    let mut files = Vec::new();
    for len in 0..400 {
        files.push((format!("{len} letters"), text(len)));
        files.push((format!("{len} zeros"), vec![0; len]));
        files.push((format!("{len} bytes of ones"), vec![0xff; len]));
        files.push((format!("{len} counted bytes"), (0..len).map(|i| i as u8).collect()));
        // A small number before text: the header of many formats.
        for number in [1_u64, 5, 10, 64] {
            let little = [&number.to_le_bytes()[..], &text(len)].concat();
            files.push((format!("{number} little-endian and {len} letters"), little));
            let big = [&number.to_be_bytes()[..], &text(len)].concat();
            files.push((format!("{number} big-endian and {len} letters"), big));
        }
        let ids: Vec<u8> = (0..len as u32).flat_map(u32::to_le_bytes).collect();
        files.push((format!("{len} ascending numbers of 32 bits"), ids));
        // A generator of random numbers with a fixed seed.
        let mut state = len as u64 + 1;
        let random = (0..len).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        files.push((format!("{len} random bytes"), random.collect()));
    }
    files
}

#[test]
fn a_file_that_is_no_filter_is_not_recognised() {
    for (name, bytes) in other_files() {
        assert!(Format::of(&bytes).is_empty(), "{name}: {:?}", Format::of(&bytes));
    }
}

#[test]
fn a_format_that_cannot_store_a_filter_says_so() {
    let all: Vec<Contents> = golden()
        .into_iter()
        .map(|golden| (format(golden.format).decode)(&golden.bytes, &golden.options).unwrap())
        .collect();
    let options = DecodeOptions::default();
    for format in FORMATS {
        for contents in &all {
            let encoded = (format.encode)(contents, &options, &mut Vec::new());
            let checked = format.check_encode(contents, &options);
            assert_eq!(checked.is_ok(), encoded.is_ok(), "{}", format.name);
            match encoded {
                Ok(()) | Err(EncodeError::NeedsItems(_) | EncodeError::Missing(_)) => {}
                Err(EncodeError::Refused(why)) => assert!(why.contains("at most"), "{why}"),
                Err(error) => panic!("{}: {error}", format.name),
            }
        }
    }
}

#[test]
fn every_created_filter_keeps_its_items_and_comes_back() {
    for format in FORMATS {
        let create = format.create;
        let options = complete(format, 1000, 0.01);
        let (contents, keys) = filled(format, 1000, &options);
        let has_all = |it: &Contents| answers(it, &keys).iter().all(|&found| found);
        assert!(has_all(&contents), "{}", format.name);
        let bytes = encode_with(format.name, &contents, &options).unwrap();
        let back = (format.decode)(&bytes, &options).unwrap();
        let is_collected = contents.downcast_ref::<ItemCollector>().is_some();
        assert!(is_collected || back == contents, "{}", format.name);
        assert!(has_all(&back), "{}", format.name);
        let info = back.info();
        assert!(info.rate_now < 0.02, "{}: {}", format.name, info.rate_now);
        // A format without a given size creates no filter. The exceptions are formats whose filters
        // all have the same size, and formats whose items determine the size.
        let unsized_ = create(&DecodeOptions::default());
        let may_lack = unsized_.is_err() || format.item_domain == ItemDomain::Integers;
        assert!(may_lack || unsized_.ok() == create(&options).ok(), "{}", format.name);
    }
}

/// A parameter that the row lists changes the bytes of a filter of the same items, and any other
/// parameter does not.
#[test]
fn a_plan_depends_on_the_parameters_of_the_row() {
    for format in FORMATS {
        let encoded = |items, rate| {
            let options = complete(format, items, rate);
            encode_with(format.name, &filled(format, 10, &options).0, &options).unwrap()
        };
        let plain = encoded(1000, 0.1);
        for (parameter, other) in
            [(Parameter::Items, encoded(9000, 0.1)), (Parameter::Rate, encoded(1000, 0.001))]
        {
            assert_eq!(plain != other, format.plans_by(parameter), "{} {parameter}", format.name);
        }
    }
}

/// Returns the options of a plan, and a value for each parameter that a format requires.
fn complete(format: &Format, items: u64, rate: f64) -> DecodeOptions {
    let version = (format.name == "cassandra").then(|| "na".into());
    DecodeOptions { version, block_hash: Some(Default::default()), ..planned(items, rate) }
}

/// Creates a filter of a format with `count` items, and returns their keys.
fn filled(format: &Format, count: u32, options: &DecodeOptions) -> (Contents, Vec<Vec<u8>>) {
    let funnel = funnel_of(format);
    let key = |i| funnel.key(format!("{i:04}").as_bytes(), &mut Vec::new()).unwrap().to_vec();
    let keys: Vec<Vec<u8>> = (0..count).map(key).collect();
    let created = (format.create)(options);
    let mut contents = created.unwrap_or_else(|error| panic!("{}: {error}", format.name));
    insert(&mut contents, &keys).unwrap();
    (contents, keys)
}

/// Returns a funnel of the format that accepts numbers.
fn funnel_of(format: &Format) -> Funnel {
    match format.items {
        Items::Default(funnel) => funnel,
        Items::Unspecified => {
            let all = Funnel::NAMES.iter().filter_map(|(name, _)| Funnel::named(name, None));
            let mut taken = all.filter(|&funnel| format.item_domain.accepts(funnel));
            taken.next().expect("a funnel of every format")
        }
    }
}

#[test]
fn a_missing_parameter_is_requested_by_name() {
    for Golden { format: name, name: file, bytes, options } in golden() {
        let decoded = (format(name).decode)(&bytes, &DecodeOptions::default());
        if options == DecodeOptions::default() {
            assert!(decoded.is_ok(), "{name} {file}");
        } else if let Err(error) = decoded {
            assert!(matches!(error.kind, DecodeErrorKind::Missing(_)), "{name} {file}: {error}");
        }
    }
}
