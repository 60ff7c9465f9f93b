//! What happens to filters in plain bitmaps, and what the source does.

use std::sync::Arc;
use std::time::Duration;

use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_formats::{Charset, Format, Funnel};
use tamis_redis::{HelperFilter, RedisFilter, RedisPlan, RedisWindow, RedissonFilter};
use tamis_sources::{IdSet, RedisOptions, Source};

use crate::checker::*;
use crate::server::Server;

fn follow(ids: &Arc<IdSet>, redis: RedisOptions) -> Source {
    Source::start(Arc::clone(ids), redis, options())
}

/// Starts a source, and waits until it has copied the filter.
fn copied(redis: RedisOptions) -> (Arc<IdSet>, Source) {
    synced(integers(), |ids| follow(ids, redis))
}

/// Returns the options of a source of the key `bitmap`, whose filter was planned for 1000 items.
fn bitmap(server: &Server, funnel: Funnel) -> RedisOptions {
    RedisOptions {
        format: Format::named("redis-bitmap"),
        funnel: Some(funnel),
        items_planned: Some(1000),
        rate_planned: Some(1e-3),
        ..RedisOptions::new(&server.url("bitmap"))
    }
}

/// Tests that each of several results is no error.
fn all<T, E: std::fmt::Debug>(results: impl IntoIterator<Item = Result<T, E>>) {
    results.into_iter().for_each(|result| _ = result.unwrap());
}

fn texts(ids: impl Iterator<Item = u64>) -> Vec<String> {
    ids.map(|id| id.to_string()).collect()
}

fn native(server: &Server, plan: &RedisPlan) -> RedisFilter<tamis_redis::SingleNode> {
    RedisFilter::open_or_create(server.node(), "seen", plan).unwrap()
}

#[test]
fn a_filter_in_shards_is_followed_while_it_grows_and_is_rebuilt() {
    let server = Server::start();
    let plan = RedisPlan::new(2000, 1e-6).unwrap().growing().unwrap();
    let filter = native(&server, &plan);
    all(filter.insert_each(&texts(1..=100)));
    let (ids, source) = copied(RedisOptions::new(&server.url("seen")));
    assert!((1..=100).all(|id| knows(&ids, id)) && !has(&ids, 101));
    let committed = Committed::of(1..=100);
    check(&source, &ids, &committed, || {
        // Five times the planned items, so that the shard gets further layers.
        for block in 0..100 {
            let block: Vec<u64> = (101 + block * 100..201 + block * 100).collect();
            all(filter.insert_each(&texts(block.iter().copied())));
            committed.insert(block);
            std::thread::sleep(Duration::from_millis(3));
        }
        let rebuild = filter.rebuild(&plan).unwrap();
        all(rebuild.insert_each(&texts(committed.ids().into_iter())));
        rebuild.swap().unwrap();
    });
    wait_until(&source, "the last id", || knows(&ids, 10_100));
    assert!(ids.generations().items() > 9_000);
}

#[test]
fn a_filter_of_many_shards_is_copied_and_a_lost_shard_is_an_error() {
    let server = Server::start();
    let filter = native(&server, &RedisPlan::new(3_000_000, 1e-4).unwrap());
    all(filter.insert_each(&texts(1..=5000)));
    assert!(filter.plan().shards() > 1);
    let (ids, source) = copied(RedisOptions::new(&server.url("seen")));
    assert!((1..=5000).all(|id| knows(&ids, id)));
    // The server evicts a shard, as with `maxmemory`.
    let mut client = server.client();
    let tamis_resp::Reply::Array(keys) = client.run("KEYS seen:*") else { panic!("no keys") };
    let tamis_resp::Reply::Bulk(key) = &keys[0] else { panic!("no key") };
    client.call(&[b"DEL", key]);
    wait_broken(&source, "is missing or was replaced");
    assert!((1..=5000).all(|id| has(&ids, id)));
}

#[test]
fn a_window_in_shards_is_refused() {
    let server = Server::start();
    let window = RedisWindow { slices: 4, slice_millis: 60_000 };
    native(&server, &RedisPlan::new(1000, 0.01).unwrap().window(window).unwrap());
    let source = follow(&id_set(integers()), RedisOptions::new(&server.url("seen")));
    wait_error(&source, "which forgets items");
}

#[test]
fn filters_of_java_are_copied_with_the_funnel_of_the_program() {
    let server = Server::start();
    let (redisson, _) = RedissonFilter::try_init(server.node(), "seen", 1000, 1e-4).unwrap();
    all(redisson.insert_each(&texts(1..=500)));
    let redis = RedisOptions::new(&server.url("seen"));
    let source = follow(&id_set(integers()), redis.clone());
    wait_error(&source, "set `funnel`");
    let (ids, source) = copied(RedisOptions { funnel: Some(Funnel::Bytes), ..redis });
    assert!((1..=500).all(|id| knows(&ids, id)));
    assert!((501..1501).filter(|id| knows(&ids, id)).count() < 10);
    redisson.insert_each(&["501"]).remove(0).unwrap();
    wait_until(&source, "a new id", || knows(&ids, 501));

    let plan = RedisBitmapPlan::new(1000, 1e-3);
    let helper = HelperFilter::new(server.node(), "bitmap", plan).unwrap();
    let mut scratch = Vec::new();
    for id in texts(1..=500) {
        let funnel = Funnel::Twice(Charset::Utf8);
        let key = funnel.key(id.as_bytes(), &mut scratch).unwrap().to_vec();
        helper.insert_each(&[key]).remove(0).unwrap();
    }
    let (ids, _source) = copied(bitmap(&server, Funnel::Twice(Charset::Utf8)));
    assert!((1..=500).all(|id| knows(&ids, id)));
}

#[test]
fn a_bitmap_of_setbit_is_an_exact_set_of_integers() {
    let server = Server::start();
    let mut client = server.client();
    for id in (1..2000).step_by(3) {
        client.run(&format!("SETBIT seen {id} 1"));
    }
    let format = Format::named("redis-bits");
    let (ids, source) = copied(RedisOptions { format, ..RedisOptions::new(&server.url("seen")) });
    assert!((1..2000).all(|id| knows(&ids, id) == (id % 3 == 1)));
    // Bits may be cleared too, and the id is refused.
    client.run("SETBIT seen 4 0");
    wait_until(&source, "the deleted id", || !has(&ids, 4));
    assert!(knows(&ids, 7));
}

#[test]
fn a_saturated_bitmap_lets_all_ids_pass_and_shows_its_rate() {
    let server = Server::start();
    let plan = RedisBitmapPlan::new(1000, 1e-3);
    let helper = HelperFilter::new(server.node(), "bitmap", plan).unwrap();
    helper.insert_each(&[b"first"]).remove(0).unwrap();
    let (ids, source) = copied(bitmap(&server, Funnel::Bytes));
    assert!(ids.generations().estimate_rate() < 1e-3 && !has(&ids, 1));
    // Twenty times the planned items.
    all(helper.insert_each(&texts(1_000_001..=1_020_000)));
    wait_until(&source, "saturated", || (1..1000).all(|id| knows(&ids, id)));
    assert!(ids.generations().estimate_rate() > 0.9);
}

#[test]
fn a_killed_server_never_breaks_the_promise() {
    let mut server = Server::start();
    server.client().run("SETBIT seen 1 1");
    let format = Format::named("redis-bits");
    let (ids, source) = copied(RedisOptions { format, ..RedisOptions::new(&server.url("seen")) });
    let committed = Committed::of([1]);
    check(&source, &ids, &committed, || {
        let mut random = Random(5);
        for _ in 0..5 {
            let mut client = server.client();
            for _ in 0..40 {
                let id = 2 + random.below(1_000_000);
                client.run(&format!("SETBIT seen {id} 1"));
                committed.insert([id]);
                std::thread::sleep(Duration::from_millis(random.below(5)));
            }
            server.kill();
            wait(&source, "the loss", |status| status.last_error.is_some());
            server.run();
        }
    });
    wait_synced(&source);
    for id in committed.ids() {
        wait_until(&source, "every id is known", || knows(&ids, id));
    }
}

#[test]
fn a_replica_is_refused_and_a_primary_that_becomes_one_makes_the_set_stale() {
    let (server, other) = (Server::start(), Server::start());
    let filter = native(&server, &RedisPlan::new(2000, 1e-6).unwrap());
    all(filter.insert_each(&texts(1..=100)));
    let (ids, source) = copied(RedisOptions::new(&server.url("seen")));
    let follow_other = format!("REPLICAOF 127.0.0.1 {}", other.address().port());
    let mut client = server.client();
    client.run(&follow_other);
    wait_broken(&source, "is a replica");
    assert!(knows(&ids, 101));
    let refused = follow(&id_set(integers()), RedisOptions::new(&server.url("seen")));
    wait(&refused, "refused", |status| status.failures > 0);
    // The server may have no keys any more, as its primary.
    client.run("REPLICAOF NO ONE");
    wait(&refused, "accepted", |status| {
        !status.last_error.as_deref().unwrap_or_default().contains("is a replica")
    });
}
