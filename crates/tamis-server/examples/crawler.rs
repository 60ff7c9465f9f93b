//! A crawler whose workers share one seen-set: no page is fetched twice, whatever worker finds it.
//!
//! ```text
//! cargo run --release -p tamis-server --example crawler [redis://HOST:PORT]
//! ```
//!
//! Without an address, the example starts a server itself. A worker asks for all links of a page at
//! once: `BF.MADD` adds them and answers which are new. The server decides about each URL once, so
//! two workers that find the same link at the same time do not both fetch it.
//!
//! A false positive hides a page: the filter says "seen" and the crawler never fetches it. So the
//! rate is low here, 1e-7, which costs 35 bits a URL instead of 10 at 1 %.

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::sync::Mutex;
use std::thread;

use redis::{Commands as _, Connection};
use tamis_server::{Config, Server};

const KEY: &str = "crawl:seen";
const PAGES: u64 = 200_000;
const LINKS: u64 = 12;
const WORKERS: usize = 4;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let url = std::env::args().nth(1);
    let server = match url {
        Some(_) => None,
        None => Some(Server::start(Config {
            port: 0,
            threads: 2,
            append_only: false,
            ..Config::default()
        })?),
    };
    let url = match (&server, url) {
        (Some(server), _) => format!("redis://{}", server.addresses()[0]),
        (None, url) => url.expect("an address was given"),
    };
    let crawl = crawl(&url, PAGES)?;
    println!("links found    {:>9}", crawl.links);
    println!("pages fetched  {:>9}", crawl.fetched.len());
    println!("fetched twice  {:>9}", crawl.twice);
    println!("bytes of the filter {:>4}", crawl.bytes);
    Ok(())
}

struct Crawl {
    links: u64,
    fetched: HashSet<u64>,
    twice: u64,
    bytes: u64,
}

/// Pages that wait to be fetched, and what the workers did.
struct Frontier {
    queue: VecDeque<u64>,
    /// The number of workers that fetch a page.
    busy: usize,
    crawl: Crawl,
}

fn crawl(url: &str, pages: u64) -> Result<Crawl, Box<dyn Error + Send + Sync>> {
    let client = redis::Client::open(url)?;
    let mut redis = client.get_connection()?;
    let _: () = redis.del(KEY)?;
    // The filter grows beyond this number.
    let _: () = redis::cmd("BF.RESERVE").arg(KEY).arg(1e-7).arg(pages).query(&mut redis)?;
    let _: bool = redis::cmd("BF.ADD").arg(KEY).arg(address(0)).query(&mut redis)?;
    let crawl = Crawl { links: 0, fetched: HashSet::new(), twice: 0, bytes: 0 };
    let frontier = Mutex::new(Frontier { queue: [0].into(), busy: 0, crawl });
    thread::scope(|threads| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| threads.spawn(|| work(client.get_connection()?, &frontier, pages)))
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let mut crawl = frontier.into_inner().expect("no worker panicked").crawl;
    crawl.bytes = redis::cmd("BF.INFO").arg(KEY).arg("SIZE").query::<Vec<u64>>(&mut redis)?[0];
    Ok(crawl)
}

fn work(mut redis: Connection, frontier: &Mutex<Frontier>, pages: u64) -> redis::RedisResult<()> {
    let lock = || frontier.lock().expect("no worker panicked");
    loop {
        let page = {
            let mut frontier = lock();
            match frontier.queue.pop_front() {
                Some(page) => {
                    frontier.busy += 1;
                    frontier.crawl.twice += u64::from(!frontier.crawl.fetched.insert(page));
                    page
                }
                None if frontier.busy == 0 => return Ok(()),
                None => {
                    drop(frontier);
                    thread::yield_now();
                    continue;
                }
            }
        };
        let found = links(page, pages);
        let mut add = redis::cmd("BF.MADD");
        add.arg(KEY);
        found.iter().for_each(|&link| _ = add.arg(address(link)));
        let is_new: redis::RedisResult<Vec<bool>> = add.query(&mut redis);
        let mut frontier = lock();
        frontier.busy -= 1;
        frontier.crawl.links += found.len() as u64;
        frontier.queue.extend(found.iter().zip(is_new?).filter(|(_, new)| *new).map(|(&it, _)| it));
    }
}

fn address(page: u64) -> String {
    format!("https://shop.example/items/{page}?from=list")
}

/// The links of a page of a made-up site: to the next page, and to others.
fn links(page: u64, pages: u64) -> Vec<u64> {
    let mix = |i: u64| (page * LINKS + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let others = (1..LINKS).map(|i| mix(i) % pages);
    others.chain([(page + 1) % pages]).collect()
}

#[test]
fn each_page_is_fetched_once() {
    let config = Config { port: 0, threads: 2, append_only: false, ..Config::default() };
    let server = Server::start(config).unwrap();
    let crawl = crawl(&format!("redis://{}", server.addresses()[0]), 5000).unwrap();
    assert_eq!((crawl.fetched.len(), crawl.twice, crawl.links), (5000, 0, 5000 * LINKS));
}
