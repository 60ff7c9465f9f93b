use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::RedisFilter;
use crate::layouts::header::{HAS_NEXT_OFFSET, RETIRED_OFFSET};
use crate::layouts::metadata::{GenerationRecord, Metadata};
use crate::model::Model;
use crate::operations::{create_shards, lifecycle};
use crate::plan::RedisPlan;
use crate::transport::blocking::Transport as _;
use crate::transport::exchange::{Blocking, complete};

fn filter(items: u64) -> RedisFilter<Model> {
    let plan = RedisPlan::new(items, 0.01).unwrap().max_shard_bytes(4096).unwrap();
    RedisFilter::create(Model::default(), "f", &plan).unwrap()
}

fn ok(results: Vec<Result<bool, RedisItemError>>) -> Vec<bool> {
    results.into_iter().map(Result::unwrap).collect()
}

fn items(count: u64) -> Vec<u64> {
    (0..count).collect()
}

/// Returns the keys of all shards.
fn shards(filter: &RedisFilter<Model>) -> Vec<Vec<u8>> {
    let mut keys: Vec<_> = filter.transport.data().strings.keys().cloned().collect();
    keys.retain(|key| key != b"f");
    keys
}

fn set_bit(filter: &RedisFilter<Model>, key: &[u8], offset: u64) {
    let mut data = filter.transport.data();
    let string = data.strings.get_mut(key).unwrap();
    string[offset as usize / 8] |= 1 << (7 - offset % 8);
}

#[test]
fn inserts_answer_whether_items_are_new_and_lookups_find_them() {
    let filter = filter(100_000);
    assert!(filter.view.generations[0].shards() > 30);
    let new = ok(filter.insert_each(&items(1000)));
    assert!(new.iter().filter(|&&new| new).count() >= 998);
    assert!(!ok(filter.insert_each(&items(1000))).contains(&true));
    assert!(ok(filter.contains_each(&items(1000))).iter().all(|&found| found));
    let absent: Vec<u64> = (1000..2000).collect();
    assert!(ok(filter.contains_each(&absent)).iter().filter(|&&found| found).count() < 5);
}

#[test]
fn an_item_that_is_twice_in_a_batch_is_new_once() {
    assert_eq!(ok(filter(10).insert_each(&[7, 7, 8, 7])), [true, false, true, false]);
}

#[test]
fn a_batch_is_one_round_trip_and_one_command_for_each_shard() {
    let filter = filter(100_000);
    filter.transport.data().round_trips = 0;
    filter.transport.data().commands.clear();
    filter.insert_each(&items(1000));
    assert_eq!(filter.transport.data().round_trips, 1);
    assert_eq!(
        filter.transport.data().commands.len(),
        filter.view.generations[0].shards() as usize
    );
    assert!(filter.transport.data().commands.iter().all(|name| name == "BITFIELD"));
}

#[test]
fn repeats_are_subtracted_from_the_counter_by_the_next_insert() {
    let filter = filter(10);
    filter.insert_each(&[1, 2, 2, 2]);
    filter.insert_each(&[3]);
    let key = shards(&filter).remove(0);
    assert_eq!(filter.transport.data().strings[&key][8..16], 3_u64.to_be_bytes());
}

#[test]
fn a_missing_shard_is_an_error_of_its_items_only() {
    let filter = filter(100_000);
    filter.insert_each(&items(1000));
    let lost = shards(&filter).remove(0);
    filter.transport.data().strings.remove(&lost);
    let errors = |results: Vec<Result<bool, RedisItemError>>| {
        let is_missing = |result: &Result<bool, RedisItemError>| match result {
            Ok(_) => false,
            Err(RedisItemError::MissingShard { key }) => key.as_bytes() == lost,
            Err(error) => panic!("{error}"),
        };
        results.iter().filter(|result| is_missing(result)).count()
    };
    let found = errors(filter.contains_each(&items(1000)));
    assert!(found > 5 && found < 100, "{found}");
    // An insert does not create the lost shard again, and leaves no key behind.
    assert_eq!(errors(filter.insert_each(&items(1000))), found);
    assert!(!filter.transport.data().strings.contains_key(&lost));
    assert_eq!(errors(filter.contains_each(&items(1000))), found);
}

#[test]
fn a_lost_connection_is_an_error_of_its_items_only() {
    let filter = filter(100_000);
    filter.transport.data().unreachable = vec![shards(&filter).remove(0)];
    let results = filter.insert_each(&items(1000));
    let failed = results.iter().filter(|result| result.is_err()).count();
    assert!(failed > 5 && failed < 100, "{failed}");
    filter.transport.data().unreachable.clear();
    for (result, found) in results.iter().zip(filter.contains_each(&items(1000))) {
        assert!(result.is_err() || found.unwrap());
    }
}

#[test]
fn a_client_learns_that_another_generation_is_being_built() {
    let filter = filter(1000);
    let mut metadata = Metadata::clone(&filter.view.metadata);
    let plan = RedisPlan::new(5000, 0.01).unwrap();
    let next = GenerationRecord::new(&plan, Role::Building);
    metadata.generations.push(next.clone());
    create(&filter, &next);
    publish(&filter, &metadata);
    let key = filter.view.generations[0].key(0, 0);
    set_bit(&filter, &key, HAS_NEXT_OFFSET);
    // The result of the insert is true, although the item is no longer new in the second pass.
    assert_eq!(filter.insert(&7), Ok(true));
    let view = filter.view.latest();
    assert_eq!(view.generations.len(), 2);
    for generation in 0..2 {
        let key = view.generations[generation].key(0, 0);
        assert_eq!(
            filter.transport.data().strings[&key][8..16].last(),
            Some(&(2 - generation as u8))
        );
    }
    // After the client has read both generations, an insert does not read the metadata again.
    filter.transport.data().round_trips = 0;
    assert_eq!(filter.insert(&8), Ok(true));
    assert_eq!(filter.transport.data().round_trips, 1);
}

#[test]
fn a_client_follows_a_swap() {
    let filter = filter(1000);
    filter.insert(&1).unwrap();
    let plan = RedisPlan::new(5000, 0.01).unwrap();
    let next = GenerationRecord::new(&plan, Role::Current);
    create(&filter, &next);
    // The old generation is retired, but its results stay valid while the metadata contains the old
    // generation.
    let key = filter.view.generations[0].key(0, 0);
    set_bit(&filter, &key, RETIRED_OFFSET);
    assert_eq!((filter.contains(&1), filter.insert(&2)), (Ok(true), Ok(true)));
    let old = View::new(b"f", Metadata::clone(&filter.view.metadata)).unwrap();
    let metadata = Metadata { generations: vec![next], ..Metadata::clone(&filter.view.metadata) };
    publish(&filter, &metadata);
    assert_eq!((filter.contains(&1), filter.insert(&1)), (Ok(false), Ok(true)));
    // A client that has not seen the swap reads a deleted shard.
    let filter = RedisFilter { view: old, ..filter };
    filter.transport.data().strings.remove(&key);
    assert_eq!(filter.contains(&1), Ok(true));
}

#[test]
fn a_shard_that_is_created_again_keeps_its_state() {
    let filter = filter(1000);
    filter.insert(&7).unwrap();
    let record = filter.view.metadata.generations[0].clone();
    let key = filter.view.generations[0].key(0, 0);
    set_bit(&filter, &key, HAS_NEXT_OFFSET);
    let before = filter.transport.data().strings.clone();
    // The test repeats the creation, as a client does after the reply to the first creation was
    // lost.
    create(&filter, &record);
    assert!(filter.transport.data().strings == before);
}

fn publish(filter: &RedisFilter<Model>, metadata: &Metadata) {
    filter.transport.data().strings.insert(b"f".to_vec(), metadata.encode().into_bytes());
}

fn create(filter: &RedisFilter<Model>, record: &GenerationRecord) {
    let generation =
        crate::layouts::generation_view::GenerationView::new(b"f", record.clone()).unwrap();
    complete(create_shards::create_shards(&mut Blocking(&filter.transport), &generation, None))
        .unwrap();
}

/// An exchange whose replies arrive one poll after the server has executed the requests.
struct Delayed<'m>(&'m Model);

impl Exchange for Delayed<'_> {
    async fn exchange(&mut self, requests: Vec<NodeRequest>) -> Vec<NodeReply> {
        let replies = self.0.send(&requests);
        let mut has_waited = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
            false => Poll::Pending,
            true => Poll::Ready(()),
        })
        .await;
        replies
    }
}

/// Runs operations of one client at the same time: each operation sends its next requests before
/// any operation gets the replies to its previous requests, and the first operation is always the
/// first to get its replies.
fn at_once<const N: usize>(
    filter: &RedisFilter<Model>,
    client: &View,
    operations: [(Kind, &[u64]); N],
) -> [Vec<bool>; N] {
    let mut futures = operations.map(|(kind, hashes)| {
        let mut view = client.latest();
        let run = async move {
            Batch::new(&mut view, kind, hashes, 0).run(&mut Delayed(&filter.transport)).await
        };
        Some(Box::pin(run) as Pin<Box<dyn Future<Output = _>>>)
    });
    let mut results = [const { Vec::new() }; N];
    for _ in 0..100 {
        for (future, result) in futures.iter_mut().zip(&mut results) {
            let Some(running) = future else { continue };
            if let Poll::Ready(ready) =
                running.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            {
                (*result, *future) = (ok(ready), None);
            }
        }
    }
    assert!(futures.iter().all(Option::is_none), "the operations end");
    results
}

/// Returns a filter with one shard that grows, and the view of a second client.
fn growing() -> (RedisFilter<Model>, View) {
    let plan = RedisPlan::new(100, 0.01).unwrap().growing().unwrap();
    let filter = RedisFilter::create(Model::default(), "f", &plan).unwrap();
    assert_eq!(filter.view.generations[0].shards(), 1);
    let view = complete(lifecycle::open(&mut Blocking(&filter.transport), b"f")).unwrap();
    (filter, view)
}

/// Inserts items until the shard has `layers` layers. Returns all items.
fn grow_to(filter: &RedisFilter<Model>, layers: u8) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    while filter.view.generations[0].layers(0) < layers {
        let more: Vec<u64> = (all.len() as u64..).take(20).collect();
        filter.insert_hashes(&hashes(&more));
        all.extend(more);
    }
    hashes(&all)
}

fn hashes(items: &[u64]) -> Vec<u64> {
    items.iter().map(|item| tamis::Hasher::default().hash_item(item)).collect()
}

/// Returns the counter of a layer.
fn counter(filter: &RedisFilter<Model>, layer: u8) -> u64 {
    let key = filter.view.generations[0].key(0, layer);
    u64::from_be_bytes(filter.transport.data().strings[&key][8..16].try_into().unwrap())
}

#[test]
fn a_lookup_tests_a_layer_that_another_call_of_the_client_has_learned_meanwhile() {
    let (filter, client) = growing();
    let items = grow_to(&filter, 3);
    for other in [Kind::Lookup, Kind::Insert] {
        let client = View::new(b"f", Metadata::clone(&client.metadata)).unwrap();
        let [_, found] = at_once(&filter, &client, [(other, &items[..1]), (Kind::Lookup, &items)]);
        let lost = found.iter().filter(|&&found| !found).count();
        assert_eq!(lost, 0, "of {} items", items.len());
    }
}

#[test]
fn an_insert_tests_a_layer_that_another_call_of_the_client_has_learned_meanwhile() {
    for has_room in [false, true] {
        let (filter, client) = growing();
        let new_client = || View::new(b"f", Metadata::clone(&client.metadata)).unwrap();
        let clients: Vec<View> = std::iter::repeat_with(new_client).take(8).collect();
        if has_room {
            // After a client has read the counter, the client inserts without a lookup.
            for client in &clients {
                at_once(&filter, client, [(Kind::Lookup, &[7])]);
            }
        }
        let items = grow_to(&filter, 3);
        for (client, items) in clients.iter().zip(items.chunks(items.len().div_ceil(8))) {
            let operations = [(Kind::Lookup, &items[..1]), (Kind::Insert, items)];
            let [_, new] = at_once(&filter, client, operations);
            assert!(!new.contains(&true), "{has_room}: each item is stored: {new:?}");
        }
        let next = filter.view.generations[0].key(0, 3);
        assert!(!filter.transport.data().strings.contains_key(&next), "no insert needs a layer");
    }
}

#[test]
fn two_calls_of_a_client_that_grow_a_shard_at_once_keep_to_the_capacity() {
    let (filter, client) = growing();
    let full = client.generations[0].layer(0).capacity;
    filter.insert_hashes(&hashes(&items(full)));
    assert_eq!(counter(&filter, 0), full);
    let capacity = client.generations[0].layer(1).capacity;
    let few = hashes(&(1000..1010).collect::<Vec<u64>>());
    let many = hashes(&(2000..2000 + 3 * capacity).collect::<Vec<u64>>());
    let [_, new] = at_once(&filter, &client, [(Kind::Insert, &few), (Kind::Insert, &many)]);
    assert!(new.iter().filter(|&&new| new).count() as u64 > 3 * capacity - 20);
    let stored = counter(&filter, 1);
    // Both calls read the counter of the new layer before either call inserts.
    assert!(stored <= capacity + 10, "{stored} items in a layer for {capacity}");
    assert!(filter.transport.data().strings.contains_key(&client.generations[0].key(0, 2)));
}
