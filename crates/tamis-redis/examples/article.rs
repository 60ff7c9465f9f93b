//! Runs the experiment of the article on `RedisBitmaps`: as many inserts as planned, then three
//! times as many.
//!
//! ```text
//! cargo run --release -p tamis-redis --example article [ITEMS [URL]]
//! ```
//!
//! ITEMS is 1000000 unless given; the article has 10000. Without a URL, the program starts a
//! `redis-server` on a free port and stops it at the end. With a URL, it deletes the keys `cursor`
//! and `bloomfilter-…` of that database at the end.
//!
//! The table compares Guava's filter, which does not grow, with `RedisBitmaps` and with the native
//! layout.

use std::error::Error;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use md5::{Digest as _, Md5};
use tamis_formats::guava::{self, GuavaRelease, GuavaStrategy};
use tamis_redis::{BitmapsFilter, Patience, RedisFilter, RedisItemError, RedisPlan, SingleNode};

const RATE: f64 = 0.0005;
const BATCH: usize = 1000;

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

/// The items of the article: hexadecimal MD5 of the four bytes of a number.
fn item(number: u32) -> String {
    Md5::digest(number.to_le_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn count(results: Vec<Result<bool, RedisItemError>>) -> Result<usize, RedisItemError> {
    results.into_iter().try_fold(0, |sum, result| Ok(sum + usize::from(result?)))
}

/// Prints the heading of the table.
fn print_heading(items: u32) {
    println!("planned for {items} items at a rate of {RATE}; 20000 absent items are looked up");
    println!(
        "{:>9}  {:<13}  {:>15}  {:>10}  {:>9}  {:>8}",
        "inserted", "filter", "false positives", "rate", "bitmaps", "seconds"
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let items: u32 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let (_server, url) = match arguments.next() {
        Some(url) => (None, url),
        None => {
            let (server, url) = start()?;
            (Some(server), url)
        }
    };
    run(items, &url)
}

/// Runs the experiment on a server, and prints the table.
///
/// # Errors
///
/// Errors of the server, and an inserted item that is not found.
pub fn run(items: u32, url: &str) -> Result<(), Box<dyn Error>> {
    let node = || SingleNode::new(url, Patience::default());
    let mut fixed =
        guava::create(items.into(), RATE, GuavaStrategy::Mitz64, GuavaRelease::Until33)?;
    let bitmaps = BitmapsFilter::open_or_create(node()?, items.into(), RATE)?;
    bitmaps.reset()?;
    let plan = RedisPlan::new(items, RATE)?.growing()?;
    let name = format!("article-{}", std::process::id());
    let native = RedisFilter::create(node()?, &name, &plan)?;
    let absent: Vec<String> = (0..20_000).map(|i| format!("absent:{i}")).collect();

    print_heading(items);
    let mut done = 0;
    for end in [items, 3 * items] {
        let texts: Vec<String> = (done..end).map(item).collect();
        let row = |name: &str, found: usize, bitmaps: u64, time: Duration| {
            let rate = found as f64 / absent.len() as f64;
            println!(
                "{end:>9}  {name:<13}  {found:>15}  {rate:>10.5}  {bitmaps:>9}  {:>8.1}",
                time.as_secs_f64()
            );
        };
        let start = Instant::now();
        for text in &texts {
            fixed.insert(text.as_bytes());
        }
        let found = absent.iter().filter(|text| fixed.contains(text.as_bytes())).count();
        row("Guava", found, 1, start.elapsed());
        let start = Instant::now();
        for texts in texts.chunks(BATCH) {
            count(bitmaps.insert_each(texts))?;
        }
        let time = start.elapsed();
        row("RedisBitmaps", count(bitmaps.contains_each(&absent))?, bitmaps.cursor() + 1, time);
        let start = Instant::now();
        for texts in texts.chunks(BATCH) {
            count(native.insert_each(texts))?;
        }
        let (time, found) = (start.elapsed(), count(native.contains_each(&absent))?);
        row("native, grows", found, native.info()?.layers.into(), time);
        if count(bitmaps.contains_each(&texts))? + count(native.contains_each(&texts))?
            != 2 * texts.len()
        {
            return Err("an inserted item is not found".into());
        }
        done = end;
    }
    println!("item                              Guava  RedisBitmaps  native");
    for text in [&item(0)[..], "abcdefghijklmnopqrstuvwxyz123456"] {
        let (guava, [bitmaps], [native]) = (
            fixed.contains(text.as_bytes()),
            [bitmaps.contains_each(&[text]).remove(0)?],
            [native.contains(text)?],
        );
        println!("{text}  {guava:<5}  {bitmaps:<12}  {native}");
    }
    native.delete()?;
    bitmaps.reset()?;
    let mut redis = redis::Client::open(url)?.get_connection()?;
    let _: i64 = redis::cmd("DEL").arg("cursor").arg("bloomfilter-0").query(&mut redis)?;
    Ok(())
}
