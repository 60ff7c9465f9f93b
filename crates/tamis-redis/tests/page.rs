//! The Rust code that `docs/redis-bitmaps.md` and `docs/java-spring.md` show is compiled: as a function of
//! this file, or as an example.

use std::error::Error;

type Done = Result<(), Box<dyn Error>>;

const PAGE: &str = include_str!("../../../docs/redis-bitmaps.md");
const JAVA_PAGE: &str = include_str!("../../../docs/java-spring.md");
const SOURCES: [&str; 2] = [include_str!("page.rs"), include_str!("../examples/web_service.rs")];

#[test]
fn every_block_of_the_pages_is_code_that_is_compiled() {
    let blocks_of = |page: &'static str| page.split("```rust\n").skip(1);
    let blocks: Vec<&str> = blocks_of(PAGE).chain(blocks_of(JAVA_PAGE)).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let is_here = SOURCES.iter().any(|source| {
            let source: Vec<&str> = source.lines().map(str::trim).collect();
            source.windows(lines.len()).any(|window| window == lines)
        });
        assert!(is_here, "a page shows code that is not compiled:\n{block}");
    }
    // The functions need a server, so the test does not call them.
    let _: [fn() -> Done; 3] = [begin, threads, bitmap_of_java];
}

fn begin() -> Done {
    use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};

    let node = SingleNode::new("redis://localhost", Patience::default())?;
    let plan = RedisPlan::new(1_000_000, 0.01)?;
    let users = RedisFilter::open_or_create(node, "users", &plan)?;
    for result in users.insert_each(&["alice", "bob"]) {
        println!("new: {}", result?);
    }
    assert!(users.contains("alice")?);
    Ok(())
}

fn threads() -> Done {
    use tamis_redis::{Patience, RedisFilter, SingleNode};

    let node = SingleNode::new("redis://localhost", Patience::default())?;
    let users = RedisFilter::open(node, "users")?;
    std::thread::scope(|scope| {
        for name in ["alice", "bob"] {
            let users = &users; // or a clone of an Arc, or a clone of the filter
            scope.spawn(move || println!("{name} is new: {:?}", users.insert(name)));
        }
    });
    Ok(())
}

fn bitmap_of_java() -> Done {
    use tamis_formats::redis_bitmap::RedisBitmapPlan;
    use tamis_formats::{Charset, Funnel};
    use tamis_redis::{HelperFilter, Patience, SingleNode};

    let node = SingleNode::new("redis://127.0.0.1:6379", Patience::default())?;
    let plan = RedisBitmapPlan::new(1_000_000, 0.01);
    let ids = HelperFilter::new(node, "product:ids", plan).expect("a plan with bits");
    let mut scratch = Vec::new();
    let item = Funnel::Twice(Charset::Utf8).key(b"42", &mut scratch)?;
    for may_exist in ids.contains_each(&[item]) {
        println!("42 may exist: {}", may_exist?);
    }
    Ok(())
}
