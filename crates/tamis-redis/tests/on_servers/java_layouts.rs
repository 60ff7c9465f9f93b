//! The layouts of Java programs, bit for bit: Redis ends with the bytes of the golden files.

use crate::support::{Hooked, Server, ask, count_keys, keys_of};
use md5::{Digest as _, Md5};
use serde_json::Value;
use sha2::Sha256;
use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_redis::{BitmapsFilter, HelperFilter, RedisItemError, RedisOpenError, RedissonFilter};

fn golden(path: &str) -> Value {
    let path = format!("{}/../../tests/golden/{path}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(&path).expect(&path)).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn string(redis: &mut redis::Connection, key: &str) -> Vec<u8> {
    redis::cmd("GET").arg(key).query(redis).unwrap()
}

fn ok(results: Vec<Result<bool, RedisItemError>>) -> Vec<bool> {
    results.into_iter().map(Result::unwrap).collect()
}

#[test]
fn the_helper_writes_the_bitmap_of_the_java_class() {
    let golden = golden("seeds_java/redis_helper.json");
    let article = &golden["bloom_filter_helper_000_003"]["article_test_main"];
    let server = Server::start();
    let plan = RedisBitmapPlan::new(1000, 0.1);
    let filter = HelperFilter::new(server.node(), "bloom", plan).unwrap();
    let items: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    assert_eq!(ok(filter.contains_each(&items)), vec![false; 1000]);
    let new = ok(filter.insert_each(&items[..100]));
    assert!(new.iter().filter(|&&new| new).count() >= 98);
    let written = hex(&string(&mut server.connection(), "bloom"));
    assert_eq!(written, article["redis_string_hex"].as_str().unwrap());
    assert!(!ok(filter.insert_each(&items[..100])).contains(&true));
    let found = ok(filter.contains_each(&items)).iter().filter(|&&found| found).count();
    assert_eq!(1000 - found, article["not_contained"]);
    assert!(HelperFilter::new(server.node(), "bloom", RedisBitmapPlan::new(0, 0.1)).is_none());
    let _: i64 = ask(&mut server.connection(), &["DEL", "bloom"]);
    let _: i64 = ask(&mut server.connection(), &["LPUSH", "bloom", "x"]);
    let wrong = filter.insert_each(&["a"]).remove(0);
    assert!(matches!(wrong, Err(RedisItemError::WrongType { .. })));
}

#[test]
fn redisson_filters_have_the_bits_the_settings_and_the_count_of_redisson() {
    let server = Server::start();
    for (i, case) in
        golden("redisson/filters.json")["filters"].as_array().unwrap().iter().enumerate()
    {
        let name = format!("filter {i}");
        let (expected, rate) = (
            case["expected_insertions"].as_u64().unwrap(),
            case["false_probability"].as_f64().unwrap(),
        );
        let (filter, created) =
            RedissonFilter::try_init(server.node(), &name, expected, rate).unwrap();
        assert!(created);
        assert!(!RedissonFilter::try_init(server.node(), &name, expected, rate).unwrap().1);
        let items: Vec<String> = case["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| match &item[0] {
                Value::String(text) => text.clone(),
                other => panic!("{other}"),
            })
            .collect();
        assert!(!ok(filter.contains_each(&items)).contains(&true));
        assert!(ok(filter.insert_each(&items)).contains(&true));
        assert!(!ok(filter.insert_each(&items)).contains(&true));
        let mut redis = server.connection();
        let Some(bits) = case["redis_string_hex"].as_str() else { continue };
        assert_eq!(hex(&string(&mut redis, &name)), bits);
        // All bits of the smallest filter are set: the golden file has the text "infinite".
        let count = case["count_estimate"].as_u64().unwrap_or(u64::MAX);
        assert_eq!(filter.count().unwrap(), count);
        let config: std::collections::HashMap<String, String> =
            ask(&mut redis, &["HGETALL", &format!("{{{name}}}:config")]);
        assert_eq!(config["size"], case["size"].to_string());
        assert_eq!(config["hashIterations"], case["hash_iterations"].to_string());
        assert_eq!(config["expectedInsertions"], expected.to_string());
        assert_eq!(config["falseProbability"], rate.to_string());
    }
}

#[test]
fn a_redisson_filter_with_changed_settings_is_not_touched() {
    let server = Server::start();
    let missing = RedissonFilter::open(server.node(), "f").err().unwrap();
    assert!(matches!(missing, RedisOpenError::NotFound { .. }), "{missing}");
    let (filter, _) = RedissonFilter::try_init(server.node(), "f", 1000, 0.01).unwrap();
    let many: Vec<String> = (0..5000).map(|i| format!("item {i}")).collect();
    filter.insert_each(&many);
    assert!(!ok(filter.contains_each(&many)).contains(&false));
    let other = RedissonFilter::try_init(server.node(), "f", 2000, 0.01).err().unwrap();
    assert!(other.to_string().contains("size is 9585, planned 19170"), "{other}");
    let mut redis = server.connection();
    let before = string(&mut redis, "f");
    let _: i64 = ask(&mut redis, &["HSET", "{f}:config", "size", "9600"]);
    let changed = Err(RedisItemError::ConfigChanged { name: "f".into() });
    assert_eq!(filter.insert_each(&["new"]).remove(0), changed);
    assert_eq!(filter.contains_each(&["new"]).remove(0), changed);
    assert_eq!(string(&mut redis, "f"), before);
    let differs = RedissonFilter::open(server.node(), "f").err().unwrap();
    assert!(matches!(differs, RedisOpenError::Differs { .. }), "{differs}");
    assert!(filter.delete().unwrap());
    let gone = Err(RedisItemError::NoFilter { name: "f".into() });
    assert_eq!(filter.insert_each(&["new"]).remove(0), gone);
    assert_eq!(filter.contains_each(&["new"]).remove(0), gone);
    assert_eq!(count_keys(&mut redis), 0);
}

fn items(case: &Value) -> Vec<String> {
    let count = u32::try_from(case["count"].as_u64().unwrap()).unwrap();
    let prefix = case["prefix"].as_str().unwrap();
    let is_md5 = case["items"].as_str().unwrap().starts_with("hex md5");
    let item = |i: u32| match is_md5 {
        true => hex(&Md5::digest(i.to_le_bytes())),
        false => format!("{prefix}{i}"),
    };
    (0..count).map(item).collect()
}

#[test]
fn redis_bitmaps_grow_after_the_same_items_as_in_java() {
    let golden = golden("seeds_java/redis_bitmaps.json");
    for case in golden["redis_bitmaps_002"].as_array().unwrap() {
        let server = Server::start();
        let (n, rate) = (case["n"].as_u64().unwrap(), case["fpp"].as_f64().unwrap());
        let filter = BitmapsFilter::open_or_create(server.node(), n, rate).unwrap();
        let items = items(case);
        // Batches of any size give the same bits.
        for items in items.chunks(777) {
            ok(filter.insert_each(items));
        }
        assert_eq!(filter.cursor(), case["final_cursor"]);
        let mut redis = server.connection();
        for key in case["keys"].as_array().unwrap() {
            let written = string(&mut redis, key["key"].as_str().unwrap());
            assert_eq!(hex(&Sha256::digest(&written)), key["sha256"], "{n} {}", key["key"]);
        }
        for probe in case["probes"].as_array().unwrap() {
            let found = filter.contains_each(&[probe["item"].as_str().unwrap()]);
            assert_eq!(found, [Ok(probe["redis_bitmaps"].as_bool().unwrap())]);
        }
        let absent: Vec<String> = (0..20_000).map(|i| format!("absent:{i}")).collect();
        let found = ok(filter.contains_each(&absent)).iter().filter(|&&found| found).count();
        assert_eq!(found, case["false_positives_of_20000_absent"]["redis_bitmaps"]);
        assert!(!ok(filter.contains_each(&items)).contains(&false));
    }
}

#[test]
fn clients_that_grow_redis_bitmaps_at_once_skip_no_bitmap() {
    let server = Server::start();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let filter = BitmapsFilter::open_or_create(server.node(), 500, 0.01).unwrap();
                let items: Vec<String> = (0..1000).map(|i| format!("{thread} {i}")).collect();
                for items in items.chunks(20) {
                    ok(filter.insert_each(items));
                }
                assert!(!ok(filter.contains_each(&items)).contains(&false));
            });
        }
    });
    let filter = BitmapsFilter::open_or_create(server.node(), 500, 0.01).unwrap();
    let items: Vec<String> =
        (0..4).flat_map(|thread| (0..1000).map(move |i| format!("{thread} {i}"))).collect();
    assert!(!ok(filter.contains_each(&items)).contains(&false));
    let mut redis = server.connection();
    let half = i64::try_from(ask::<usize>(&mut redis, &["STRLEN", "bloomfilter-0"])).unwrap() * 4;
    assert!((7..=9).contains(&filter.cursor()), "{}", filter.cursor());
    for number in 0..filter.cursor() {
        let ones: i64 = ask(&mut redis, &["BITCOUNT", &format!("bloomfilter-{number}")]);
        assert!(ones > half, "{number}: {ones} {half}");
    }
    filter.reset().unwrap();
    let keys = keys_of(&mut redis, "*");
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(filter.insert_each(&["0 1"]), [Ok(true)]);
}

#[test]
fn redis_bitmaps_of_another_plan_and_lost_bitmaps_are_errors() {
    let server = Server::start();
    let filter = BitmapsFilter::open_or_create(server.node(), 10, 0.1).unwrap();
    let differs = BitmapsFilter::open_or_create(server.node(), 500, 0.1).err().unwrap();
    assert!(matches!(differs, RedisOpenError::Differs { .. }), "{differs}");
    let items: Vec<String> = (0..60).map(|i| format!("x{i}")).collect();
    ok(filter.insert_each(&items));
    assert_eq!(filter.cursor(), 3);
    let _: i64 = ask(&mut server.connection(), &["DEL", "bloomfilter-1"]);
    let lost = filter.contains_each(&["x1"]).remove(0);
    assert_eq!(lost, Err(RedisItemError::MissingShard { key: "bloomfilter-1".into() }));
}

#[test]
fn a_redis_bitmap_that_the_server_evicted_is_not_created_again() {
    let server = Server::start();
    let mut redis = server.connection();
    let filter = BitmapsFilter::open_or_create(server.node(), 10, 0.1).unwrap();
    let items: Vec<String> = (0..60).map(|i| format!("x{i}")).collect();
    ok(filter.insert_each(&items));
    for cursor in [3, 0] {
        let _: String = ask(&mut redis, &["SET", "cursor", &cursor.to_string()]);
        let _: i64 = ask(&mut redis, &["DEL", "bloomfilter-0"]);
        let lost = RedisItemError::MissingShard { key: "bloomfilter-0".into() };
        let opened = BitmapsFilter::open_or_create(server.node(), 10, 0.1).err().unwrap();
        assert_eq!(opened, RedisOpenError::Redis(lost.clone()));
        assert_eq!(filter.insert_each(&["y"]), [Err(lost)]);
        assert_eq!(ask::<i64>(&mut redis, &["EXISTS", "bloomfilter-0"]), 0);
    }
}

#[test]
fn a_broken_cursor_of_redis_bitmaps_is_an_error_with_few_commands() {
    let server = Server::start();
    let mut redis = server.connection();
    let (mut commands, mut arguments) = (0, 0);
    let counting = Hooked::new(server.node(), |words: &[Vec<u8>], _: &mut _| {
        commands += 1;
        arguments += words.len();
    });
    let filter = BitmapsFilter::open_or_create(counting, 1000, 0.1).unwrap();
    let items: Vec<String> = (0..1000).map(|i| format!("x{i}")).collect();
    for cursor in ["", "-1", "1e3", "+1", "007", "many", "4096", "1000000000000000000"] {
        let _: String = ask(&mut redis, &["SET", "cursor", cursor]);
        let opened = BitmapsFilter::open_or_create(server.node(), 1000, 0.1).err().unwrap();
        assert!(opened.to_string().contains("\"cursor\""), "{cursor}: {opened}");
        let is_error = |result: &Result<_, _>| matches!(result, Err(RedisItemError::Server { .. }));
        assert!(filter.insert_each(&items).iter().all(is_error), "{cursor}");
        assert!(filter.contains_each(&items).iter().all(is_error), "{cursor}");
        assert!(filter.reset().is_err(), "{cursor}");
    }
    // The largest cursor is read, but the bitmaps are missing.
    let _: String = ask(&mut redis, &["SET", "cursor", "4095"]);
    let is_lost =
        |result: &Result<_, _>| matches!(result, Err(RedisItemError::MissingShard { .. }));
    assert!(filter.contains_each(&items).iter().all(is_lost));
    drop(filter);
    assert!(commands < 10_000 && arguments < 2_000_000, "{commands} {arguments}");
}

#[test]
fn filters_with_many_redis_bitmaps_answer_all_items_of_a_batch() {
    let server = Server::start();
    let filter = BitmapsFilter::open_or_create(server.node(), 10, 1e-4).unwrap();
    let items: Vec<String> = (0..1000).map(|i| format!("x{i}")).collect();
    for items in items.chunks(10) {
        ok(filter.insert_each(items));
    }
    assert!(filter.cursor() > 80, "{}", filter.cursor());
    let found = ok(filter.contains_each(&items));
    assert_eq!((found.len(), found.contains(&false)), (1000, false));
    let twice = BitmapsFilter::open_or_create(server.node(), 10, 1e-4).unwrap();
    assert_eq!(ok(twice.insert_each(&items)), vec![false; 1000]);
}

#[test]
fn a_redis_bitmap_that_the_server_evicts_within_a_batch_is_an_error() {
    let server = Server::start();
    BitmapsFilter::open_or_create(server.node(), 1000, 0.1).unwrap();
    let mut redis = server.connection();
    let evicting = Hooked::new(server.node(), |words: &[Vec<u8>], _: &mut _| {
        if words[0] == b"STRLEN" {
            let _: i64 = ask(&mut redis, &["DEL", "bloomfilter-0"]);
        }
    });
    let filter = BitmapsFilter::open_or_create(evicting, 1000, 0.1).unwrap();
    let items: Vec<String> = (0..600).map(|i| format!("x{i}")).collect();
    let lost = Err(RedisItemError::MissingShard { key: "bloomfilter-0".into() });
    assert!(filter.insert_each(&items).iter().all(|result| *result == lost));
    assert_eq!(ask::<i64>(&mut server.connection(), &["EXISTS", "bloomfilter-0"]), 0);
}
