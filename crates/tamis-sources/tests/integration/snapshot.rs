//! A snapshot has the answers of its generation, also if the generation changes meanwhile, and
//! damaged bytes are an error.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tamis::{AnyFilter, Hasher, Plan};
use tamis_sources::{
    Generation, IdSetOptions, IdType, IntegerForm, Snapshot, SnapshotError, SnapshotHead,
    SnapshotOptions, SnapshotStore,
};

use crate::checker::Random;

const MAX_BYTES: u64 = 1 << 30;

fn id(i: u64) -> Vec<u8> {
    i.to_string().into_bytes()
}

fn head() -> SnapshotHead {
    SnapshotHead {
        ids: "uuid".to_owned(),
        source: "server 7, shop.products".to_owned(),
        position: vec![0, 255, 10],
        created: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
        built: UNIX_EPOCH + Duration::from_millis(1_600_000_000_456),
    }
}

fn written(generation: &Generation) -> Vec<u8> {
    let mut bytes = Vec::new();
    generation.write_snapshot(&head(), || b"end".to_vec(), &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    Generation::read_snapshot(bytes, MAX_BYTES)
}

/// Writes the snapshot of a source at a position.
fn save(
    store: &SnapshotStore,
    source: &str,
    ids: &IdSetOptions,
    position: &[u8],
    generation: &Generation,
) -> Result<(), SnapshotError> {
    let head = SnapshotHead::new(source, ids, position.to_vec(), SystemTime::now());
    store.save(&head, generation, Vec::new)
}

/// Returns a generation after random changes, with a filter of a file if `has_base`, and the last
/// change of each id.
fn random_generation(random: &mut Random, has_base: bool) -> (Generation, BTreeMap<u64, bool>) {
    let mut known = BTreeMap::new();
    let generation = if has_base {
        let plan = Plan::new(3000, 0.001).unwrap();
        let mut filter = AnyFilter::from_plan(&plan, Hasher::keyed([1, 2])).unwrap();
        for i in 0..random.below(3000) {
            filter.try_insert(&id(i)).unwrap();
            known.insert(i, true);
        }
        Generation::with_base(filter, 0.01).unwrap()
    } else {
        Generation::new(1, 0.01).unwrap()
    };
    // A part has room for 10 000 ids, so some generations grow.
    let changes = [0, 10, 2000, 60_000][random.below(4) as usize];
    for _ in 0..changes {
        let i = random.below(changes);
        let exists = random.below(8) > 0;
        match exists {
            true => generation.insert_key(&id(i), Some(i as i64)).unwrap(),
            false => generation.delete_key(&id(i)),
        }
        known.insert(i, exists);
    }
    (generation, known)
}

#[test]
fn a_snapshot_has_the_answers_of_its_generation() {
    let mut random = Random(7);
    for case in 0..24 {
        let (generation, known) = random_generation(&mut random, case % 2 == 1);
        let found = read(&written(&generation)).unwrap();
        assert_eq!((found.head, &*found.end), (head(), &b"end"[..]));
        let copy = found.generation;
        for (&i, &exists) in &known {
            assert_eq!(copy.contains(&id(i)), exists, "case {case}, id {i}");
        }
        // False positives are the same ones.
        for _ in 0..5000 {
            let i = id(random.below(1 << 40));
            assert_eq!(copy.contains(&i), generation.contains(&i), "case {case}");
        }
        assert_eq!(copy.items(), generation.items());
        assert_eq!(copy.deleted(), generation.deleted());
        assert_eq!(copy.highest(), generation.highest());
        assert_eq!((copy.bytes(), copy.rate()), (generation.bytes(), generation.rate()));
        // Both go on in the same way: a deleted id can come back, and the filter grows.
        for (&i, _) in known.iter().filter(|(_, exists)| !**exists) {
            copy.insert_key(&id(i), None).unwrap();
            assert!(copy.contains(&id(i)));
        }
        for i in 1_000_000..1_030_000 {
            copy.insert_key(&id(i), None).unwrap();
        }
        assert!((1_000_000..1_030_000).all(|i| copy.contains(&id(i))));
    }
}

#[test]
fn a_snapshot_while_ids_change_has_all_changes_up_to_its_position() {
    let generation = Generation::new(1, 0.01).unwrap();
    // All ids below it are inserted, and the odd ones among them deleted.
    let position = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| {
            for i in 0..60_000 {
                generation.insert_key(&id(i), None).unwrap();
                if i % 2 == 1 {
                    generation.delete_key(&id(i));
                }
                position.store(i + 1, Ordering::Release);
            }
        });
        let mut is_over = false;
        while !is_over {
            is_over = writer.is_finished();
            let known = position.load(Ordering::Acquire);
            let copy = read(&written(&generation)).unwrap().generation;
            for i in 0..known {
                assert_eq!(copy.contains(&id(i)), i % 2 == 0, "id {i} of {known}");
            }
            // The reader applies the changes after the position again.
            for i in known..60_000 {
                copy.insert_key(&id(i), None).unwrap();
                if i % 2 == 1 {
                    copy.delete_key(&id(i));
                }
            }
            for i in 0..60_000 {
                assert_eq!(copy.contains(&id(i)), i % 2 == 0, "id {i} after {known}");
            }
        }
    });
}

#[test]
fn damaged_bytes_are_an_error() {
    let (generation, _) = random_generation(&mut Random(3), true);
    generation.delete_key(b"1");
    let bytes = written(&generation);
    assert!(read(&bytes).is_ok());
    let mut random = Random(5);
    // The start has the fields; the rest is mostly words of filters.
    let places = (0..300).chain((0..300).map(|_| random.below(bytes.len() as u64) as usize));
    for at in places.chain(bytes.len() - 40..bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = read(&damaged).err().unwrap_or_else(|| panic!("byte {at} has no checksum"));
        assert!(!error.to_string().contains('\n'), "{error}");
        let error = read(&bytes[..at]).unwrap_err();
        assert!(
            matches!(error, SnapshotError::Truncated | SnapshotError::Filter(_)),
            "{at} bytes: {error}"
        );
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(read(&longer), Err(SnapshotError::TooLong)));
    let limit = bytes.len() as u64 - 1;
    let too_large = Generation::read_snapshot(&bytes[..], limit);
    assert!(matches!(too_large, Err(SnapshotError::TooLarge { .. })));
    assert!(Generation::read_snapshot(&bytes[..], limit + 1).is_ok());
    assert!(matches!(read(b"1\n2\n3\n45678"), Err(SnapshotError::NotASnapshot)));
}

fn options(id: IdType) -> IdSetOptions {
    IdSetOptions { rate: 0.01, ..IdSetOptions::new(id) }
}

#[test]
fn a_store_returns_what_it_saved_to_the_same_source_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("products.snapshot");
    let store = SnapshotStore::new(SnapshotOptions::new(&path));
    let integers = |max| options(IdType::Integer { min: 1, max, form: IntegerForm::default() });
    let ids = integers(100);
    assert!(store.is_due() && store.load("shop", &ids.id, ids.rate).unwrap().is_none());
    let generation = Generation::new(1, 0.01).unwrap();
    generation.insert_key(b"7", Some(7)).unwrap();
    save(&store, "shop", &ids, b"log 3, byte 500", &generation).unwrap();
    assert!(!store.is_due());
    let loaded = store.load("shop", &ids.id, ids.rate).unwrap().unwrap();
    assert!(loaded.generation.contains(b"7") && loaded.head.position == b"log 3, byte 500");

    for (source, ids, expected) in [
        ("other", ids.clone(), "another source: shop, and not other"),
        ("shop", integers(101), "another type of ids: integer 1..=100 padded, and not integer"),
        ("shop", IdSetOptions { rate: 0.02, ..ids.clone() }, "another rate: 0.01, and not 0.02"),
    ] {
        let error = store.load(source, &ids.id, ids.rate).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the file has the hash key");
    }
}

#[test]
fn a_store_that_cannot_write_keeps_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.snapshot");
    let store = SnapshotStore::new(SnapshotOptions::new(&path));
    let ids = options(IdType::Uuid);
    let generation = Generation::new(1, 0.01).unwrap();
    save(&store, "a", &ids, b"1", &generation).unwrap();
    // A position that the format cannot store fails in the middle of the file.
    let error = save(&store, "a", &ids, &[0; 1 << 17], &generation).unwrap_err();
    assert!(error.to_string().contains("64 KiB"), "{error}");
    assert_eq!(store.load("a", &ids.id, ids.rate).unwrap().unwrap().head.position, b"1");
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "the unfinished file is removed");

    let nowhere = SnapshotStore::new(SnapshotOptions::new(folder.path().join("no/a")));
    let error = save(&nowhere, "a", &ids, b"1", &generation).unwrap_err().to_string();
    assert!(error.contains("no/a") && !error.contains("os error"), "{error}");
    let directory = SnapshotStore::new(SnapshotOptions::new(folder.path()));
    assert!(directory.load("a", &ids.id, ids.rate).is_err());
}

#[test]
fn the_seeds_of_the_fuzzer_are_snapshots() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/guard_snapshot");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        // The fuzzer replaces the checksum, too.
        let (body, _) = bytes.split_last_chunk::<8>().unwrap();
        let sealed = [body, &xxhash_rust::xxh3::xxh3_64(body).to_le_bytes()].concat();
        Generation::read_snapshot(&sealed[..], 1 << 20).unwrap();
        count += 1;
    }
    assert_eq!(count, 4);
}
