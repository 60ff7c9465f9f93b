//! Filters of `tamis-redis`.

use tamis_redis::{RedisFilter, RedisPlan};
use tamis_testing::wait_until;

use crate::program::lines;
use crate::support::Server;
use crate::{ask, count, folder, ok, refused};

#[test]
fn a_filter_is_built_checked_extended_and_described() {
    let (folder, server) = (folder(), Server::start());
    assert_eq!(ok(&folder, &server, "build n.txt -o @/f"), "");
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
    let wrong = count(&folder, &server, "check -c @/f other.txt");
    assert!((20..200).contains(&wrong), "{wrong}");
    assert_eq!(count(&folder, &server, "check -vc @/f other.txt"), 10_000 - wrong);
    let json = folder.json(format!("info --json {}/f", server.url()));
    assert_eq!(json[0]["format"], "tamis-redis");
    assert_eq!(
        (&json[0]["items_planned"], &json[0]["rate_planned"]),
        (&10_000.into(), &0.01.into())
    );
    let items = json[0]["items"].as_u64().unwrap();
    assert!((9_900..=10_000).contains(&items), "{items}");
    folder.shows(format!("info {}/f", server.url()), &["\n  planned for   10,000\n"]);

    // The library reads what the program wrote, and the reverse.
    let filter = RedisFilter::open(server.node(), "f").unwrap();
    assert_eq!(filter.insert("from the library"), Ok(true));
    folder.write("one.txt", "from the library\n");
    assert_eq!(ok(&folder, &server, "check @/f one.txt"), "from the library\n");
    folder.write("two.txt", "from the program\n");
    assert_eq!(ok(&folder, &server, "add @/f two.txt"), "");
    assert_eq!(filter.contains("from the program"), Ok(true));

    // Some items more than planned are accepted and reported.
    folder.run(format!("add {}/f other.txt", server.url())).warns(3, "over its rate");
    folder.run(format!("check -q {}/f n.txt", server.url())).has_status(3);
    refused(&folder, &server, "add @/f one.txt", "nothing was added");
    folder.run(format!("add --force {}/f one.txt", server.url())).has_status(3);
}

#[test]
fn lines_are_found_on_several_servers_and_in_files() {
    let (folder, server, other) = (folder(), Server::start(), Server::start());
    folder.write("a.txt", "a\nb\n");
    folder.write("b.txt", "b\nc\n");
    ok(&folder, &server, "build --items 100 a.txt -o @/f");
    ok(&folder, &other, "build --items 100 b.txt -o @/f");
    folder.ok("build b.txt -o b.tamis");
    folder.write("all.txt", "a\nb\nc\nd\n");
    let line = format!("check -f {}/f -f {}/f -f b.tamis all.txt", server.url(), other.url());
    let (one, two) = (format!("{}/f", server.url()), format!("{}/f", other.url()));
    let expected = format!("{one}:a\n{one}:b\n{two}:b\nb.tamis:b\n{two}:c\nb.tamis:c\n");
    assert_eq!(folder.ok(&line), expected);
    assert_eq!(folder.ok(line.replace("check", "check -v")), "d\n");
    folder.feed(format!("check {one}"), "x\n").gives(1, "");
}

#[test]
fn a_filter_that_exists_is_replaced_only_on_request() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/f");
    refused(&folder, &server, "build other.txt -o @/f", "--replace");
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
    ok(&folder, &server, "build --replace --items 15K other.txt -o @/f");
    assert_eq!(count(&folder, &server, "check -c @/f other.txt"), 10_000);
    assert!(count(&folder, &server, "check -c @/f n.txt") < 100);
    let keys: Vec<String> = ask(&server, "KEYS *");
    assert_eq!(keys.len(), 2, "the old filter is gone: {keys:?}");
    // A rebuild that does not fit leaves the present filter.
    refused(&folder, &server, "build --replace --items 1000 n.txt -o @/f", "over its rate");
    assert_eq!(count(&folder, &server, "check -c @/f other.txt"), 10_000);
    assert_eq!(ask::<Vec<String>>(&server, "KEYS *").len(), 2);

    // A rebuild that another client left behind is ended only on request.
    let left = RedisFilter::open(server.node(), "f").unwrap();
    let _left_behind = left.rebuild(&RedisPlan::new(10_000, 0.01).unwrap()).unwrap();
    refused(&folder, &server, "build --replace n.txt -o @/f", "--abort-rebuild");
    ok(&folder, &server, "build --replace --abort-rebuild n.txt -o @/f");
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);

    let _: () = ask(&server, "SET other x");
    refused(&folder, &server, "build --replace n.txt -o @/other", "holds another value");
}

#[test]
fn a_filter_that_is_too_small_is_not_left_behind() {
    let (folder, server) = (folder(), Server::start());
    refused(&folder, &server, "build --items 5000 n.txt -o @/f", "over its rate");
    assert_eq!(ask::<Vec<String>>(&server, "KEYS *"), [""; 0]);
    let url = server.url();
    folder.run(format!("build --force --items 5000 n.txt -o {url}/f")).has_status(3);
    folder.run(format!("info {url}/f")).has_status(3);
}

#[test]
fn filters_grow_and_forget() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build --kind growing --items 1000 n.txt -o @/grows");
    assert_eq!(count(&folder, &server, "check -c @/grows n.txt"), 10_000);
    assert!(count(&folder, &server, "check -c @/grows other.txt") < 200);
    assert!(ok(&folder, &server, "info @/grows").contains("growing"));

    ok(&folder, &server, "build --window 2s --items 10K n.txt -o @/window");
    assert_eq!(count(&folder, &server, "check -c @/window n.txt"), 10_000);
    let words = ["window        2s; lookups test 2 slices", "rate planned  0.01\n"];
    folder.shows(format!("info {}/window", server.url()), &words);
    let check = format!("check -q {}/window n.txt", server.url());
    wait_until("the window forgets", || folder.run(&check).status == 1);
}

#[test]
fn filters_merge_on_their_servers() {
    let (folder, server, other) = (folder(), Server::start(), Server::start());
    ok(&folder, &server, "build --items 20K n.txt -o @/a");
    ok(&folder, &other, "build --items 20K other.txt -o @/b");
    let (a, b) = (format!("{}/a", server.url()), format!("{}/b", other.url()));
    assert_eq!(folder.ok(format!("merge {a} {b} -o {}/all", server.url())), "");
    for file in ["n.txt", "other.txt"] {
        assert_eq!(count(&folder, &server, &format!("check -c @/all {file}")), 10_000);
    }
    folder.refused(format!("merge {a} {b} -o {}/all", server.url()), "the key exists");
    ok(&folder, &server, "build --items 30K n.txt -o @/larger");
    folder.refused(
        format!("merge {a} {0}/larger -o {0}/x", server.url()),
        "items is 30000, planned 20000",
    );
    assert_eq!(ask::<i64>(&server, "EXISTS x"), 0);
    // Into one of the inputs.
    assert_eq!(folder.ok(format!("merge {a} {b} -o {a}")), "");
    assert_eq!(count(&folder, &server, "check -c @/a other.txt"), 10_000);
    folder.refused(format!("merge {a} {b} -o {}/more", server.url()), "over its rate");
    folder.ok("build n.txt -o n.tamis");
    folder.refused(format!("merge {a} n.tamis -o {}/x", server.url()), "do not merge");
    folder.refused(format!("merge n.tamis {a} -o x.tamis"), "cannot be written to a file");
    folder.refused(format!("merge {a} {b} -o x.tamis"), "only on servers");
    folder.refused(format!("convert {a} x.tamis"), "cannot be written to a file");
}

#[test]
fn options_that_have_no_effect_on_a_server_are_refused() {
    let (folder, server) = (folder(), Server::start());
    for (line, words) in [
        ("build --kind cuckoo n.txt -o @/f", "--kind growing"),
        ("build --window 1M-items n.txt -o @/f", "a window is a time"),
        ("build --meta a=b n.txt -o @/f", "--meta"),
        ("build --like @/f n.txt -o @/f", "--like"),
        ("build --replace n.txt -o f.tamis", "--replace: only with -o and the URL of a key"),
        (
            "build --to redisson --items 5 n.txt -o f.tamis",
            "--to: only with -o and the URL of a key",
        ),
        ("remove @/f n.txt", "takes filters in files"),
        ("dedup @/f", "no such file"),
    ] {
        refused(&folder, &server, line, words);
    }
    ok(&folder, &server, "build n.txt -o @/f");
    folder.ok("build n.txt -o f.tamis");
    for (line, words) in [
        ("check --funnel text --charset UTF-8 @/f n.txt", "has no effect"),
        ("check --copies @/f n.txt", "does not count"),
        ("add --if-absent @/f n.txt", "is for filters in files"),
        ("info --svg x.svg @/f", "--svg"),
        ("info --format guava @/f", "has no effect"),
        ("merge --format guava @/f @/f -o @/g", "has no effect"),
        ("build --to redisson --memory 1G --items 5 n.txt -o @/g", "--memory"),
        ("build --keyed --replace n.txt -o @/f", "keeps the hash function"),
        ("build --seed 5 --replace n.txt -o @/f", "keeps the hash function"),
        ("build --memory 1G --items 10K n.txt -o @/g", "--memory limits counting"),
        ("convert f.tamis @/f --to tamis", "tamis-redis"),
    ] {
        refused(&folder, &server, line, words);
    }
    assert_eq!(ask::<Vec<String>>(&server, "KEYS *").len(), 2);
}

#[test]
fn a_lost_shard_is_an_error_and_a_rebuild_heals_it() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/f");
    let keys: Vec<String> = ask(&server, "KEYS f:*");
    let _: i64 = ask(&server, &format!("DEL {}", keys[0]));
    refused(&folder, &server, "check @/f n.txt", "noeviction");
    let added = folder.run(format!("add {}/f n.txt", server.url()));
    added.warns(2, "the first 0 items were added");
    let info = folder.run(format!("info {}/f", server.url()));
    assert!(info.stderr.contains("are missing"), "{info:?}");
    ok(&folder, &server, "build --replace n.txt -o @/f");
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
}

#[test]
fn items_follow_the_same_rules_as_for_files() {
    let (folder, server) = (folder(), Server::start());
    folder.write("t.csv", "id,url\n1,a\n2,b\n3\n");
    let url = server.url();
    folder.run(format!("build -k 2 -d , --items 10 t.csv -o {url}/f")).warns(0, "skipped a record");
    folder.write("u.csv", "9,a\n9,x\n9,url\n");
    assert_eq!(ok(&folder, &server, "check -k 2 -d , @/f u.csv"), "9,a\n9,url\n");
    let many = lines(0..50_000);
    folder.feed(format!("build -o {url}/many"), many).has_status(0);
    folder.shows(format!("info {url}/many"), &["planned for   50,000"]);
    folder.feed(format!("build -o {url}/empty"), "").has_status(0);
    folder.feed(format!("check {url}/empty"), "a\n").has_status(1);
}
