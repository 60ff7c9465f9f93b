//! A filter of every type is the same after it was saved and loaded. Other files are refused.

use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{
    AnyFilter, Bloom, ClassicBloom, Counting, Cuckoo, FilterWords, Growing, Hasher, Kind,
    ParquetBloom, Plan, SharedBloom, TryInsert, Window,
};
use tamis_formats::{FileErrorKind, Save, TamisFile};

/// Saves a filter, loads the filter, and compares both.
fn assert_same<F: Save + TryInsert + PartialEq>(mut filter: F) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    for item in 0..500_u64 {
        filter.try_insert(&item).unwrap();
    }
    filter.save(&path).unwrap();
    let loaded = F::load(&path).unwrap();
    assert!(loaded == filter, "{}", filter.plan().kind());
    let any = AnyFilter::load(&path).unwrap();
    assert_eq!(any.plan().kind(), filter.plan().kind());
    assert!((0..500_u64).all(|item| any.contains(&item)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no other file is left");
}

#[test]
fn a_filter_of_every_type_is_the_same_after_it_was_saved_and_loaded() {
    assert_same(Bloom::for_items(1_000, 0.01).unwrap());
    assert_same(SharedBloom::for_items(1_000, 0.01).unwrap());
    assert_same(ClassicBloom::for_items(1_000, 0.01).unwrap());
    assert_same(ParquetBloom::for_items(1_000, 0.01).unwrap());
    assert_same(Counting::for_items(1_000, 0.01).unwrap());
    assert_same(Cuckoo::for_items(1_000, 0.01).unwrap());
    assert_same(Growing::new(0.01).unwrap());
    assert_same(Window::for_items(1_000, 0.01).unwrap());
    for kind in Kind::ALL {
        let plan = Plan::for_kind(kind, 1_000, 0.01).unwrap();
        assert_same(AnyFilter::from_plan(&plan, Hasher::sip13([1, 2])).unwrap());
    }
}

#[test]
fn a_shared_filter_is_saved_while_threads_insert() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    let seen = Arc::new(SharedBloom::for_items(400_000, 0.01).unwrap());
    let inserted = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            for item in 0..400_000_u64 {
                seen.insert(&item);
                inserted.store(item + 1, Ordering::Release);
            }
        });
        loop {
            let is_last = writer.is_finished();
            let before = inserted.load(Ordering::Acquire);
            seen.save(&path).unwrap();
            let saved = SharedBloom::load(&path).unwrap();
            assert!((0..before).all(|item| saved.contains(&item)), "{before} items");
            if is_last {
                assert!(saved == *seen && before == 400_000);
                break;
            }
        }
    });
}

#[test]
fn a_file_of_another_kind_or_with_damage_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    Bloom::for_items(1_000, 0.01).unwrap().save(&path).unwrap();
    let error = Cuckoo::load(&path).unwrap_err();
    let is_kind = |kind: &FileErrorKind| {
        matches!(kind, FileErrorKind::Kind { expected: Kind::Cuckoo, found: Kind::SplitBlock })
    };
    assert!(is_kind(&error.kind), "{error}");
    let message = error.to_string();
    assert!(message.starts_with(path.to_str().unwrap()), "{message}");
    assert!(message.contains("split-block") && message.contains("AnyFilter"), "{message}");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Bloom::load(&path).unwrap_err().kind, FileErrorKind::Decode(_)));
    fs::write(&path, &bytes[..middle]).unwrap();
    assert!(matches!(TamisFile::load(&path).unwrap_err().kind, FileErrorKind::Decode(_)));
    fs::write(&path, "").unwrap();
    assert!(matches!(TamisFile::load(&path).unwrap_err().kind, FileErrorKind::Decode(_)));
    assert!(matches!(Bloom::load(folder.path()).unwrap_err().kind, FileErrorKind::NotAFile));
    let none = Bloom::load(folder.path().join("none")).unwrap_err();
    assert!(matches!(none.kind, FileErrorKind::Read(_)), "{none}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_reads_a_file_with_a_secret_key() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.tamis");
    // The file of a filter without a key may be readable by all.
    Bloom::for_items(1_000, 0.01).unwrap().save(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Bloom::builder(1_000, 0.01).key([1, 2]).build().unwrap().save(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Counts the calls of `write`, and fails after a number of bytes.
struct Counted {
    calls: u64,
    bytes: u64,
    room: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes + bytes.len() as u64 > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.calls += 1;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_growing_filter_is_written_in_few_calls() {
    let mut seen = Growing::new(0.01).unwrap();
    seen.extend(0..1_300_000_u64);
    let file_bytes = seen.len_words() * 8;
    assert!(file_bytes > 2_000_000);
    let file = TamisFile::new(seen.into());
    let mut out = Counted { calls: 0, bytes: 0, room: u64::MAX };
    file.write_to(&mut out).unwrap();
    assert_eq!(out.bytes, file.len_bytes());
    assert!(out.calls <= file_bytes / (1 << 15), "{} calls for {file_bytes} bytes", out.calls);
    let mut full = Counted { calls: 0, bytes: 0, room: file_bytes / 2 };
    assert_eq!(file.write_to(&mut full).unwrap_err().kind(), io::ErrorKind::StorageFull);
}
