//! The client that does not block a thread gives the same answers.

use crate::support::cluster::Cluster;
use crate::support::{Server, ask, count, count_keys, keys_of, patience, plan_for, small_shards};
use tamis_redis::{
    AsyncClusterNodes, AsyncRedisFilter, AsyncSentinelNode, AsyncSingleNode, Patience,
    RedisCreateError, RedisFilter, RedisItemError, RedisOpenError, RedisWindow,
};

fn node(server: &Server) -> AsyncSingleNode {
    AsyncSingleNode::new(&server.url(), patience()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_insert_at_once_lose_nothing() {
    let server = Server::start();
    let plan = small_shards(20_000);
    let plan = plan.growing().unwrap();
    let filter = AsyncRedisFilter::create(node(&server), "f", &plan).await.unwrap();
    let created = AsyncRedisFilter::create(node(&server), "f", &plan).await;
    assert!(matches!(created, Err(RedisCreateError::Exists { .. })));
    let tasks: Vec<_> = (0..4_u64)
        .map(|task| {
            let filter = filter.clone();
            tokio::spawn(async move {
                let items: Vec<u64> = (0..10_000).map(|i| 4 * i + task).collect();
                for items in items.chunks(500) {
                    assert!(filter.insert_each(items).await.iter().all(Result::is_ok));
                }
                filter.flush().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let filter = AsyncRedisFilter::open(node(&server), "f").await.unwrap();
    let items: Vec<u64> = (0..40_000).collect();
    assert_eq!(count(&filter.contains_each(&items).await), items.len());
    let info = filter.info().await.unwrap();
    assert!(info.layers > 1 && info.rate <= 0.01 && info.items > 39_500, "{info:?}");
    // Both clients read the same filter.
    let blocking = RedisFilter::open(server.node(), "f").unwrap();
    assert_eq!(count(&blocking.contains_each(&items)), items.len());
    filter.expire_at(Some(1)).await.unwrap();
    assert!(matches!(filter.contains("a").await, Err(RedisItemError::NoFilter { .. })));
}

#[tokio::test]
async fn a_window_takes_new_slices() {
    let server = Server::start();
    let span = RedisWindow { slices: 100, slice_millis: 200 };
    let plan = plan_for(100).window(span).unwrap();
    let filter = AsyncRedisFilter::create(node(&server), "w", &plan).await.unwrap();
    let other = AsyncRedisFilter::open(node(&server), "w").await.unwrap();
    for item in 0..10_u64 {
        assert_eq!(filter.insert(&item).await, Ok(true));
        assert_eq!(other.contains(&item).await, Ok(true));
        tokio::time::sleep(std::time::Duration::from_millis(80)).await;
    }
    let info = other.info().await.unwrap();
    // An item that a slow client inserts again into the next slice counts twice.
    assert!((10..=20).contains(&info.items) && info.shards >= 4, "{info:?}");
}

#[tokio::test]
async fn errors_are_those_of_the_blocking_client() {
    let mut server = Server::start();
    let opened = AsyncRedisFilter::open(node(&server), "f").await;
    assert!(matches!(opened, Err(RedisOpenError::NotFound { .. })));
    let plan = plan_for(100);
    let filter = AsyncRedisFilter::open_or_create(node(&server), "f", &plan).await.unwrap();
    assert_eq!(filter.insert("a").await, Ok(true));
    assert_eq!(filter.insert("a").await, Ok(false));
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    assert!(matches!(filter.contains("a").await, Err(RedisItemError::MissingShard { .. })));
    let _: i64 = ask(&mut redis, &["LPUSH", &keys[0], "x"]);
    assert!(matches!(filter.insert("a").await, Err(RedisItemError::WrongType { .. })));
    filter.delete().await.unwrap();
    assert_eq!(count_keys(&mut redis), 0);
    server.kill();
    assert!(matches!(filter.contains("a").await, Err(RedisItemError::Connection { .. })));
    let sentinel = format!("redis://127.0.0.1:{}", server.port);
    let nowhere =
        AsyncSentinelNode::new([&sentinel[..]], "mine", "redis://localhost", patience()).unwrap();
    let opened = AsyncRedisFilter::open(nowhere, "f").await;
    assert!(matches!(opened, Err(RedisOpenError::Redis(RedisItemError::Connection { .. }))));
}

#[tokio::test]
async fn a_replica_that_a_sentinel_names_is_not_used() {
    let (primary, replica) = (Server::start(), Server::start());
    let plan = plan_for(100);
    for server in [&primary, &replica] {
        RedisFilter::create(server.node(), "f", &plan).unwrap();
    }
    let mut redis = replica.connection();
    let _: String = ask(&mut redis, &["REPLICAOF", "127.0.0.1", "1"]);
    assert_eq!(RedisFilter::open(primary.node(), "f").unwrap().insert("a"), Ok(true));
    let sentinel = crate::support::naming_sentinel(vec![replica.port, primary.port]);
    let node =
        AsyncSentinelNode::new([&sentinel[..]], "mine", "redis://localhost", patience()).unwrap();
    let filter = AsyncRedisFilter::open(node, "f").await.unwrap();
    assert_eq!(filter.contains("a").await, Ok(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_takes_batches_and_moves_slots() {
    let cluster = Cluster::start();
    let urls: Vec<String> = cluster.servers.iter().map(Server::url).collect();
    let patience = Patience { retries: 8, ..patience() };
    let nodes = AsyncClusterNodes::new(urls.iter().map(String::as_str), patience).unwrap();
    let plan = small_shards(300_000);
    let filter = AsyncRedisFilter::create(nodes, "f", &plan).await.unwrap();
    let items: Vec<u64> = (0..20_000).collect();
    assert!(filter.insert_each(&items).await.iter().all(Result::is_ok));
    cluster.move_slots(500);
    assert_eq!(count(&filter.contains_each(&items).await), items.len());
    assert_eq!(filter.info().await.unwrap().missing, Vec::<String>::new());
}
