//! A filter finds every item whose insert was acknowledged, whatever happens.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Server, ask, keys_of, node_at, patience, plan_for, small_shards};
use tamis_redis::{
    NodeReply, NodeRequest, RedisCreateError, RedisFilter, RedisItemError, RedisOpenError,
    RedisPlan, SendError, SingleNode, Transport,
};
use tamis_testing::wait_for;

fn acknowledged<T: Transport>(filter: &RedisFilter<T>, items: &[u64]) -> HashSet<u64> {
    let results = filter.insert_each(items);
    items.iter().zip(results).filter(|(_, result)| result.is_ok()).map(|(&item, _)| item).collect()
}

fn assert_holds<T: Transport>(filter: &RedisFilter<T>, items: &HashSet<u64>) {
    let items: Vec<u64> = items.iter().copied().collect();
    for (item, found) in items.iter().zip(filter.contains_each(&items)) {
        assert_eq!(found, Ok(true), "{item}");
    }
}

#[test]
fn threads_that_insert_at_once_lose_nothing() {
    let server = Server::start();
    let plan = plan_for(200_000).max_shard_bytes(8192).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (server, plan) = (&server, &plan);
            scope.spawn(move || {
                let filter = RedisFilter::open_or_create(server.node(), "f", plan).unwrap();
                let items: Vec<u64> = (0..50_000).map(|i| 4 * i + thread).collect();
                for items in items.chunks(500) {
                    assert_eq!(acknowledged(&filter, items).len(), items.len());
                }
            });
        }
    });
    let filter = RedisFilter::open(server.node(), "f").unwrap();
    assert_holds(&filter, &(0..200_000).collect());
}

#[test]
fn the_measured_rate_is_at_most_the_planned_rate() {
    let server = Server::start();
    for (i, (items, rate, shard_bytes)) in
        [(20_000, 0.01, 4 << 20), (100_000, 0.01, 8192), (50_000, 0.001, 4096), (5, 0.1, 4096)]
            .into_iter()
            .enumerate()
    {
        let plan = RedisPlan::new(items, rate).unwrap().max_shard_bytes(shard_bytes).unwrap();
        let filter = RedisFilter::create(server.node(), &format!("f{i}"), &plan).unwrap();
        let present: Vec<u64> = (0..items).collect();
        assert_eq!(acknowledged(&filter, &present).len(), present.len());
        let absent: Vec<u64> = (1 << 40..(1 << 40) + 200_000).collect();
        let found = filter.contains_each(&absent);
        let found = found.into_iter().filter(|found| *found.as_ref().unwrap()).count();
        crate::support::assert_at_most(found, absent.len(), rate);
    }
}

#[test]
fn the_answers_of_inserts_are_those_of_lookups_before() {
    let server = Server::start();
    let plan = RedisPlan::new(10_000, 0.05).unwrap();
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    for start in (0..20_000_u64).step_by(500) {
        let items: Vec<u64> = (start..start + 500).map(|i| i * i % 9973).collect();
        let found = filter.contains_each(&items[..1]).remove(0).unwrap();
        let new = filter.insert_each(&items[..1]).remove(0).unwrap();
        assert_eq!(new, !found);
        acknowledged(&filter, &items);
    }
}

#[test]
fn an_evicted_shard_is_an_error_and_never_a_no() {
    let server = Server::start();
    let plan = plan_for(100_000).max_shard_bytes(8192).unwrap();
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    let items: Vec<u64> = (0..10_000).collect();
    acknowledged(&filter, &items);
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*");
    for key in &keys[..3] {
        let _: i64 = ask(&mut redis, &["DEL", key]);
    }
    for results in [filter.contains_each(&items), filter.insert_each(&items)] {
        let lost = results.iter().filter(|result| result.is_err()).count();
        assert!(lost > 100 && lost < 2000, "{lost}");
        for result in results {
            match result {
                Ok(_) => {}
                Err(RedisItemError::MissingShard { key }) => {
                    assert!(keys[..3].contains(&key.to_string()));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let left = keys_of(&mut redis, "f:*");
    assert_eq!(left.len(), keys.len() - 3, "an insert leaves no key without a header");
    let _: String = ask(&mut redis, &["FLUSHALL"]);
    assert!(matches!(filter.contains(&1_u64), Err(RedisItemError::NoFilter { .. })));
}

#[test]
fn a_key_of_another_type_is_an_error() {
    let server = Server::start();
    let plan = plan_for(100);
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    let _: i64 = ask(&mut redis, &["LPUSH", &keys[0], "x"]);
    assert!(matches!(filter.insert("a"), Err(RedisItemError::WrongType { .. })));
    assert!(matches!(filter.contains("a"), Err(RedisItemError::WrongType { .. })));
    let _: i64 = ask(&mut redis, &["LPUSH", "list", "x"]);
    let _: String = ask(&mut redis, &["SET", "text", "x"]);
    assert!(matches!(
        RedisFilter::open(server.node(), "list"),
        Err(RedisOpenError::Redis(RedisItemError::WrongType { .. }))
    ));
    assert!(matches!(
        RedisFilter::open(server.node(), "text"),
        Err(RedisOpenError::Metadata { .. })
    ));
    for name in ["list", "text", "f"] {
        let created = RedisFilter::create(server.node(), name, &plan);
        assert!(matches!(created, Err(RedisCreateError::Exists { .. })), "{name}");
    }
}

#[test]
fn the_first_of_many_clients_creates_the_filter() {
    let server = Server::start();
    let created: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let node = server.node();
                let plan = plan_for(1000 + i);
                scope.spawn(move || RedisFilter::create(node, "f", &plan).is_ok())
            })
            .collect();
        threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
    });
    assert_eq!(created, 1);
    let keys = keys_of(&mut server.connection(), "*");
    assert_eq!(keys.len(), 2, "the other clients remove their shards: {keys:?}");
    let plan = RedisPlan::new(5000, 0.02).unwrap();
    let error = RedisFilter::open_or_create(server.node(), "f", &plan).err().unwrap();
    let RedisOpenError::Differs { differences, .. } = &error else { panic!("{error}") };
    let names: Vec<_> = differences.iter().map(|difference| difference.parameter).collect();
    assert_eq!(names, ["items", "rate"], "{error}");
}

#[test]
fn a_reply_that_comes_too_late_is_not_taken_for_another_one() {
    let server = Server::with(&["--enable-debug-command", "yes"]);
    let plan = plan_for(100_000);
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    let present: Vec<u64> = (0..500).collect();
    assert_eq!(acknowledged(&filter, &present).len(), 500);
    let patience = tamis_redis::Patience {
        response: std::time::Duration::from_millis(100),
        retries: 0,
        ..patience()
    };
    let node = SingleNode::new(&server.url(), patience).unwrap();
    let hasty = RedisFilter::open(node, "f").unwrap();
    assert_eq!(hasty.contains(&1_u64), Ok(true));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _: String = ask(&mut server.connection(), &["DEBUG", "SLEEP", "0.6"]);
        });
        std::thread::sleep(std::time::Duration::from_millis(100));
        // The server executes this later, after the client has given up.
        let late = hasty.insert_each(&[600_u64, 601]);
        assert!(late.iter().all(|result| matches!(result, Err(RedisItemError::Connection { .. }))));
    });
    let absent: Vec<u64> = (10_000..10_500).collect();
    let found = hasty.contains_each(&absent);
    assert!(found.iter().filter(|found| **found == Ok(true)).count() < 20, "{found:?}");
    assert_holds(&hasty, &present.into_iter().collect());
    // A repeated insert is safe. The first one may have been executed.
    assert!(hasty.insert_each(&[600_u64, 601]).iter().all(Result::is_ok));
    assert_holds(&hasty, &[600, 601].into());
}

#[test]
fn a_client_follows_a_filter_that_another_client_replaced() {
    let server = Server::start();
    let filter = RedisFilter::create(server.node(), "f", &small_shards(1_000)).unwrap();
    assert_eq!(filter.insert("a"), Ok(true));
    RedisFilter::open(server.node(), "f").unwrap().delete().unwrap();
    RedisFilter::create(server.node(), "f", &small_shards(50_000)).unwrap();
    assert_eq!((filter.contains("a"), filter.insert("b")), (Ok(false), Ok(true)));
    assert_eq!(filter.info().unwrap().items_planned, 50_000);
    let keys = keys_of(&mut server.connection(), "f:*");
    assert_eq!(keys.len(), filter.info().unwrap().shards as usize, "no old key is left");
    filter.delete().unwrap();
    let keyed = small_shards(1_000).hasher(tamis::Hasher::keyed([1, 2]));
    let other = RedisFilter::create(server.node(), "f", &keyed).unwrap();
    assert!(matches!(filter.insert("c"), Err(RedisItemError::Replaced { .. })));
    assert_eq!((other.insert("c"), other.contains("c")), (Ok(true), Ok(true)));
    let again = RedisFilter::open(server.node(), "f").unwrap();
    assert_eq!(again.contains("c"), Ok(true), "the key is in the metadata");
}

#[test]
fn a_server_without_bitfield_ro_gives_the_same_answers() {
    let server = Server::with(&["--rename-command", "BITFIELD_RO", ""]);
    let plan = small_shards(20_000);
    let items: Vec<u64> = (0..1000).collect();
    let filter = RedisFilter::create(server.node(), "f", &plan.growing().unwrap()).unwrap();
    assert_eq!(acknowledged(&filter, &items).len(), 1000);
    for is_info_first in [false, true] {
        let filter = RedisFilter::open(server.node(), "f").unwrap();
        if is_info_first {
            assert!(filter.info().unwrap().items > 990);
        }
        assert_holds(&filter, &items.iter().copied().collect());
        assert!(filter.info().unwrap().missing.is_empty());
    }
}

#[test]
fn a_full_server_refuses_inserts_and_still_answers_lookups() {
    let server = Server::start();
    let plan = plan_for(20_000);
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    assert_eq!(filter.insert("a"), Ok(true));
    let _: String = ask(&mut server.connection(), &["CONFIG", "SET", "maxmemory", "1"]);
    let refused = filter.insert("b");
    assert!(
        matches!(&refused, Err(RedisItemError::Server { code, .. }) if **code == *"OOM"),
        "{refused:?}"
    );
    assert_eq!((filter.contains("a"), filter.contains("b")), (Ok(true), Ok(false)));
}

#[test]
fn acknowledged_inserts_survive_a_kill_of_a_server_with_a_log() {
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::with(&log);
    let plan = plan_for(50_000).max_shard_bytes(8192).unwrap();
    let filter = RedisFilter::create(server.node(), "f", &plan.growing().unwrap()).unwrap();
    let items: Vec<u64> = (0..100_000).collect();
    let known = acknowledged(&filter, &items);
    assert_eq!(known.len(), items.len());
    server.kill();
    server.restart(&log);
    assert_holds(&filter, &known);
}

/// A proxy that cuts each connection after some bytes of replies.
struct Proxy {
    port: u16,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(server: u16, mut bytes_until_cut: impl FnMut() -> usize + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = cuts.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, upstream) =
                    (client.unwrap(), TcpStream::connect(("127.0.0.1", server)).unwrap());
                let limit = bytes_until_cut();
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                std::thread::spawn(move || forward(from, to, usize::MAX));
                let counted = counted.clone();
                std::thread::spawn(move || {
                    if forward(upstream, client, limit) {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { port, cuts }
    }
}

/// Copies bytes. Returns true if it cut the connection at the limit.
fn forward(mut from: TcpStream, mut to: TcpStream, mut limit: usize) -> bool {
    let mut buffer = [0; 4096];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        let written = read.min(limit);
        let is_over = read == 0 || to.write_all(&buffer[..written]).is_err() || written < read;
        limit -= written.min(limit);
        if is_over {
            let _ = to.shutdown(std::net::Shutdown::Both);
            let _ = from.shutdown(std::net::Shutdown::Both);
            return read > written;
        }
    }
}

#[test]
fn a_cut_connection_in_the_middle_of_a_batch_loses_no_acknowledged_insert() {
    let server = Server::start();
    let mut cut = 0;
    let proxy = Proxy::start(server.port, move || {
        cut = (cut * 7919 + 1) % 20_011;
        2000 + cut
    });
    let plan = plan_for(100_000).max_shard_bytes(8192).unwrap();
    RedisFilter::create(server.node(), "f", &plan).unwrap();
    let filter = wait_for("a connection that is not cut too early", || {
        RedisFilter::open(node_at(proxy.port), "f").ok()
    });
    let items: Vec<u64> = (0..60_000).collect();
    let mut known = HashSet::new();
    for items in items.chunks(777) {
        known.extend(acknowledged(&filter, items));
    }
    let cuts = proxy.cuts.load(Ordering::Relaxed);
    assert!(cuts > 20 && known.len() > 10_000, "{cuts} cuts, {} acknowledged", known.len());
    assert_holds(&RedisFilter::open(server.node(), "f").unwrap(), &known);
}

/// A node whose first reply to each request is lost. It repeats the requests that may be repeated.
struct Twice(SingleNode);

impl Transport for Twice {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        self.0.send(requests);
        let again = |request: &NodeRequest| match request.is_repeatable {
            true => self.0.send(std::slice::from_ref(request)).remove(0),
            false => Err(SendError { message: "lost".into() }),
        };
        requests.iter().map(again).collect()
    }
}

#[test]
fn a_lost_reply_never_makes_the_counter_too_small() {
    let server = Server::start();
    let plan = RedisPlan::new(100_000, 1e-6).unwrap().max_shard_bytes(64 << 10).unwrap();
    RedisFilter::create(server.node(), "f", &plan).unwrap();
    let filter = RedisFilter::open(Twice(server.node()), "f").unwrap();
    let count = || RedisFilter::open(server.node(), "f").unwrap().info().unwrap().items;
    for start in (0..1000_u64).step_by(10) {
        let items: Vec<u64> = (0..start + 10).collect();
        assert_eq!(acknowledged(&filter, &items).len(), items.len());
        assert!(count() >= start + 10, "{} {start}", count());
    }
    let flushed = filter.flush();
    assert!(count() >= 1000, "{}", count());
    assert!(matches!(flushed, Err(RedisItemError::Connection { .. })), "{flushed:?}");
    assert!(filter.info().unwrap().items >= 1000);
}

#[test]
fn a_client_reconnects_after_a_restart_of_the_server() {
    let mut server = Server::start();
    let plan = plan_for(1000);
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    assert_eq!(filter.insert("a"), Ok(true));
    let port = server.port;
    server.kill();
    assert!(matches!(filter.contains("a"), Err(RedisItemError::Connection { .. })));
    // This server has no data: the answer is an error, not a no.
    let _server = Server::at(port, &[]).unwrap();
    assert!(matches!(filter.contains("a"), Err(RedisItemError::NoFilter { .. })));
}

#[test]
fn a_server_that_does_not_answer_is_an_error_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let patience = tamis_redis::Patience {
        connect: std::time::Duration::from_millis(100),
        response: std::time::Duration::from_millis(50),
        retries: 1,
        ..patience()
    };
    let start = std::time::Instant::now();
    let opened = RedisFilter::open(SingleNode::new(&url, patience).unwrap(), "f");
    assert!(matches!(opened, Err(RedisOpenError::Redis(RedisItemError::Connection { .. }))));
    assert!(start.elapsed().as_millis() < 2000, "{:?}", start.elapsed());
}
