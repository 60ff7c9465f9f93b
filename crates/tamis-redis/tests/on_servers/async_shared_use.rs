//! Tasks share one client and one connection. Their calls are in flight at the same time.

use std::collections::HashSet;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::{Server, all_found, ask, clients_of, patience, plan_for, small_shards};
use tamis_redis::{
    AsyncClusterNodes, AsyncRedisFilter, AsyncSingleNode, AsyncTransport, NodeRequest, Patience,
    RedisItemError, RedisRebuildError,
};
use tamis_testing::{DEADLINE, wait_until};
use tokio::task::JoinSet;
use tokio::time::timeout;

#[path = "../../examples/web_service.rs"]
#[expect(dead_code, reason = "the test calls the handlers, not the function `main`")]
mod web_service;

type Filter = Arc<AsyncRedisFilter<AsyncSingleNode>>;

async fn filter(server: &Server, items: u64) -> Filter {
    let patience = Patience { retries: 1, response: DEADLINE, ..patience() };
    let node = AsyncSingleNode::new(&server.url(), patience).unwrap();
    Arc::new(AsyncRedisFilter::create(node, "f", &plan_for(items)).await.unwrap())
}

/// Waits until all tasks end. Returns their results.
async fn all<T: 'static>(tasks: JoinSet<T>) -> Vec<T> {
    timeout(DEADLINE, tasks.join_all()).await.expect("waited in vain until all tasks end")
}

/// Returns the numbers of the connections of a server, without the connection that asks.
fn connections(redis: &mut redis::Connection) -> HashSet<String> {
    let own: i64 = ask(redis, &["CLIENT", "ID"]);
    let clients: String = ask(redis, &["CLIENT", "LIST"]);
    let ids = clients.lines().map(|line| line.split(' ').next().unwrap().to_owned());
    ids.filter(|id| *id != format!("id={own}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_tasks_share_one_connection_and_heal_it_once() {
    let server = Server::start();
    let mut redis = server.connection();
    let filter = filter(&server, 1000).await;
    let first = connections(&mut redis);
    assert_eq!(first.len(), 1);
    let mut tasks = JoinSet::new();
    for item in 0..100_u64 {
        // Half of the tasks have a clone of the client instead of the client.
        let (shared, clone) = (Arc::clone(&filter), AsyncRedisFilter::clone(&filter));
        tasks.spawn(async move {
            match item % 2 {
                0 => shared.insert(&item).await,
                _ => clone.insert(&item).await,
            }
        });
    }
    assert!(all_found(&all(tasks).await), "each item is new");
    assert_eq!(connections(&mut redis), first);
    let killed: i64 = ask(&mut redis, &["CLIENT", "KILL", "TYPE", "normal"]);
    assert_eq!(killed, 1);
    let mut tasks = JoinSet::new();
    for item in 0..100_u64 {
        let filter = Arc::clone(&filter);
        tasks.spawn(async move { filter.contains(&item).await });
    }
    assert!(all_found(&all(tasks).await));
    let second = connections(&mut redis);
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_future_has_no_effect_on_other_calls() {
    let server = Server::start();
    let mut redis = server.connection();
    let filter = filter(&server, 1000).await;
    let first = connections(&mut redis);
    for item in 0..3_u64 {
        let _: String = ask(&mut redis, &["CLIENT", "PAUSE", "120000", "WRITE"]);
        let insert = |item: u64| {
            let filter = Arc::clone(&filter);
            tokio::spawn(async move { filter.insert(&item).await })
        };
        let (cancelled, other) = (insert(item), insert(100 + item));
        wait_until("an insert waits for the server", || clients_of(&mut redis, "bitfield") == 1);
        cancelled.abort();
        assert!(timeout(DEADLINE, cancelled).await.unwrap().unwrap_err().is_cancelled());
        let _: String = ask(&mut redis, &["CLIENT", "UNPAUSE"]);
        let inserted = timeout(DEADLINE, other).await.expect("the other insert ends");
        assert_eq!(inserted.unwrap(), Ok(true));
        assert_eq!(filter.contains(&(100 + item)).await, Ok(true));
    }
    assert_eq!(connections(&mut redis), first, "the connection stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_filter_grows_and_is_rebuilt_while_tasks_insert() {
    let server = Server::start();
    let node = AsyncSingleNode::new(&server.url(), patience()).unwrap();
    let plan = small_shards(2_000).growing().unwrap();
    let filter = Arc::new(AsyncRedisFilter::create(node, "f", &plan).await.unwrap());
    for round in 0..2_u64 {
        let mut tasks = JoinSet::new();
        for task in 0..20_u64 {
            let filter = Arc::clone(&filter);
            tasks.spawn(async move {
                let first = 20 * round + task;
                let items: Vec<u64> = (0..500).map(|i| 1_000 * first + i).collect();
                for items in items.chunks(50) {
                    assert!(filter.insert_each(items).await.iter().all(Result::is_ok));
                    assert!(all_found(&filter.contains_each(items).await));
                }
            });
        }
        let rebuild = filter.rebuild(&small_shards(50_000 + round)).await.unwrap();
        let second = filter.rebuild(&small_shards(50_000)).await.err().unwrap();
        assert!(matches!(second, RedisRebuildError::Running { .. }), "{second}");
        // The source has the items of all inserts that began before the rebuild.
        for first in 0..20 * round + 20 {
            let items: Vec<u64> = (0..500).map(|i| 1_000 * first + i).collect();
            assert!(rebuild.insert_each(&items).await.iter().all(Result::is_ok));
        }
        rebuild.swap().await.unwrap();
        all(tasks).await;
    }
    let items: Vec<u64> =
        (0..40).flat_map(|first| (0..500).map(move |i| 1_000 * first + i)).collect();
    assert!(all_found(&filter.contains_each(&items).await));
    assert_eq!(filter.info().await.unwrap().items_planned, 50_001);
    let rebuild = filter.rebuild(&small_shards(50_000)).await.unwrap();
    rebuild.abort().await.unwrap();
}

/// A server that answers `+OK` to `CLIENT`, and to any other command its `replies` in turn: nothing
/// for an empty reply. Counts its connections.
fn server_with(reply: fn(usize) -> &'static str) -> (String, Arc<AtomicUsize>) {
    server_with_each(move |connection, word| match word {
        "CLIENT" => "+OK\r\n",
        _ => reply(connection),
    })
}

/// A server that sends a reply for the number of the connection and the name of the command.
fn server_with_each(
    reply: impl Fn(usize, &str) -> &'static str + Clone + Send + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, connection) = (client.unwrap(), count.fetch_add(1, Ordering::SeqCst));
            let reply = reply.clone();
            std::thread::spawn(move || {
                let mut reader = std::io::BufReader::new(client.try_clone().unwrap());
                let mut parser = redis::Parser::new();
                while let Ok(command) = parser.parse_value(&mut reader) {
                    let words: Vec<String> = redis::from_redis_value(command).unwrap();
                    if client.write_all(reply(connection, &words[0]).as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    (url, connections)
}

fn get() -> Vec<NodeRequest> {
    let mut command = redis::cmd("GET");
    command.arg("f");
    vec![NodeRequest { key: b"f".to_vec(), command, is_repeatable: true }]
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_give_up_before_the_timeout_still_replace_a_dead_connection() {
    // The first connection never answers.
    let (url, connections) = server_with(|connection| if connection == 0 { "" } else { "$-1\r\n" });
    let patience = Patience { response: Duration::from_millis(300), ..patience() };
    let node = AsyncSingleNode::new(&url, patience).unwrap();
    let replies = timeout(DEADLINE, async {
        loop {
            if let Ok(replies) = timeout(Duration::from_millis(50), node.send(get())).await {
                return replies;
            }
        }
    });
    let replies = replies.await.expect("waited in vain until the client opens a new connection");
    assert_eq!((replies, connections.load(Ordering::SeqCst)), (vec![Ok(redis::Value::Nil)], 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_callers_of_a_silent_server_fail_after_the_timeouts_of_one_caller() {
    let (url, connections) = server_with(|_| "");
    let patience = Patience { response: Duration::from_millis(100), retries: 1, ..patience() };
    let node = AsyncSingleNode::new(&url, patience).unwrap();
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let node = node.clone();
        tasks.spawn(async move { AsyncRedisFilter::open(node, "f").await.err() });
    }
    for error in all(tasks).await {
        let message = error.unwrap().to_string();
        assert!(message.contains("timed out"), "{message}");
    }
    // Each caller makes two attempts.
    let opened = connections.load(Ordering::SeqCst);
    assert!((1..20).contains(&opened), "{opened}");
}

#[test]
fn a_runtime_that_is_not_driven_does_not_hold_the_callers_of_another_runtime() {
    let runtime = |_| tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let [stopped, running] = [(), ()].map(runtime);
    // The handshake of the first connection never ends.
    let (url, connections) = server_with_each(|connection, word| match (connection, word) {
        (0, _) => "",
        (_, "CLIENT") => "+OK\r\n",
        _ => "$-1\r\n",
    });
    let (connect, response) = (Duration::from_millis(500), Duration::from_millis(500));
    let node = AsyncSingleNode::new(&url, Patience { connect, response, ..patience() }).unwrap();
    stopped.block_on(async {
        let send = node.send(get());
        let opened = async {
            while connections.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let first = timeout(DEADLINE, async {
            tokio::select! { _ = send => {}, () = opened => {} }
        });
        first.await.expect("waited in vain until the client connects");
    });
    // Nothing polls the tasks of `stopped` any longer, but the runtime exists.
    let replies = running.block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let node = node.clone();
            tasks.spawn(async move { node.send(get()).await });
        }
        all(tasks).await
    });
    assert!(replies.iter().all(|replies| *replies == [Ok(redis::Value::Nil)]), "{replies:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 2, "one of the other callers connects");
    stopped.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_of_a_server_that_is_down_share_the_failure() {
    let mut server = Server::start();
    let filter = filter(&server, 1000).await;
    server.kill();
    let mut tasks = JoinSet::new();
    for item in 0..100_u64 {
        let filter = Arc::clone(&filter);
        tasks.spawn(async move { filter.contains(&item).await });
    }
    for result in all(tasks).await {
        assert!(matches!(result, Err(RedisItemError::Connection { .. })), "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_share_one_connection_to_each_node_of_a_cluster() {
    let cluster = Cluster::start();
    let urls: Vec<String> = cluster.servers.iter().map(Server::url).collect();
    let patience = Patience { retries: 8, ..patience() };
    let nodes = AsyncClusterNodes::new(urls.iter().map(String::as_str), patience).unwrap();
    let plan = small_shards(300_000);
    let filter = Arc::new(AsyncRedisFilter::create(nodes, "f", &plan).await.unwrap());
    let mut tasks = JoinSet::new();
    for task in 0..20_u64 {
        let filter = Arc::clone(&filter);
        tasks.spawn(async move {
            let items: Vec<u64> = (0..500).map(|i| 1_000 * task + i).collect();
            for items in items.chunks(100) {
                assert!(filter.insert_each(items).await.iter().all(Result::is_ok));
                assert!(all_found(&filter.contains_each(items).await));
            }
        });
    }
    cluster.move_slots(200);
    all(tasks).await;
    for server in &cluster.servers {
        let clients: String = ask(&mut server.connection(), &["CLIENT", "LIST", "TYPE", "normal"]);
        // The list also has this request, and the server that moved a slot here by RESTORE. The last command of the filter
        // may also be CLUSTER SLOTS.
        let is_other =
            |line: &&str| ["cmd=client", "cmd=restore"].iter().any(|it| line.contains(it));
        let of_filter = clients.lines().filter(|line| !is_other(line)).count();
        assert_eq!(of_filter, 1, "{clients}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handlers_of_the_web_service_share_one_connection() {
    let server = Server::start();
    let node = AsyncSingleNode::new(&server.url(), patience()).unwrap();
    let users = AsyncRedisFilter::create(node, "users", &plan_for(1000)).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = tokio::spawn(async move { axum::serve(listener, web_service::app(users)).await });
    let ask_each = async |method: &'static str| {
        let mut tasks = JoinSet::new();
        for user in 0..50 {
            let request = format!("{method} /users/user{user} HTTP/1.0\r\n\r\n");
            tasks.spawn_blocking(move || {
                let mut client = tamis_testing::connect(address);
                client.write_all(request.as_bytes()).unwrap();
                let response = tamis_testing::read_to_end(&mut client);
                let response = String::from_utf8(response).unwrap();
                response.rsplit_once("\r\n\r\n").unwrap().1.to_owned()
            });
        }
        all(tasks).await
    };
    assert!(ask_each("GET").await.iter().all(|answer| answer == "false"));
    assert!(ask_each("PUT").await.iter().all(|answer| answer == "true"));
    assert!(ask_each("GET").await.iter().all(|answer| answer == "true"));
    assert_eq!(connections(&mut server.connection()).len(), 1);
    service.abort();
}
