//! A filter on a cluster of three masters, and behind a Sentinel.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::{
    Server, ask, assert_at_most, connect, count, count_keys, free_port, naming_sentinel, patience,
    plan_for, small_shards,
};
use tamis_redis::{
    ClusterNodes, Patience, RedisFilter, RedisItemError, RedisOpenError, RedisWindow,
    RedissonFilter, SentinelNode,
};
use tamis_testing::{CommandExt as _, SetOnDrop, wait_until};

fn nodes(cluster: &Cluster) -> ClusterNodes {
    let patience = Patience { retries: 8, ..patience() };
    let urls = [cluster.servers[0].url(), cluster.servers[1].url()];
    ClusterNodes::new(urls.iter().map(String::as_str), patience).unwrap()
}

#[test]
fn a_filter_is_balanced_over_three_masters_and_keeps_its_rate() {
    let cluster = Cluster::start();
    let plan = plan_for(4_000_000);
    let filter = RedisFilter::create(nodes(&cluster), "f", &plan).unwrap();
    let items: Vec<u64> = (0..100_000).collect();
    assert!(filter.insert_each(&items).iter().all(Result::is_ok));
    assert_eq!(count(&filter.contains_each(&items)), items.len());
    let absent: Vec<u64> = (1 << 40..(1 << 40) + 100_000).collect();
    assert_at_most(count(&filter.contains_each(&absent)), absent.len(), 0.01);
    let sizes: Vec<i64> =
        cluster.servers.iter().map(|server| ask(&mut server.connection(), &["DBSIZE"])).collect();
    let mean = sizes.iter().sum::<i64>() as f64 / 3.0;
    assert!(sizes.iter().all(|&size| (size as f64 / mean - 1.0).abs() < 0.1), "{sizes:?}");
    let info = filter.info().unwrap();
    assert!(info.items > 99_990 && info.missing.is_empty(), "{info:?}");
    filter.expire_at(Some(1 << 45)).unwrap();
    filter.delete().unwrap();
    for server in &cluster.servers {
        assert_eq!(count_keys(&mut server.connection()), 0);
    }
}

#[test]
fn growing_filters_windows_and_redisson_filters_work_on_a_cluster() {
    let cluster = Cluster::start();
    let plan = small_shards(10_000);
    let plan = plan.growing().unwrap();
    let filter = RedisFilter::create(nodes(&cluster), "f", &plan).unwrap();
    let items: Vec<u64> = (0..60_000).collect();
    assert!(filter.insert_each(&items).iter().all(Result::is_ok));
    assert_eq!(count(&filter.contains_each(&items)), items.len());
    let info = filter.info().unwrap();
    assert!(info.layers >= 3 && info.rate <= 0.01, "{info:?}");
    // A batch that a busy machine runs for longer than a slice is not settled.
    let span = RedisWindow { slices: 100, slice_millis: 500 };
    let plan = small_shards(10_000);
    let plan = plan.window(span).unwrap();
    let window = RedisFilter::create(nodes(&cluster), "w", &plan).unwrap();
    let reader = RedisFilter::open(nodes(&cluster), "w").unwrap();
    for items in items[..1000].chunks(100) {
        let inserted: Result<Vec<bool>, _> = window.insert_each(items).into_iter().collect();
        inserted.unwrap();
        assert_eq!(count(&reader.contains_each(items)), items.len());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(count(&reader.contains_each(&items[..1000])), 1000);
    window.delete().unwrap();
    let (redisson, _) = RedissonFilter::try_init(nodes(&cluster), "users", 1000, 0.01).unwrap();
    assert_eq!(redisson.insert_each(&["a", "b"]), [Ok(true), Ok(true)]);
    assert_eq!(redisson.contains_each(&["a", "c"]), [Ok(true), Ok(false)]);
}

#[test]
fn slots_that_move_under_load_lose_nothing() {
    let cluster = Cluster::start();
    let plan = small_shards(300_000);
    RedisFilter::create(nodes(&cluster), "f", &plan).unwrap();
    let is_over = AtomicBool::new(false);
    let known = std::thread::scope(|scope| {
        let (is_over, cluster) = (&is_over, &cluster);
        let writer = scope.spawn(move || {
            let filter = RedisFilter::open(nodes(cluster), "f").unwrap();
            let (mut known, mut next) = (Vec::new(), 0_u64);
            while !is_over.load(Ordering::Relaxed) {
                let items: Vec<u64> = (next..next + 200).collect();
                next += 200;
                let results = filter.insert_each(&items);
                known.extend(items.iter().zip(&results).filter(|r| r.1.is_ok()).map(|r| *r.0));
                // What was acknowledged is found while slots move.
                for (item, found) in items.iter().zip(filter.contains_each(&items)) {
                    if known.contains(item) {
                        assert_ne!(found, Ok(false), "{item}");
                    }
                }
            }
            known
        });
        let end = SetOnDrop(is_over);
        cluster.move_slots(1500);
        drop(end);
        writer.join().unwrap()
    });
    assert!(known.len() > 1000, "{}", known.len());
    let filter = RedisFilter::open(nodes(&cluster), "f").unwrap();
    assert_eq!(count(&filter.contains_each(&known)), known.len());
}

#[test]
fn a_killed_node_is_an_error_of_its_items_only() {
    let mut cluster = Cluster::start();
    let plan = small_shards(300_000);
    let patience = Patience { retries: 1, ..patience() };
    let url = cluster.servers[0].url();
    let nodes = ClusterNodes::new([&url[..]], patience).unwrap();
    let filter = RedisFilter::create(nodes, "f", &plan).unwrap();
    let items: Vec<u64> = (0..10_000).collect();
    assert!(filter.insert_each(&items).iter().all(Result::is_ok));
    cluster.servers[2].kill();
    let results = filter.contains_each(&items);
    let lost = results.iter().filter(|result| result.is_err()).count();
    assert!((2500..4500).contains(&lost), "{lost}");
    assert!(!results.contains(&Ok(false)));
}

#[test]
fn a_client_follows_a_sentinel_to_the_new_primary() {
    // A replica is served at once. By default, the primary waits five seconds for others.
    let primary = Server::with(&["--repl-diskless-sync-delay", "0"]);
    let replica = Server::with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    let port = free_port();
    let file = format!("/tmp/sentinel-{port}.conf");
    let config = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor mine 127.0.0.1 {} 1\n\
         sentinel down-after-milliseconds mine 1000\n",
        primary.port
    );
    std::fs::write(&file, config).unwrap();
    let _sentinel = Command::new("redis-server")
        .args([&file, "--sentinel"])
        .stdout(std::process::Stdio::null())
        .start();
    follow_failover(port, &primary, &replica);
    let _ = std::fs::remove_file(&file);
}

#[test]
fn a_client_does_not_read_from_a_replica_that_a_sentinel_names() {
    let primary = Server::start();
    // A replica that was a primary before. It has other data.
    let replica = Server::start();
    let (good, old) = (plan_for(1000), plan_for(50));
    RedisFilter::create(replica.node(), "f", &old).unwrap();
    let _: String = ask(&mut replica.connection(), &["REPLICAOF", "127.0.0.1", "1"]);
    RedisFilter::create(primary.node(), "f", &good).unwrap().insert("a").unwrap();
    for named in [vec![replica.port, primary.port], vec![replica.port]] {
        let is_found = named.len() == 2;
        let sentinel = naming_sentinel(named);
        let node =
            SentinelNode::new([&sentinel[..]], "mine", "redis://localhost", patience()).unwrap();
        match RedisFilter::open(node, "f") {
            Ok(filter) => {
                assert!(is_found);
                assert_eq!(filter.contains("a"), Ok(true));
            }
            Err(RedisOpenError::Redis(RedisItemError::Connection { message })) => {
                assert!(!is_found && message.contains("no primary"), "{message}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn follow_failover(port: u16, primary: &Server, replica: &Server) {
    let sentinel = &format!("redis://127.0.0.1:{port}");
    wait_until("the sentinel starts", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let mut redis = connect(sentinel);
    wait_until("the sentinel knows the replica", || {
        ask::<String>(&mut redis, &["INFO", "sentinel"]).contains("slaves=1")
    });
    let dead = "redis://127.0.0.1:1";
    let node =
        SentinelNode::new([dead, sentinel], "mine", "redis://localhost", patience()).unwrap();
    let plan = plan_for(10_000);
    let filter = RedisFilter::create(node, "f", &plan).unwrap();
    let items: Vec<u64> = (0..1000).collect();
    assert!(filter.insert_each(&items).iter().all(Result::is_ok));
    // `WAIT` waits for the last write of its connection.
    let mut writer = primary.connection();
    let _: String = ask(&mut writer, &["SET", "last", "x"]);
    let synced: i64 = ask(&mut writer, &["WAIT", "1", "10000"]);
    assert_eq!(synced, 1);
    // The Sentinel refuses until it has seen that the replica is connected.
    let mut failover = redis::cmd("SENTINEL");
    failover.arg("FAILOVER").arg("mine");
    wait_until("the sentinel has seen the replica", || {
        failover.query::<String>(&mut redis).is_ok()
    });
    wait_until("the sentinel names the new primary", || {
        ask::<Vec<String>>(&mut redis, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine"])
            .contains(&replica.port.to_string())
    });
    // The Sentinel closes the connections of the old primary when it makes the primary a replica.
    let client = redis::Client::open(primary.url()).unwrap();
    wait_until("the old primary is a replica", || {
        let information = client.get_connection().and_then(|mut connection| {
            redis::cmd("INFO").arg("replication").query::<String>(&mut connection)
        });
        information.is_ok_and(|information| information.contains("role:slave"))
    });
    // The old primary refuses the insert, or has closed the connection.
    assert_eq!(filter.insert(&5000_u64), Ok(true));
    assert_eq!(count(&filter.contains_each(&items)), items.len());
}
