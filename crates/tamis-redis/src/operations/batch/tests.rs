use super::*;
use crate::RedisFilter;
use crate::layouts::header::{HAS_NEXT_OFFSET, RETIRED_OFFSET};
use crate::layouts::metadata::{GenerationRecord, Metadata};
use crate::model::Model;
use crate::operations::create_shards;
use crate::plan::RedisPlan;
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
        crate::layouts::generation_view::Generation::new(b"f", record.clone()).unwrap();
    complete(create_shards::create_shards(&mut Blocking(&filter.transport), &generation, None))
        .unwrap();
}
