//! Filters of Java programs: Redisson, `BloomFilterHelper` and `RedisBitmaps`.

use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_redis::{BitmapsFilter, HelperFilter, RedissonFilter};

use crate::support::Server;
use crate::{ask, count, folder, ok, refused};

/// Every item is found.
fn all_found<E>(answers: &[Result<bool, E>]) -> bool {
    answers.iter().all(|answer| matches!(answer, Ok(true)))
}

fn items() -> Vec<String> {
    (0..10_000).map(|item| item.to_string()).collect()
}

#[test]
fn a_filter_of_redisson_is_recognised() {
    let (folder, server) = (folder(), Server::start());
    let build = "build --to redisson --items 40K --rate 0.001 --to-funnel text --to-charset UTF-8";
    ok(&folder, &server, &format!("{build} n.txt -o @/users"));
    let filter = RedissonFilter::open(server.node(), "users").unwrap();
    assert_eq!((filter.expected_insertions(), filter.false_probability()), (40_000, 0.001));
    assert!(all_found(&filter.contains_each(&items())));
    filter.insert_each(&["from Java"]);
    folder.write("one.txt", "from Java\n");
    assert_eq!(ok(&folder, &server, "check --funnel bytes @/users one.txt"), "from Java\n");
    refused(&folder, &server, "check @/users one.txt", "--funnel");
    refused(&folder, &server, &format!("{build} n.txt -o @/users"), "exists");
    ok(&folder, &server, "add --funnel bytes @/users other.txt");
    assert_eq!(count(&folder, &server, "check -c --funnel bytes @/users other.txt"), 10_000);

    let info = folder.run(format!("info --json {}/users", server.url()));
    assert_eq!((&info.json()[0]["format"], info.status), (&"redisson".into(), 0));
    refused(&folder, &server, "info @/{users}:config", "give the key users");

    // The snapshot of the program has the settings too, and goes back under another key.
    folder.run(format!("convert {}/users users.rdb --to redisson", server.url())).has_status(0);
    assert_eq!(folder.run("info --json users.rdb").json()[0]["format"], "redisson");
    let to = "--to redisson --to-items 40K --to-rate 0.001";
    let restore = format!("convert users.rdb {}/copy {to}", server.url());
    folder.run(&restore).has_status(0);
    let copy = RedissonFilter::open(server.node(), "copy").unwrap();
    assert_eq!((copy.expected_insertions(), copy.false_probability()), (40_000, 0.001));
    assert!(all_found(&copy.contains_each(&items())));
    folder.run(&restore).warns(2, "exists");
    let other = Server::start();
    let (from, to) = (server.url(), other.url());
    folder.run(format!("convert {from}/users {to}/users --to redisson")).has_status(0);
    assert_eq!(count(&folder, &other, "check -c --funnel bytes @/users other.txt"), 10_000);

    // Before the first item, there are only settings.
    let (_, is_new) = RedissonFilter::try_init(server.node(), "empty", 100, 0.01).unwrap();
    assert!(is_new);
    folder.feed(format!("check --funnel bytes {from}/empty"), "a\n").gives(1, "");
    folder.run(format!("add --funnel bytes {from}/empty n.txt")).warns(3, "over its rate");
}

#[test]
fn a_bitmap_of_the_helper_class_needs_its_plan() {
    let (folder, server) = (folder(), Server::start());
    ok(
        &folder,
        &server,
        "build --to redis-bitmap --items 10K --rate 0.03 --to-funnel bytes n.txt -o @/bloom",
    );
    let plan = RedisBitmapPlan::new(10_000, 0.03);
    let filter = HelperFilter::new(server.node(), "bloom", plan).unwrap();
    assert!(all_found(&filter.contains_each(&items())));
    refused(&folder, &server, "check @/bloom n.txt", "--format (redis-bitmap");
    refused(&folder, &server, "check --format redis-bitmap @/bloom n.txt", "--items-planned N");
    let options = "--format redis-bitmap --items-planned 10K --rate-planned 0.03 --funnel bytes";
    assert_eq!(count(&folder, &server, &format!("check -c {options} @/bloom n.txt")), 10_000);
    refused(&folder, &server, &format!("add {options} @/missing n.txt"), "no such key");
    assert_eq!(ask::<i64>(&server, "EXISTS missing"), 0);
    folder.write("one.txt", "one\n");
    ok(&folder, &server, &format!("add {options} @/bloom one.txt"));
    assert!(all_found(&filter.contains_each(&["one"])));
    refused(&folder, &server, &format!("check {options} --column c @/bloom one.txt"), "--column");
}

#[test]
fn bitmaps_that_grow_in_number_are_read_and_extended() {
    let (folder, server) = (folder(), Server::start());
    let key = "build --to redis-bitmaps --items 1000 n.txt -o @/bitmaps";
    refused(&folder, &server, key, "bloomfilter-0");
    ok(&folder, &server, "build --to redis-bitmaps --items 1000 n.txt -o @/bloomfilter-0");
    let filter = BitmapsFilter::open_or_create(server.node(), 1000, 0.01).unwrap();
    assert!(all_found(&filter.contains_each(&items())) && filter.cursor() > 5);
    let options = "--format redis-bitmaps --items-planned 1000 --rate-planned 0.01";
    let check = format!("check -c {options} @/bloomfilter-0 n.txt");
    assert_eq!(count(&folder, &server, &check), 10_000);
    folder
        .run(format!("info {options} {}/bloomfilter-0", server.url()))
        .shows(&[&format!("cursor        {}", filter.cursor())]);
    // All bitmaps go to a file and back to another server.
    let to = "--to redis-bitmaps --to-items 1000 --to-rate 0.01";
    let other = Server::start();
    for paths in [
        format!("{}/bloomfilter-0 all.rdb", server.url()),
        format!("all.rdb {}/bloomfilter-0", other.url()),
    ] {
        folder.run(format!("convert {paths} {to} {options}")).has_status(0);
    }
    let copy = BitmapsFilter::open_or_create(other.node(), 1000, 0.01).unwrap();
    assert!(all_found(&copy.contains_each(&items())));
    assert_eq!(copy.cursor(), filter.cursor());
}

#[test]
fn a_bitmap_of_integers_is_checked_from_a_copy() {
    let (folder, server) = (folder(), Server::start());
    for bit in [7, 10_001] {
        let _: i64 = ask(&server, &format!("SETBIT ids {bit} 1"));
    }
    let found = ok(&folder, &server, "check --format redis-bits @/ids n.txt other.txt");
    assert_eq!(found, "7\n10001\n");
    refused(&folder, &server, "add --format redis-bits @/ids n.txt", "SETBIT");
    refused(&folder, &server, "info @/ids", "--format");
}
