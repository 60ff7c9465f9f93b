//! A growing filter keeps its rate beyond the planned items, and all its keys stay together.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    Server, ask, assert_at_most, count, count_keys, in_an_hour, keys_of, plan_for,
};
use tamis_redis::{
    NodeReply, NodeRequest, RedisFilter, RedisItemError, RedisOpenError, SendError, SingleNode,
    Transport,
};

fn growing(server: &Server, items: u64, shard_bytes: u64) -> RedisFilter<SingleNode> {
    let plan = plan_for(items).max_shard_bytes(shard_bytes).unwrap();
    RedisFilter::create(server.node(), "f", &plan.growing().unwrap()).unwrap()
}

#[test]
fn a_filter_with_eight_times_its_items_keeps_its_rate() {
    let server = Server::start();
    for shard_bytes in [4096, 4 << 20] {
        let filter = growing(&server, 6_000, shard_bytes);
        let items: Vec<u64> = (0..48_000).collect();
        let new: usize = items.chunks(500).map(|items| count(&filter.insert_each(items))).sum();
        assert!(new >= 47_700, "{new}");
        assert_eq!(count(&filter.contains_each(&items)), items.len());
        let absent: Vec<u64> = (1 << 40..(1 << 40) + 60_000).collect();
        assert_at_most(count(&filter.contains_each(&absent)), absent.len(), 0.01);
        let info = filter.info().unwrap();
        assert!(info.layers >= 3 && info.rate <= 0.01 && info.missing.is_empty(), "{info:?}");
        assert!(info.items.abs_diff(new as u64) < 100, "{info:?} {new}");
        filter.delete().unwrap();
        let keys = keys_of(&mut server.connection(), "*");
        assert!(keys.is_empty(), "{keys:?}");
    }
}

/// A node that executes some requests, and then none.
struct Cut(SingleNode, AtomicUsize);

impl Transport for Cut {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let executed = requests.len().min(self.1.load(Ordering::Relaxed));
        self.1.fetch_sub(executed, Ordering::Relaxed);
        let mut replies = self.0.send(&requests[..executed]);
        replies.resize(requests.len(), Err(SendError { message: "cut".into() }));
        replies
    }
}

#[test]
fn a_deletion_that_was_cut_is_completed_by_another_one() {
    let server = Server::start();
    let mut cuts = 0;
    for commands in 1.. {
        let filter = growing(&server, 1_000, 4096);
        let items: Vec<u64> = (0..8_000).collect();
        filter.insert_each(&items);
        assert!(filter.info().unwrap().layers > 2);
        let cut = RedisFilter::open(Cut(server.node(), commands.into()), "f").unwrap();
        let is_deleted = cut.delete().is_ok();
        match RedisFilter::open(server.node(), "f") {
            Ok(other) => other.delete().unwrap(),
            Err(RedisOpenError::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let keys = keys_of(&mut server.connection(), "*");
        assert!(keys.is_empty(), "{commands} commands: {keys:?}");
        if is_deleted {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 3, "{cuts}");
}

#[test]
fn a_filter_with_its_planned_items_has_not_grown() {
    let server = Server::start();
    let filter = growing(&server, 100_000, 4096);
    let items: Vec<u64> = (0..100_000).collect();
    filter.insert_each(&items);
    let info = filter.info().unwrap();
    assert!(info.layers == 1 && info.shards > 40, "{info:?}");
}

#[test]
fn a_batch_of_many_times_the_planned_items_keeps_the_rate() {
    let server = Server::start();
    let filter = growing(&server, 100, 4 << 20);
    let items: Vec<u64> = (0..9_000).flat_map(|i| [i, i]).collect();
    let new = count(&filter.insert_each(&items));
    assert!((8_900..=9_000).contains(&new), "{new}");
    assert_eq!(count(&filter.contains_each(&items)), items.len());
    let info = filter.info().unwrap();
    assert!(info.rate <= 0.01 && info.items == new as u64, "{info:?}");
}

#[test]
fn clients_that_insert_at_once_grow_together() {
    let server = Server::start();
    growing(&server, 4_000, 4096);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let server = &server;
            scope.spawn(move || {
                let filter = RedisFilter::open(server.node(), "f").unwrap();
                let items: Vec<u64> = (0..10_000).map(|i| 4 * i + thread).collect();
                for items in items.chunks(250) {
                    assert!(filter.insert_each(items).iter().all(Result::is_ok));
                }
            });
        }
    });
    let filter = RedisFilter::open(server.node(), "f").unwrap();
    let items: Vec<u64> = (0..40_000).collect();
    assert_eq!(count(&filter.contains_each(&items)), items.len());
    let absent: Vec<u64> = (1 << 40..(1 << 40) + 100_000).collect();
    assert_at_most(count(&filter.contains_each(&absent)), absent.len(), 0.01);
}

#[test]
fn a_client_that_missed_the_growth_finds_all_items() {
    let server = Server::start();
    let filter = growing(&server, 1_000, 4 << 20);
    let stale = RedisFilter::open(server.node(), "f").unwrap();
    assert_eq!(stale.contains(&1_u64), Ok(false));
    let items: Vec<u64> = (0..5_000).collect();
    for items in items.chunks(100) {
        filter.insert_each(items);
    }
    assert_eq!(count(&stale.contains_each(&items)), items.len());
    let stale = RedisFilter::open(server.node(), "f").unwrap();
    assert!(count(&stale.insert_each(&items)) <= 1, "the items are in later layers");
}

#[test]
fn a_flushed_script_cache_does_not_stop_the_growth() {
    let server = Server::start();
    let filter = growing(&server, 100, 4 << 20);
    for start in (0..10_000_u64).step_by(100) {
        let _: String = ask(&mut server.connection(), &["SCRIPT", "FLUSH"]);
        filter.insert_each(&(start..start + 100).collect::<Vec<_>>());
    }
    let info = filter.info().unwrap();
    assert!(info.layers >= 6 && info.rate <= 0.01, "{info:?}");
}

#[test]
fn a_filter_that_may_not_run_scripts_reports_it_and_takes_more_items() {
    let server = Server::start();
    let mut redis = server.connection();
    let filter = growing(&server, 100, 4 << 20);
    let _: String = ask(&mut redis, &["ACL", "SETUSER", "default", "-eval", "-evalsha"]);
    let items: Vec<u64> = (0..1000).collect();
    assert!(filter.insert_each(&items).iter().all(Result::is_ok));
    assert_eq!(count(&filter.contains_each(&items)), 1000);
    let info = filter.info().unwrap();
    assert!(info.rate > 0.1, "{info:?}");
    assert!(matches!(info.growth_error, Some(RedisItemError::Server { .. })), "{info:?}");
}

#[test]
fn a_lost_later_layer_is_an_error() {
    let server = Server::start();
    let filter = growing(&server, 100, 4 << 20);
    let items: Vec<u64> = (0..1000).collect();
    for items in items.chunks(100) {
        filter.insert_each(items);
    }
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*.1");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    let results = filter.contains_each(&items);
    assert!(results.iter().all(|result| !matches!(result, Ok(false))));
    assert!(results.iter().any(Result::is_err));
    assert_eq!(filter.info().unwrap().missing, keys);
}

#[test]
fn all_keys_expire_together_and_later_layers_too() {
    let server = Server::start();
    let filter = growing(&server, 20_000, 4096);
    let in_an_hour = in_an_hour();
    filter.expire_at(Some(in_an_hour)).unwrap();
    let items: Vec<u64> = (0..60_000).collect();
    for items in items.chunks(1000) {
        filter.insert_each(items);
    }
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "*");
    assert!(keys.iter().any(|key| key.ends_with(".1")), "{keys:?}");
    for key in &keys {
        let at: i64 = ask(&mut redis, &["PEXPIRETIME", key]);
        assert!(at.abs_diff(in_an_hour.cast_signed()) <= 2, "{key}: {at} {in_an_hour}");
    }
    filter.expire_at(None).unwrap();
    for key in &keys {
        assert_eq!(ask::<i64>(&mut redis, &["PTTL", key]), -1, "{key}");
    }
    filter.expire_at(Some(1)).unwrap();
    assert_eq!(count_keys(&mut redis), 0);
    assert!(matches!(filter.contains(&1_u64), Err(RedisItemError::NoFilter { .. })));
    assert!(matches!(filter.insert(&1_u64), Err(RedisItemError::NoFilter { .. })));
    assert_eq!(count_keys(&mut redis), 0);
}

#[test]
fn counters_and_memory_are_those_of_the_plan() {
    let server = Server::start();
    let plan = plan_for(1_000_000);
    let filter = RedisFilter::create(server.node(), "f", &plan).unwrap();
    let items: Vec<u64> = (0..50_000).chain(0..50_000).collect();
    let new = count(&filter.insert_each(&items));
    let info = filter.info().unwrap();
    assert_eq!((info.items, info.bytes), (new as u64, plan.bytes()));
    assert!(info.rate < 1e-4 && info.rate_planned == 0.01, "{info:?}");
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "f:*");
    let used: u64 = keys.iter().map(|key| ask::<u64>(&mut redis, &["MEMORY", "USAGE", key])).sum();
    assert!(used < 1_600_000 && used < plan.bytes() + 1000, "{used} {}", plan.bytes());
}
