//! A merged filter has the items of both.

use crate::support::{Hooked, Server, all_found, ask, in_an_hour, keys_of, plan_for};
use tamis_redis::{RedisFilter, RedisItemError, RedisMergeError};

#[test]
fn a_filter_of_another_server_is_merged_with_its_layers() {
    let (here, there) = (Server::start(), Server::start());
    for growing in [false, true] {
        let mut plan = plan_for(30_000).max_shard_bytes(8192).unwrap();
        if growing {
            plan = plan.growing().unwrap();
        }
        let name = format!("f{growing}");
        let ours = RedisFilter::create(here.node(), &name, &plan).unwrap();
        let theirs = RedisFilter::create(there.node(), "other", &plan).unwrap();
        let in_an_hour = in_an_hour();
        ours.expire_at(Some(in_an_hour)).unwrap();
        let (a, b): (Vec<u64>, Vec<u64>) = ((0..5_000).collect(), (5_000..60_000).collect());
        ours.insert_each(&a);
        theirs.insert_each(&b);
        ours.merge(&theirs).unwrap();
        assert!(all_found(&ours.contains_each(&a)) && all_found(&ours.contains_each(&b)));
        let (info, other) = (ours.info().unwrap(), theirs.info().unwrap());
        assert_eq!((info.layers, info.missing.len()), (other.layers, 0));
        assert!(info.items.abs_diff(60_000) < 700, "{info:?}");
        assert!(info.rate <= 0.01 || !growing, "{info:?}");
        // Further inserts go on as before.
        let c: Vec<u64> = (60_000..70_000).collect();
        assert!(ours.insert_each(&c).iter().all(Result::is_ok));
        assert!(all_found(&ours.contains_each(&c)));
        let mut redis = here.connection();
        let keys = keys_of(&mut redis, &format!("{name}*"));
        for key in keys {
            assert!(!key.contains('+'), "{key}: no temporary key is left");
            let at: i64 = ask(&mut redis, &["PEXPIRETIME", &key]);
            assert!(at.abs_diff(in_an_hour.cast_signed()) < 50, "{key}");
        }
        theirs.delete().unwrap();
    }
}

#[test]
fn different_and_busy_filters_are_not_merged() {
    let server = Server::start();
    let a = RedisFilter::create(server.node(), "a", &plan_for(1_000)).unwrap();
    let b = RedisFilter::create(server.node(), "b", &plan_for(9_000)).unwrap();
    let c = RedisFilter::create(server.node(), "c", &plan_for(1_000)).unwrap();
    c.insert("x").unwrap();
    assert!(matches!(a.merge(&b), Err(RedisMergeError::Differs(_))));
    a.rebuild(&plan_for(1_000)).unwrap();
    assert!(matches!(a.merge(&c), Err(RedisMergeError::Busy { .. })));
    a.abort_rebuild().unwrap();
    a.merge(&c).unwrap();
    assert_eq!(a.contains("x"), Ok(true));
    let mut redis = server.connection();
    let keys = keys_of(&mut redis, "c:*");
    let _: i64 = ask(&mut redis, &["DEL", &keys[0]]);
    let lost = a.merge(&c);
    assert!(matches!(lost, Err(RedisMergeError::Redis(RedisItemError::MissingShard { .. }))));
}

#[test]
fn a_temporary_key_that_vanishes_is_copied_again() {
    let server = Server::start();
    let plan = plan_for(500_000);
    let theirs = RedisFilter::create(server.node(), "b", &plan).unwrap();
    let items: Vec<u64> = (0..50_000).collect();
    theirs.insert_each(&items);
    let (mut redis, mut chunks) = (server.connection(), 0);
    let hook = |words: &[Vec<u8>], _: &mut _| {
        if words[0] == b"SETRANGE" && words[1].contains(&b'+') {
            chunks += 1;
            if chunks == 1 {
                let _: i64 = ask(&mut redis, &["DEL", std::str::from_utf8(&words[1]).unwrap()]);
            }
        }
    };
    let ours = RedisFilter::create(Hooked::new(server.node(), hook), "a", &plan).unwrap();
    ours.merge(&theirs).unwrap();
    assert!(all_found(&ours.contains_each(&items)));
    let bytes = |redis: &mut redis::Connection, name: &str| -> Vec<u8> {
        let keys: Vec<String> = ask(redis, &["KEYS", name]);
        ask::<Vec<u8>>(redis, &["GETRANGE", &keys[0], "8", "-1"])
    };
    let mut redis = server.connection();
    assert!(bytes(&mut redis, "a:*") == bytes(&mut redis, "b:*"));
    drop(ours);
    assert!(chunks > 3, "{chunks}");
}

#[test]
fn a_merge_is_refused_if_a_rebuild_starts_in_between() {
    let server = Server::start();
    let plan = plan_for(1_000);
    let theirs = RedisFilter::create(server.node(), "b", &plan).unwrap();
    theirs.insert("x").unwrap();
    let other = RedisFilter::create(server.node(), "a", &plan).unwrap();
    let hook = |words: &[Vec<u8>], _: &mut _| {
        if words[0] == b"SETRANGE" {
            other.rebuild(&plan).unwrap();
        }
    };
    let ours = RedisFilter::open(Hooked::new(server.node(), hook), "a").unwrap();
    assert!(matches!(ours.merge(&theirs), Err(RedisMergeError::Busy { .. })));
    ours.abort_rebuild().unwrap();
}

#[test]
fn a_merge_into_a_shard_that_lost_a_layer_ends_with_an_error() {
    let server = Server::start();
    let plan = plan_for(100).growing().unwrap();
    let ours = RedisFilter::create(server.node(), "a", &plan).unwrap();
    let theirs = RedisFilter::create(server.node(), "b", &plan).unwrap();
    ours.insert_each(&(0..500).collect::<Vec<u64>>());
    theirs.insert_each(&(0..3_000).collect::<Vec<u64>>());
    let layers = ours.info().unwrap().layers;
    assert!(layers > 1 && theirs.info().unwrap().layers > layers);
    // The server now has an older state than the client has read, as after a failover.
    let mut redis = server.connection();
    for first in keys_of(&mut redis, "a:*.0") {
        let _: i64 = ask(&mut redis, &["SETRANGE", &first, "3", "\u{1}"]);
    }
    let (ended, ends) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(ours.merge(&theirs)));
    let result = ends.recv_timeout(tamis_testing::DEADLINE).expect("the merge ends");
    let lost = |error: &RedisMergeError| {
        matches!(error, RedisMergeError::Redis(RedisItemError::MissingShard { .. }))
    };
    assert!(result.as_ref().is_err_and(lost), "{result:?}");
}
