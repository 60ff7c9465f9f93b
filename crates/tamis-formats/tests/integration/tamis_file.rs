//! Every Tamis file decodes to the filter that was written. Other bytes are rejected.

use proptest::prelude::*;
use tamis::{AnyFilter, Hasher, Kind, Plan};
use tamis_formats::{DecodeErrorKind, ReadError, TamisFile};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

fn sample(kind: Kind, hasher: Hasher, items: u64) -> TamisFile {
    let plan = Plan::for_kind(kind, items, 0.02).unwrap();
    let mut filter = AnyFilter::from_plan(&plan, hasher).unwrap();
    for item in 0..items {
        filter.try_insert(&item).unwrap();
    }
    let mut file = TamisFile::new(filter);
    file.added = items;
    file.metadata.insert("source", "numbers").unwrap();
    file
}

fn encode(file: &TamisFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.write_to(&mut bytes).unwrap();
    bytes
}

fn samples() -> Vec<TamisFile> {
    let hashers = [Hasher::mix(4), Hasher::fold(3), Hasher::xxh64(0), Hasher::sip13([1, 2])];
    Kind::ALL.into_iter().zip(hashers).map(|(kind, hasher)| sample(kind, hasher, 9)).collect()
}

/// Copies a file to memory that starts at a multiple of eight bytes.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Decodes a file in every supported way. All ways must accept the same files.
fn decode(bytes: &[u8]) -> Result<TamisFile, DecodeErrorKind> {
    let decoded = TamisFile::decode(bytes).map_err(|error| error.kind);
    let streamed = match TamisFile::read_from(bytes, 1 << 20) {
        Ok(file) => Ok(file),
        Err(ReadError::Decode(error)) => Err(error.kind),
        Err(ReadError::Io(error)) => panic!("a slice can be read: {error}"),
    };
    assert_eq!(decoded.is_ok(), streamed.is_ok(), "{decoded:?} {streamed:?}");
    let words = aligned(bytes);
    let bytes = &bytemuck::cast_slice(&words)[..bytes.len()];
    let viewed = TamisFile::view(bytes);
    let verified = TamisFile::verify(bytes);
    match (&decoded, viewed) {
        (Ok(decoded), Ok(viewed)) => {
            assert!(verified.is_ok());
            assert_eq!(decoded.filter.as_view().unwrap(), viewed.filter);
            assert_eq!(decoded.filter.layout(), viewed.filter.layout());
            assert_eq!(decoded.metadata, viewed.metadata);
        }
        (Ok(_), Err(error)) => panic!("decoded, but not viewed: {error}"),
        (Err(_), Ok(viewed)) => {
            let at_end = viewed.filter.plan().bits().is_multiple_of(64);
            assert!(verified.is_err() || !at_end, "neither view nor verify saw the damage");
        }
        (Err(_), Err(_)) => {}
    }
    decoded
}

#[test]
fn words_start_on_a_cache_line_of_the_file() {
    for file in samples() {
        let bytes = encode(&file);
        assert_eq!(bytes.len() as u64, file.len_bytes());
        let words_bytes = file.filter.plan().bytes() as usize;
        assert!((bytes.len() - words_bytes - 8).is_multiple_of(64));
    }
}

#[test]
fn a_range_equals_that_part_of_the_whole_file() {
    let grown = sample(Kind::Growing, Hasher::default(), 5000);
    for file in samples().iter().chain([&grown]) {
        let whole = encode(file);
        let len = whole.len() as u64;
        for start in (0..len + 10).step_by(1 + whole.len() / 50) {
            for end in [start, start + 1, start + 97, len - 8, len - 3, len, len + 5] {
                let mut part = Vec::new();
                file.write_range(start..end, &mut part).unwrap();
                let to = |at: u64| at.min(len) as usize;
                let expected = whole.get(to(start)..to(end)).unwrap_or_default();
                assert!(part == expected, "{start}..{end} of {len}");
            }
        }
    }
}

#[test]
fn each_truncation_is_an_error() {
    for file in samples() {
        let bytes = encode(&file);
        for len in 0..bytes.len() {
            let kind = decode(&bytes[..len]).unwrap_err();
            assert!(
                len == 0 || matches!(kind, DecodeErrorKind::Truncated { .. }),
                "{len}: {kind:?}"
            );
        }
    }
}

#[test]
fn each_flipped_bit_is_an_error() {
    for file in samples() {
        let mut bytes = encode(&file);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(decode(&bytes).unwrap(), file);
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    let mut bytes = encode(&samples()[0]);
    let expected = bytes.len() as u64;
    bytes.push(0);
    assert_eq!(decode(&bytes).unwrap_err(), DecodeErrorKind::TooLong { expected });
}

#[test]
fn a_filter_over_the_limit_is_refused_before_it_has_memory() {
    let bytes = encode(&samples()[0]);
    let Err(ReadError::Decode(error)) = TamisFile::read_from(&bytes[..], 8) else {
        panic!("8 bytes are too few")
    };
    assert_eq!(error.kind, DecodeErrorKind::TooLarge { bytes: 64, max_bytes: 8 });
}

#[test]
fn words_of_another_file_do_not_pass() {
    // Creates a file with the header of one file, and the words and the checksum of another file of
    // equal length.
    let one = encode(&sample(Kind::SplitBlock, Hasher::xxh3(1), 9));
    let other = encode(&sample(Kind::SplitBlock, Hasher::xxh3(2), 9));
    let mixed = [&one[..128], &other[128..]].concat();
    assert_eq!(mixed.len(), one.len());
    assert_eq!(decode(&mixed).unwrap_err(), DecodeErrorKind::Checksum);
}

#[test]
fn bytes_in_place_must_be_aligned() {
    let bytes = encode(&samples()[0]);
    let shifted = [&[0], &bytes[..]].concat();
    let words = aligned(&shifted);
    let misaligned = &bytemuck::cast_slice(&words)[1..shifted.len()];
    assert_eq!(TamisFile::view(misaligned).unwrap_err().kind, DecodeErrorKind::NotInPlace);
    assert!(TamisFile::decode(misaligned).is_ok());
}

/// Computes the checksums of a changed file again, as an attacker would.
fn seal(bytes: &mut [u8]) {
    let metadata_bytes = u32::from_le_bytes(bytes[64..68].try_into().unwrap()) as usize;
    let len = metadata_bytes.saturating_add(76).next_multiple_of(64);
    if bytes.len() < len + 8 {
        return;
    }
    let header = xxh3_64(&bytes[..len - 8]);
    bytes[len - 8..len].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let words = xxh3_64_with_seed(&bytes[len..end], header);
    bytes[end..].copy_from_slice(&words.to_le_bytes());
}

#[test]
fn hostile_fields_under_right_checksums_are_errors() {
    let good = encode(&sample(Kind::Classic, Hasher::xxh3(0), 9));
    type Change = (usize, &'static [u8], &'static str);
    let changes: &[Change] = &[
        (10, &[0], "kind"),
        (10, &[200], "kind"),
        (11, &[9], "hash"),
        (12, &[0, 0, 0, 0], "probes"),
        (12, &[0, 1, 0, 0], "probes"),
        (16, &[0; 8], "bits"),
        (16, &[255; 8], "bits"),
        (16, &[0, 0, 0, 0, 0, 0, 0, 1], "more bits than bytes"),
        (32, &[1], "a seed of nine bytes"),
        (40, &[0; 8], "capacity"),
        (48, &[0; 8], "a rate of zero"),
        (48, &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f], "a rate of one"),
        (48, &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f], "a rate that is no number"),
        (64, &[3], "metadata cut within an entry"),
        (64, &[255; 4], "metadata longer than allowed"),
        (68, &[0], "an empty key"),
        (69, &[255; 4], "a value past the end"),
        (73, &[0xff], "a key that is not text"),
        (110, &[1], "zeros"),
    ];
    for (at, change, what) in changes {
        let mut bytes = good.clone();
        bytes[*at..at + change.len()].copy_from_slice(change);
        seal(&mut bytes);
        assert!(decode(&bytes).is_err(), "{what}");
    }
    let mut bytes = good.clone();
    let bits = TamisFile::decode(&good).unwrap().filter.plan().bits();
    assert!(!bits.is_multiple_of(64));
    let last = bytes.len() - 9;
    bytes[last] |= 0x80;
    seal(&mut bytes);
    assert_eq!(decode(&bytes).unwrap_err(), DecodeErrorKind::NotZero);
}

#[test]
fn a_later_version_is_named() {
    let mut bytes = encode(&samples()[0]);
    bytes[8] = 7;
    seal(&mut bytes);
    assert_eq!(decode(&bytes).unwrap_err(), DecodeErrorKind::Newer { found: 7, newest: 1 });
    let text = TamisFile::decode(&bytes).unwrap_err().to_string();
    assert_eq!(
        text,
        "format version 7 is newer than this release, which reads up to 1: use a newer tamis"
    );
}

#[test]
fn a_writer_that_fails_passes_its_error_on() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = samples()[0].write_to(Full).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

fn any_hasher() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        any::<u64>().prop_map(Hasher::mix),
        any::<u64>().prop_map(Hasher::xxh3),
        any::<u64>().prop_map(Hasher::xxh64),
        any::<[u64; 2]>().prop_map(Hasher::sip13),
    ]
}

proptest! {
    #[test]
    fn any_filter_comes_back(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        hasher in any_hasher(),
        capacity in 1_u64..5000,
        items in prop::collection::vec(any::<u64>(), 0..500),
        rate in 1e-9_f64..0.9,
        metadata in prop::collection::btree_map("[a-z网.-]{1,20}", ".{0,80}", 0..6),
    ) {
        let plan = Plan::for_kind(kind, capacity, rate).unwrap();
        let mut filter = AnyFilter::from_plan(&plan, hasher).unwrap();
        let mut members = Vec::new();
        for item in &items {
            // A full filter rejects items, and is written, too. Items of a window are not members,
            // because they may expire.
            let is_in = filter.try_insert(item).is_ok();
            if is_in && !kind.forgets() {
                members.push(*item);
            }
        }
        let mut file = TamisFile::new(filter);
        file.added = items.len() as u64;
        for (key, value) in &metadata {
            file.metadata.insert(key, value).unwrap();
        }
        let bytes = encode(&file);
        let back = decode(&bytes).unwrap();
        prop_assert_eq!(&back, &file);
        prop_assert_eq!(encode(&back), bytes);
        prop_assert!(members.iter().all(|item| back.filter.contains(item)));
    }

    #[test]
    fn hostile_bytes_are_an_error_or_a_filter(
        kind in prop::sample::select(Kind::ALL.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        sealed: bool,
    ) {
        let mut bytes = encode(&sample(kind, Hasher::default(), 5));
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if sealed {
            seal(&mut bytes);
        }
        if let Ok(file) = decode(&bytes) {
            prop_assert_eq!(encode(&file), bytes);
            file.filter.contains("any item");
            file.filter.estimate_rate();
        }
    }

    #[test]
    fn arbitrary_bytes_are_an_error(bytes: Vec<u8>) {
        prop_assert!(decode(&bytes).is_err());
    }
}
