//! The code that `docs/library.md` shows. Each function is a section of the page, which shows its
//! body.

use std::error::Error;

const PAGE: &str = include_str!("../../../../docs/library.md");
const SOURCE: &str = include_str!("library_page.rs");

type Done = Result<(), Box<dyn Error>>;

#[test]
fn every_block_of_the_page_is_code_of_this_file() {
    let source: Vec<&str> = SOURCE.lines().map(str::trim).collect();
    let blocks: Vec<&str> = PAGE.split("```rust\n").skip(1).collect();
    assert!(blocks.len() >= 12, "{} blocks", blocks.len());
    for block in blocks {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let is_here = source.windows(lines.len()).any(|window| window == lines);
        assert!(is_here, "docs/library.md shows code that no test runs:\n{block}");
    }
}

#[test]
fn begin() -> Done {
    use tamis::Bloom;

    let mut seen = Bloom::for_items(1_000_000, 0.01)?;
    assert!(seen.insert("https://example.org/"), "new");
    assert!(seen.contains("https://example.org/"));
    assert!(!seen.contains("https://example.com/"));
    Ok(())
}

#[test]
fn items() -> Done {
    use tamis::{Bloom, Item};

    let mut seen = Bloom::from_items(["a", "b", "c"], 0.01)?;
    seen.insert(&42_u64);
    seen.insert(&("user", 42_u64));
    assert!(seen.contains(&String::from("a")), "the bytes count, not the type");
    assert_eq!(7_u32.stable_bytes(), [7, 0, 0, 0]);
    Ok(())
}

#[test]
fn size() -> Done {
    use tamis::{Bloom, Kind, Plan};

    let plan = Bloom::builder(1_000_000, 0.01).plan()?;
    assert_eq!(plan.bytes() >> 10, 1_232);
    assert!(plan.bits_per_item() < 10.11);
    assert!(plan.rate_at(2_000_000) > 0.1, "twice the items, over ten times the rate");

    // The number of items that fit a memory limit.
    let plan = Plan::for_memory(Kind::SplitBlock, 64 << 20, 0.01)?;
    assert!(plan.items() > 53_000_000);
    Ok(())
}

#[test]
fn build() -> Done {
    use tamis::{Bloom, Classic};

    let seen = Bloom::builder(1_000_000, 0.01).seed(7).huge_pages(false).build()?;
    let secret = Bloom::builder(1_000_000, 0.01).key([0x1234, 0x5678]).build()?;
    let rare = Bloom::builder(1_000_000, 1e-6).strategy::<Classic>().build()?;
    assert!(secret.hasher().is_keyed() && seen.hasher() != rare.hasher());
    Ok(())
}

#[test]
fn kind() -> Done {
    use tamis::{AnyFilter, Hasher, Kind, Plan};

    // Chooses the kind by the rate, and creates a filter of this kind.
    let plan = Plan::new(1_000_000, 1e-6)?;
    let mut seen = AnyFilter::from_plan(&plan, Hasher::default())?;
    seen.try_insert("tamis")?;
    assert_eq!(plan.kind(), Kind::Classic);
    Ok(())
}

#[test]
fn batches() -> Done {
    use tamis::{Answers, Bloom};

    let mut seen = Bloom::for_items(10_000, 0.01)?;
    assert_eq!(seen.insert_all(&[1_u64, 2, 3, 2]), 3, "new items");
    assert!(seen.contains_all(&[1_u64, 2, 3]));

    // One answer for each item, as a bit mask. The next batch uses `answers` again.
    let mut answers = Answers::new();
    seen.contains_each(&[1_u64, 2, 1 << 40], &mut answers);
    assert_eq!(answers.zeros().collect::<Vec<_>>(), [2], "certainly absent");

    seen.extend((0..5_000_u64).map(|i| i * i));
    Ok(())
}

#[test]
fn threads() -> Done {
    use tamis::{Bloom, SharedBloom};

    let seen: SharedBloom = Bloom::builder(100_000, 0.01).build_shared()?;
    let items: Vec<u64> = (0..100_000).collect();
    std::thread::scope(|threads| {
        for items in items.chunks(50_000) {
            let seen = &seen;
            threads.spawn(move || seen.insert_all(items));
        }
    });
    assert!(seen.contains_all(&items));
    let seen: Bloom = seen.into_owned(); // no copy
    assert!(seen.contains(&77_u64));
    Ok(())
}

#[test]
fn save() -> Done {
    let folder = std::env::temp_dir().join(format!("tamis-library-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("seen.tamis");
    let seen = tamis::Bloom::from_items(["tamis"], 0.01)?;

    use std::fs::{self, File};
    use tamis_formats::TamisFile;

    TamisFile::new(seen.into()).write_to(File::create(&path)?)?;
    let seen = TamisFile::decode(&fs::read(&path)?)?.filter;
    assert!(seen.contains("tamis"));

    // Borrows the bytes instead of copying them. They must start at a multiple of 8. A mapped file
    // does, a Vec may not.
    let bytes = fs::read(&path)?;
    if let Ok(file) = TamisFile::view(&bytes) {
        assert!(file.filter.contains("tamis"));
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn expiry() -> Done {
    use tamis::Window;

    // Remembers an item for at least one hour and at most two hours, for up to 100,000 items per
    // hour.
    let mut seen = Window::for_time(100_000, 0.01, 3_600_000)?;
    seen.advance(1_700_000_000_000); // the caller's clock, in milliseconds
    assert!(seen.insert("tamis"));
    seen.advance(1_700_000_000_000 + 2 * 3_600_000);
    assert!(!seen.contains("tamis"), "two hours later");

    // Remembers the last 100,000 new items.
    let mut last = Window::for_items(100_000, 0.01)?;
    assert!(last.insert("tamis") && !last.insert("tamis"));
    Ok(())
}

#[test]
fn growth() -> Done {
    use tamis::{Growing, Hasher};

    let mut seen = Growing::new(0.01)?;
    for item in 0..200_000_u64 {
        seen.try_insert(&item)?;
    }
    assert!(seen.estimate_rate() < 0.01);
    Ok(())
}

#[test]
fn deletes() -> Done {
    use tamis::{Counting, Cuckoo, Removed};

    let mut seen = Cuckoo::for_items(1_000, 0.01)?;
    seen.try_insert("tamis")?;
    assert_eq!((seen.count("tamis"), seen.len()), (1, 1));
    assert_eq!(seen.remove("tamis"), Removed::Yes);
    assert!(seen.is_empty());

    // Accepts every item, counts to 15, and takes four and a half times the bits of a Bloom filter
    // at 1 %.
    let mut counted = Counting::for_items(1_000, 0.01)?;
    assert_eq!(counted.insert_all(&["a", "a", "a"]), 1);
    assert_eq!(counted.count("a"), 3);
    Ok(())
}

#[test]
fn merges() -> Done {
    use tamis::{Bloom, MergeError};

    let mut monday = Bloom::for_items(1_000, 0.01)?;
    let mut tuesday = Bloom::for_items(1_000, 0.01)?;
    monday.insert("a");
    tuesday.insert("b");
    let both = &monday | &tuesday; // panics if the layouts differ
    assert!(both.contains_all(&["a", "b"]));

    let larger = Bloom::for_items(2_000, 0.01)?;
    assert!(matches!(monday.merge(&larger), Err(MergeError::Layout { .. })));
    Ok(())
}

#[test]
fn state() -> Done {
    use tamis::Bloom;

    let mut seen = Bloom::for_items(1_000, 0.01)?;
    seen.extend(0..3_000_u64);
    assert!((2_800.0..3_200.0).contains(&seen.estimate_items()));
    assert!(seen.is_over_rate() && seen.estimate_rate() > 0.1);
    println!("{seen:?}"); // kind, capacity, rates, items and fill, from 64 KiB at most
    seen.clear();
    assert!(seen.is_empty() && seen.capacity() == 1_000);
    Ok(())
}

#[test]
fn errors() -> Done {
    use tamis::{Bloom, Cuckoo, NoRoom, PlanError};

    assert_eq!(Bloom::builder(1_000, 1.5).build(), Err(PlanError::Rate { rate: 1.5 }));

    let mut seen = Cuckoo::for_items(100, 0.01)?;
    let items: Vec<u64> = (0..1_000).collect();
    let error = seen.try_insert_all(&items).unwrap_err();
    assert!(matches!(error.reason, NoRoom::Full { .. }));
    assert!(seen.contains_all(&items[..error.inserted]), "those before it are in");
    Ok(())
}

#[test]
fn exact() -> Done {
    use tamis::{DenseSet, DigestSet, Hasher};

    // A set of 128-bit hashes: the probability that two of a billion items share one is 10⁻²¹.
    let mut seen = DigestSet::new();
    assert!(seen.insert(Hasher::default().hash128(b"tamis"))?);
    assert_eq!(seen.len(), 1);

    // A set of integers, one bit each.
    let mut numbers = DenseSet::new(0..=999)?;
    assert!(numbers.insert(7)? && numbers.contains(7));
    Ok(())
}
