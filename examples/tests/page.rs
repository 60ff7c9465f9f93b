//! The code that `docs/library.md` shows. Each function is a section of the page, which shows its
//! body.

use std::error::Error;

const PAGE: &str = include_str!("../../docs/library.md");
const SOURCE: &str = include_str!("page.rs");

/// The whole programs of the page. `tests/programs.rs` and the tests of the guard and of the Redis client run the
/// programs.
const PROGRAMS: [&str; 12] = [
    include_str!("../all_processors.rs"),
    include_str!("../counting.rs"),
    include_str!("../crawler.rs"),
    include_str!("../generic.rs"),
    include_str!("../mapped_file.rs"),
    include_str!("../no_std/src/lib.rs"),
    include_str!("../redis.rs"),
    include_str!("../serde.rs"),
    include_str!("../web_handler.rs"),
    include_str!("../window.rs"),
    include_str!("../wrong_sizes.rs"),
    include_str!("../../crates/tamis-guard/examples/products.rs"),
];

type Done = Result<(), Box<dyn Error>>;

#[test]
fn every_block_of_the_page_is_code_that_a_test_runs() {
    let source: Vec<&str> = SOURCE.lines().map(str::trim).collect();
    let mut shown = Vec::new();
    for block in PAGE.split("```rust\n").skip(1) {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        // The page omits the module documentation of a program.
        let is_shown = |program: &str| {
            let code = program.trim_end();
            code == block || code.strip_suffix(block).is_some_and(|doc| doc.ends_with("\n\n"))
        };
        if let Some(program) = PROGRAMS.iter().position(|program| is_shown(program)) {
            shown.push(program);
            continue;
        }
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let is_here = source.windows(lines.len()).any(|window| window == lines);
        assert!(is_here, "docs/library.md shows code that no test runs:\n{block}");
    }
    shown.sort_unstable();
    assert_eq!(shown, Vec::from_iter(0..PROGRAMS.len()), "the page shows every program once");
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
fn own_items() -> Done {
    use tamis::{Bloom, Item, ItemBytes};

    struct Product {
        shop: u32,
        sku: String,
    }

    impl Item for Product {
        type Bytes<'a> = ItemBytes;

        fn stable_bytes(&self) -> ItemBytes {
            (self.shop, &self.sku).stable_bytes()
        }
    }

    let mut seen = Bloom::for_items(1_000, 0.01)?;
    seen.insert(&Product { shop: 7, sku: "A-1".into() });
    assert!(seen.contains(&(7_u32, "A-1")), "the same bytes");
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
    use tamis::{Bloom, ClassicBloom};

    let seen = Bloom::builder(1_000_000, 0.01).seed(7).huge_pages(false).build()?;
    let secret = Bloom::builder(1_000_000, 0.01).key([0x1234, 0x5678]).build()?;
    let rare = ClassicBloom::for_items(1_000_000, 1e-6)?;
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
    use tamis::SharedBloom;

    let items: Vec<u64> = (0..100_000).collect();
    let seen = SharedBloom::for_items(items.len(), 0.01)?;
    std::thread::scope(|threads| {
        for items in items.chunks(50_000) {
            let seen = &seen;
            threads.spawn(move || seen.insert_all(items));
        }
    });
    assert!(seen.contains_all(&items));
    let seen = seen.into_owned(); // a Bloom, without a copy
    assert!(seen.contains(&77_u64));
    Ok(())
}

#[test]
fn save() -> Done {
    // The process of this test has a folder of its own.
    let folder = tempfile::tempdir()?;
    std::env::set_current_dir(&folder)?;

    use std::sync::Arc;
    use tamis::{AnyFilter, SharedBloom};
    use tamis_formats::{Save, TamisFile};

    let seen = Arc::new(SharedBloom::for_items(1_000, 0.01)?);
    seen.insert("tamis");
    seen.save("ids.tamis")?; // other threads may insert meanwhile
    let any = AnyFilter::load("ids.tamis")?; // a filter of any kind
    assert!(any.contains("tamis"));

    // The file with its metadata.
    let mut file = TamisFile::new(any);
    file.metadata.insert("source", "users.csv")?;
    file.save("ids.tamis")?;
    assert_eq!(TamisFile::load("ids.tamis")?.metadata.get("source"), Some("users.csv"));
    Ok(())
}

#[test]
fn expiry() -> Done {
    use std::time::Duration;
    use tamis::Window;

    // Remembers an item for at least one hour and at most two hours, for up to 100,000 items per
    // hour.
    let mut seen = Window::for_time(Duration::from_secs(3_600), 100_000, 0.01)?;
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
    use tamis::Growing;

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
    seen.try_insert_copy("tamis")?; // `try_insert` would store nothing for a false positive
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
    assert!(seen.contains_all(&items[..error.inserted]), "the items before the refused item");
    Ok(())
}

#[test]
fn exact() -> Done {
    use tamis::{DenseSet, DigestSet, Hasher};

    // A set of 128-bit hashes. Two of a billion items have the same hash with a probability of 10⁻²¹.
    let mut seen = DigestSet::new();
    assert!(seen.insert(Hasher::default().hash128(b"tamis"))?);
    assert_eq!(seen.len(), 1);

    // A set of integers, one bit each.
    let mut numbers = DenseSet::new(0..=999)?;
    assert!(numbers.insert(7)? && numbers.contains(7));
    Ok(())
}
