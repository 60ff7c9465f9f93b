//! Tests that run for every row of `FORMATS`, on the golden files of the format.

use crate::golden_data::Golden;
use crate::golden_data::files::golden;
use tamis_formats::{
    Contents, DecodeErrorKind, DecodeOptions, EncodeError, FORMATS, Format, Funnel, ItemCollector,
    ItemDomain, Items,
};

fn format(name: &str) -> &'static Format {
    Format::named(name).unwrap_or_else(|| panic!("no format {name}"))
}

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
            assert!(
                std::fs::read(&seed).is_ok_and(|bytes| bytes == golden.bytes),
                "{}",
                seed.display()
            );
        }
    }
}

#[test]
fn every_golden_file_is_recognised_read_and_written_again() {
    for Golden { format: name, name: file, bytes, options } in golden() {
        let format = format(name);
        let possible = Format::of(&bytes);
        assert!(
            possible.iter().any(|it| it.name == name)
                || !format.is_detectable()
                || options != DecodeOptions::default(),
            "{name} {file}: {possible:?}"
        );
        let contents = (format.decode)(&bytes, &options)
            .unwrap_or_else(|error| panic!("{name} {file}: {error}"));
        let encode = format.encode;
        let mut again = Vec::new();
        encode(&contents, &options, &mut again).unwrap();
        assert!(again == bytes, "{name} {file}");
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
                Ok(()) => {}
                Err(EncodeError::NeedsItems(_)) => {}
                Err(EncodeError::Refused(why)) => assert!(why.contains("at most"), "{why}"),
                Err(EncodeError::Missing(_)) => {}
                Err(error) => panic!("{}: {error}", format.name),
            }
        }
    }
}

#[test]
fn every_created_filter_keeps_its_items_and_comes_back() {
    for format in FORMATS {
        let create = format.create;
        let version = (format.name == "cassandra").then(|| "na".into());
        let block_hash = Some("00".repeat(32).parse().unwrap());
        let options = DecodeOptions {
            items: Some(1000),
            rate: Some(0.01),
            version,
            block_hash,
            ..DecodeOptions::default()
        };
        // A number is a valid item of every funnel.
        let funnel = match format.items {
            Items::Default(funnel) => funnel,
            Items::Unspecified => {
                let all = Funnel::NAMES.iter().filter_map(|(name, _)| Funnel::named(name, None));
                let mut taken = all.filter(|&funnel| format.item_domain.accepts(funnel));
                taken.next().expect("a funnel of every format")
            }
        };
        let key = |i| funnel.key(format!("{i:04}").as_bytes(), &mut Vec::new()).unwrap().to_vec();
        let keys: Vec<Vec<u8>> = (0..1000).map(key).collect();
        let mut contents =
            create(&options).unwrap_or_else(|error| panic!("{}: {error}", format.name));
        let mut answers = tamis::Answers::new();
        contents.insert_each(&keys, &mut answers).unwrap();
        contents.contains_each(&keys, &mut answers);
        assert_eq!(answers.count_ones(), keys.len(), "{}", format.name);
        let mut bytes = Vec::new();
        (format.encode)(&contents, &options, &mut bytes).unwrap();
        let back = (format.decode)(&bytes, &options).unwrap();
        let is_collected = contents.downcast_ref::<ItemCollector>().is_some();
        assert!(is_collected || back == contents, "{}", format.name);
        back.contains_each(&keys, &mut answers);
        assert_eq!(answers.count_ones(), keys.len(), "{}", format.name);
        let info = back.info();
        assert!(info.rate_now < 0.02, "{}: {}", format.name, info.rate_now);
        // A format without a given size creates no filter. The exceptions are formats whose filters
        // all have the same size, and formats whose items determine the size.
        let unsized_ = create(&DecodeOptions::default());
        let may_lack = unsized_.is_err() || format.item_domain == ItemDomain::Integers;
        assert!(may_lack || unsized_.ok() == create(&options).ok(), "{}", format.name);
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
