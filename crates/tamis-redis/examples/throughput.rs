//! Measures items a second beside the loops of the Java articles.
//!
//! ```text
//! cargo run --release -p tamis-redis --example throughput [URL]
//! ```
//!
//! Without a URL, the program starts a `redis-server` on a free port and stops it at the end.

use std::error::Error;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_redis::{HelperFilter, ItemError, Patience, RedisFilter, RedisPlan, SingleNode};

const ITEMS: u64 = 1_000_000;
const RATE: f64 = 0.01;
const BATCH: usize = 500;

/// A server that stops with the program.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> Result<(Server, String), Box<dyn Error>> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let server = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .spawn()?;
    let (server, url) = (Server(server), format!("redis://127.0.0.1:{port}"));
    let client = redis::Client::open(&url[..])?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while client.get_connection().is_err() {
        if Instant::now() > deadline {
            return Err("redis-server does not start".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok((server, url))
}

/// Prints the items a second of a loop, and checks how many of its answers are true.
fn measure(
    name: &str,
    items: u64,
    expected: std::ops::RangeInclusive<u64>,
    run: impl FnOnce() -> Result<u64, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let answered = run()?;
    let rate = items as f64 / start.elapsed().as_secs_f64();
    if !expected.contains(&answered) {
        return Err(format!("{name}: {answered} answers are true, expected {expected:?}").into());
    }
    println!("{name:<58} {rate:>10.0} items/s  {answered:>8} of {items} true");
    Ok(rate)
}

fn count(results: Vec<Result<bool, ItemError>>) -> Result<u64, ItemError> {
    results.into_iter().try_fold(0, |sum, result| Ok(sum + u64::from(result?)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (_server, url) = match std::env::args().nth(1) {
        Some(url) => (None, url),
        None => {
            let (server, url) = start()?;
            (Some(server), url)
        }
    };
    let present: Vec<u64> = (0..ITEMS).collect();
    let absent: Vec<u64> = (ITEMS..2 * ITEMS).collect();
    let new = ITEMS * 98 / 100..=ITEMS;
    let few = 0..=ITEMS * 11 / 1000;

    let node = SingleNode::new(&url, Patience::default())?;
    let plan = RedisPlan::new(ITEMS, RATE)?;
    let name = format!("throughput-{}", std::process::id());
    let mut filter = RedisFilter::create(node, &name, &plan)?;
    println!("native: {} probes, {} shards, {} bytes", plan.probes(), plan.shards(), plan.bytes());
    let native = measure("native, insert_each of 500", ITEMS, new.clone(), || {
        let mut sum = 0;
        for items in present.chunks(BATCH) {
            sum += count(filter.insert_each(items))?;
        }
        Ok(sum)
    })?;
    measure("native, contains_each of 500 present items", ITEMS, ITEMS..=ITEMS, || {
        let mut sum = 0;
        for items in present.chunks(BATCH) {
            sum += count(filter.contains_each(items))?;
        }
        Ok(sum)
    })?;
    measure("native, contains_each of 500 absent items", ITEMS, few, || {
        let mut sum = 0;
        for items in absent.chunks(BATCH) {
            sum += count(filter.contains_each(items))?;
        }
        Ok(sum)
    })?;
    filter.delete()?;
    let node = SingleNode::new(&url, Patience::default())?;
    let mut filter = RedisFilter::create(node, &name, &plan)?;
    measure("native, insert_each of 10000", ITEMS, new.clone(), || {
        let mut sum = 0;
        for items in present.chunks(10_000) {
            sum += count(filter.insert_each(items))?;
        }
        Ok(sum)
    })?;
    let singles = 30_000;
    measure("native, insert of one item", singles, 0..=singles, || {
        let mut sum = 0;
        for item in &absent[..singles as usize] {
            sum += u64::from(filter.insert(item)?);
        }
        Ok(sum)
    })?;
    measure("native, contains of one item", singles, 0..=singles, || {
        let mut sum = 0;
        for item in &absent[..singles as usize] {
            sum += u64::from(filter.contains(item)?);
        }
        Ok(sum)
    })?;
    filter.delete()?;

    let helper = RedisBitmapPlan::new(i32::try_from(ITEMS)?, RATE);
    let key = format!("{name}-helper");
    let mut redis = redis::Client::open(&url[..])?.get_connection()?;
    let texts: Vec<String> = present.iter().map(ToString::to_string).collect();
    let article =
        measure("the article's pipeline: 7 SETBITs an item, 500 items", ITEMS, 0..=0, || {
            for items in texts.chunks(BATCH) {
                let mut pipeline = redis::pipe();
                for item in items {
                    for offset in helper.offsets(item.as_bytes()).expect("a plan with bits") {
                        pipeline.cmd("SETBIT").arg(&key).arg(offset).arg(1).ignore();
                    }
                }
                pipeline.exec(&mut redis)?;
            }
            Ok(0)
        })?;
    let _: () = redis::cmd("DEL").arg(&key).query(&mut redis)?;
    let answered =
        measure("the article's add: 7 SETBITs, one round trip each", 5_000, 0..=5_000, || {
            let mut sum = 0;
            for item in &texts[..5_000] {
                let mut is_new = false;
                for offset in helper.offsets(item.as_bytes()).expect("a plan with bits") {
                    let old: i64 =
                        redis::cmd("SETBIT").arg(&key).arg(offset).arg(1).query(&mut redis)?;
                    is_new |= old == 0;
                }
                sum += u64::from(is_new);
            }
            Ok(sum)
        })?;
    let _: () = redis::cmd("DEL").arg(&key).query(&mut redis)?;
    let node = SingleNode::new(&url, Patience::default())?;
    let mut java = HelperFilter::new(node, &key, helper).expect("a plan with bits");
    measure("the article's bits, insert_each of 500", ITEMS, new, || {
        let mut sum = 0;
        for items in texts.chunks(BATCH) {
            sum += count(java.insert_each(items))?;
        }
        Ok(sum)
    })?;
    let _: () = redis::cmd("DEL").arg(&key).query(&mut redis)?;
    println!(
        "native to the article's pipeline: {:.1}; to its add with an answer: {:.1}",
        native / article,
        native / answered
    );
    Ok(())
}
