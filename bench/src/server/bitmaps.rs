//! Compares filters in plain bitmaps of Debian's Redis with the loops of Java articles. These loops
//! are a pipeline of `SETBIT`, and an add that returns whether the item is new.

use std::time::Instant;

use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_redis::{HelperFilter, Patience, RedisFilter, RedisItemError, RedisPlan, SingleNode};

use super::program::Program;
use crate::run::{Bench, Row};

pub const INSERT: &str = "bitmaps in Redis, batch of 500, 1 M items at 1 %";
pub const ANSWER: &str = "bitmaps in Redis, adds with an answer";

pub const CASES: [&str; 2] = [INSERT, ANSWER];

const ITEMS: u64 = 1_000_000;
const RATE: f64 = 0.01;
const BATCH: usize = 500;
/// The number of items that the add of the articles inserts. This add needs seven round trips per
/// item.
const SLOW_ITEMS: u64 = 5000;

/// Runs the selected cases of filters in bitmaps.
pub fn run(bench: &mut Bench) -> Result<(), String> {
    if !CASES.iter().any(|case| bench.wants(case)) {
        return Ok(());
    }
    println!("\n{INSERT}\n{ANSWER}");
    let program = Program::redis()?;
    let url = format!("redis://127.0.0.1:{}", program.port);
    let plan = RedisPlan::new(ITEMS, RATE).map_err(|error| error.to_string())?;
    let items: Vec<u64> = (0..ITEMS).collect();
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    let mut rows = [
        (INSERT, "tamis, insert_each"),
        (INSERT, "tamis, contains_each"),
        (INSERT, "article, pipeline of SETBIT"),
        (ANSWER, "tamis, insert_each of 500"),
        (ANSWER, "article, SETBIT and its reply"),
        (ANSWER, "tamis, layout of the article, insert_each of 500"),
        (ANSWER, "tamis, insert of one item"),
    ]
    .map(|(case, name)| Row::new(case, name));
    rows[0].bits_per_item = Some(plan.bytes() as f64 * 8.0 / ITEMS as f64);
    for _ in 0..bench.rounds {
        let node = SingleNode::new(&url, Patience::default()).map_err(|error| error.to_string())?;
        let made = RedisFilter::create(node, "native", &plan);
        let filter = made.map_err(|error| error.to_string())?;
        let nanos = timed(ITEMS, || {
            let new = items.chunks(BATCH).map(|batch| count(filter.insert_each(batch)));
            expect(new.sum::<Result<u64, _>>(), ITEMS * 98 / 100)
        })?;
        rows[0].rounds.push(nanos);
        rows[3].rounds.push(nanos);
        rows[1].rounds.push(timed(ITEMS, || {
            let found = items.chunks(BATCH).map(|batch| count(filter.contains_each(batch)));
            expect(found.sum::<Result<u64, _>>(), ITEMS)
        })?);
        rows[6].rounds.push(timed(SLOW_ITEMS, || {
            let mut items = items[..SLOW_ITEMS as usize].iter();
            let inserted = items.try_for_each(|item| filter.insert(item).map(drop));
            inserted.map_err(|error| error.to_string())
        })?);
        filter.delete().map_err(|error| error.to_string())?;
        let mut article = Article::connect(&url)?;
        rows[2].rounds.push(timed(ITEMS, || article.add_all(&texts))?);
        article.forget()?;
        rows[4].rounds.push(timed(SLOW_ITEMS, || article.add_each(&texts[..SLOW_ITEMS as usize]))?);
        article.forget()?;
        let node = SingleNode::new(&url, Patience::default()).map_err(|error| error.to_string())?;
        let helper = HelperFilter::new(node, KEY, article.plan).ok_or("a plan without bits")?;
        rows[5].rounds.push(timed(ITEMS, || {
            let new = texts.chunks(BATCH).map(|batch| count(helper.insert_each(batch)));
            expect(new.sum::<Result<u64, _>>(), ITEMS * 98 / 100)
        })?);
        article.forget()?;
    }
    bench.keep(rows);
    Ok(())
}

fn count(results: Vec<Result<bool, RedisItemError>>) -> Result<u64, RedisItemError> {
    results.into_iter().try_fold(0, |sum, result| Ok(sum + u64::from(result?)))
}

/// Checks that at least `least` answers were true.
fn expect(answered: Result<u64, RedisItemError>, least: u64) -> Result<(), String> {
    match answered {
        Ok(answered) if answered >= least => Ok(()),
        Ok(answered) => Err(format!("{answered} answers are true, expected {least}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the time per item, in nanoseconds.
fn timed(items: u64, run: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let begun = Instant::now();
    run()?;
    Ok(begun.elapsed().as_nanos() as f64 / items as f64)
}

/// The loops of the articles. Each item has seven bits in one bitmap.
struct Article {
    redis: redis::Connection,
    plan: RedisBitmapPlan,
}

const KEY: &str = "article";

impl Article {
    fn connect(url: &str) -> Result<Self, String> {
        let client = redis::Client::open(url).map_err(|error| error.to_string())?;
        let redis = client.get_connection().map_err(|error| error.to_string())?;
        Ok(Self { redis, plan: RedisBitmapPlan::new(ITEMS as i32, RATE) })
    }

    fn add_all(&mut self, items: &[String]) -> Result<(), String> {
        for batch in items.chunks(BATCH) {
            let mut pipeline = redis::pipe();
            for item in batch {
                for offset in self.plan.offsets(item.as_bytes()).expect("a plan with bits") {
                    pipeline.cmd("SETBIT").arg(KEY).arg(offset).arg(1).ignore();
                }
            }
            pipeline.exec(&mut self.redis).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn add_each(&mut self, items: &[String]) -> Result<(), String> {
        for item in items {
            for offset in self.plan.offsets(item.as_bytes()).expect("a plan with bits") {
                let mut set = redis::cmd("SETBIT");
                let old: Result<i64, _> = set.arg(KEY).arg(offset).arg(1).query(&mut self.redis);
                old.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn forget(&mut self) -> Result<(), String> {
        redis::cmd("DEL").arg(KEY).exec(&mut self.redis).map_err(|error| error.to_string())
    }
}
