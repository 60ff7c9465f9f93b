//! The Rust code that `docs/redis-bitmaps.md` shows is compiled: as a function of this file, or as an
//! example.

use std::error::Error;

type Done = Result<(), Box<dyn Error>>;

const PAGE: &str = include_str!("../../../docs/redis-bitmaps.md");
const SOURCES: [&str; 2] = [include_str!("page.rs"), include_str!("../examples/web_service.rs")];

#[test]
fn every_block_of_the_page_is_code_that_is_compiled() {
    let blocks: Vec<&str> = PAGE.split("```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let (block, _) = block.split_once("\n```").expect("a block ends");
        let lines: Vec<&str> = block.lines().map(str::trim).collect();
        let is_here = SOURCES.iter().any(|source| {
            let source: Vec<&str> = source.lines().map(str::trim).collect();
            source.windows(lines.len()).any(|window| window == lines)
        });
        assert!(is_here, "docs/redis-bitmaps.md shows code that is not compiled:\n{block}");
    }
    // The functions need a server, so the test does not call them.
    let _: [fn() -> Done; 2] = [begin, threads];
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
