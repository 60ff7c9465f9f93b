//! Fills a filter on a cluster and measures its balance, memory and rate.
//!
//! ```text
//! cargo run --release -p tamis-redis --example cluster ITEMS URL...
//! ```

use std::error::Error;
use std::time::Instant;

use tamis_redis::{ClusterNodes, Patience, RedisFilter, RedisPlan};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let items: u64 = arguments.next().ok_or("ITEMS URL...")?.parse()?;
    let urls: Vec<String> = arguments.collect();
    let nodes = ClusterNodes::new(urls.iter().map(String::as_str), Patience::default())?;
    let plan = RedisPlan::new(items, 0.01)?;
    let name = format!("cluster-{}", std::process::id());
    let filter = RedisFilter::create(nodes, &name, &plan)?;
    println!("{} shards, {} probes", plan.shards(), plan.probes());

    let start = Instant::now();
    for first in (0..items).step_by(10_000) {
        let batch: Vec<u64> = (first..items.min(first + 10_000)).collect();
        for result in filter.insert_each(&batch) {
            result?;
        }
    }
    println!("{:.0} inserts/s", items as f64 / start.elapsed().as_secs_f64());

    let present: Vec<u64> = (0..items).step_by((items / 1_000_000).max(1) as usize).collect();
    for (item, found) in present.iter().zip(filter.contains_each(&present)) {
        if !found? {
            return Err(format!("{item} is not found").into());
        }
    }
    let absent: Vec<u64> = (1 << 40..(1 << 40) + 1_000_000).collect();
    let mut found = 0;
    for result in filter.contains_each(&absent) {
        found += u64::from(result?);
    }
    println!("{} present items found, rate {:.5}", present.len(), found as f64 / 1e6);

    let mut sum = 0;
    for url in &urls {
        let mut redis = redis::Client::open(&url[..])?.get_connection()?;
        let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{name}*")).query(&mut redis)?;
        let mut bytes = 0_u64;
        for key in &keys {
            let used: u64 = redis::cmd("MEMORY").arg("USAGE").arg(key).query(&mut redis)?;
            bytes += used;
        }
        println!("{url}: {} keys, {bytes} bytes", keys.len());
        sum += bytes;
    }
    println!("{:.3} bytes an item", sum as f64 / items as f64);
    filter.delete()?;
    Ok(())
}
