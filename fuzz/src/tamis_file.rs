//! Tests that each decoder returns a filter or an error for any bytes. Also tests that all decoders return the same
//! result, and that a decoded filter is encoded to the same bytes.

use tamis_formats::TamisFile;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The memory limit of the decoder. The limit is larger than any input needs.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) fn run(data: &[u8]) {
    read_every_way(data);
    // The fuzzer cannot guess a checksum, but an attacker can compute the checksum. So the target also tests the input
    // with correct checksums.
    if let Some(sealed) = seal(data) {
        read_every_way(&sealed);
    }
}

fn read_every_way(bytes: &[u8]) {
    let decoded = TamisFile::decode(bytes);
    let streamed = TamisFile::read_from(bytes, MAX_BYTES);
    let view = TamisFile::view(bytes);
    let verified = TamisFile::verify(bytes);
    match decoded {
        Ok(file) => {
            let mut back = Vec::new();
            file.write_to(&mut back).expect("a vector can be written");
            assert_eq!(back, bytes, "a file is written as it was read");
            assert_eq!(file.len_bytes(), bytes.len() as u64);
            assert_eq!(verified, Ok(()));
            assert!(streamed.is_ok_and(|streamed| streamed == file));
            // A view requires aligned words. If the words are aligned, the view equals the decoded filter.
            if let Ok(view) = view {
                assert_eq!(
                    view.filter,
                    file.filter.as_view().expect("what was read has not grown")
                );
            }
            // Lookups and estimates must return answers for any bits.
            let (items, rate) = (file.filter.estimate_items(), file.filter.estimate_rate());
            assert!(items >= 0.0 && (0.0..=1.0).contains(&rate), "{items} items, rate {rate}");
            let _ = file.filter.contains("tamis");
            change(file);
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "an error is one line");
            assert!(streamed.is_err());
            // A view does not verify the words, so a view may exist for a damaged file. Lookups in this view must not
            // panic.
            if let Ok(view) = view {
                let _ = (view.filter.contains("tamis"), view.filter.estimate_rate());
            }
        }
    }
}

/// Calls all methods that change a filter, and tests that the filter contains the inserted items.
fn change(file: TamisFile) {
    let mut filter = file.filter;
    let copy = filter.clone();
    filter.advance(1_700_000_000_000);
    for item in 0..40_u64 {
        if filter.try_insert(&item).is_ok() {
            assert!(filter.contains(&item), "a false negative");
        }
    }
    for item in 0..20_u64 {
        let hash = filter.hasher().hash_item(&item);
        let _ = (filter.count_hash(hash), filter.remove_hash(hash));
    }
    if filter.merge(&copy).is_ok() {
        let mut back = Vec::new();
        TamisFile::new(filter).write_to(&mut back).expect("a vector can be written");
        assert!(TamisFile::decode(&back).is_ok(), "a changed filter can be stored");
    }
}

/// Replaces both checksums of a file by the correct checksums. Returns `None` if the bytes are shorter than the length
/// in the header.
fn seal(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    bytes.get_mut(..10)?.copy_from_slice(b"\x89TAMIS\r\n\x01\x00");
    let metadata = u32::from_le_bytes(bytes.get(64..68)?.try_into().ok()?) as usize;
    let head = metadata.checked_add(68 + 8)?.next_multiple_of(64);
    let words = bytes.len().checked_sub(head + 8)?;
    let checksum = xxh3_64(&bytes[..head - 8]);
    bytes[head - 8..head].copy_from_slice(&checksum.to_le_bytes());
    let trailer = xxh3_64_with_seed(&bytes[head..head + words], checksum);
    bytes[head + words..].copy_from_slice(&trailer.to_le_bytes());
    Some(bytes)
}
