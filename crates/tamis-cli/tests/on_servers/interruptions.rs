//! Ctrl-C in the middle of a build leaves nothing behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use tamis_redis::{RedisFilter, RedisPlan};
use tamis_testing::{CommandExt as _, Process, wait_until};

use crate::program::{Folder, lines};
use crate::support::Server;
use crate::{ask, count, folder, ok};

/// Starts a build that waits for more input.
fn start(folder: &Folder, line: &str) -> Process {
    // The process that runs the tests may ignore the signal.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tamis")])
        .args(line.split(' '))
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .start();
    child.stdin.as_mut().unwrap().write_all(lines(0..1000).as_bytes()).unwrap();
    child
}

fn interrupt(mut child: Process) {
    // At the end of its input, the program could finish before the signal arrives.
    let stdin = child.stdin.take();
    child.signal("INT");
    child.wait();
    drop(stdin);
}

#[test]
fn an_interrupted_build_leaves_no_key() {
    let (folder, server) = (folder(), Server::start());
    let child = start(&folder, &format!("build --items 10K -o {}/f", server.url()));
    wait_until("the build runs", || ask::<Vec<String>>(&server, "KEYS f:*").len() == 1);
    // No other client sees a filter that is not complete.
    assert_eq!(ask::<i64>(&server, "EXISTS f"), 0);
    interrupt(child);
    assert_eq!(ask::<Vec<String>>(&server, "KEYS *"), [""; 0]);
}

#[test]
fn an_interrupted_rebuild_leaves_the_present_filter() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/f");
    let child = start(&folder, &format!("build --replace --items 10K -o {}/f", server.url()));
    wait_until("the rebuild runs", || ask::<Vec<String>>(&server, "KEYS f:*").len() == 2);
    interrupt(child);
    assert_eq!(ask::<Vec<String>>(&server, "KEYS f:*").len(), 1);
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
    // No rebuild is left behind.
    let filter = RedisFilter::open(server.node(), "f").unwrap();
    let rebuild = filter.rebuild(&RedisPlan::new(100, 0.01).unwrap()).unwrap();
    rebuild.abort().unwrap();
}

/// Ends the input of a build, and returns its status.
fn finish(mut child: Process, more: &str) -> i32 {
    child.stdin.as_mut().unwrap().write_all(more.as_bytes()).unwrap();
    child.wait().code().unwrap()
}

/// Returns the number of keys with bits.
fn shards(server: &Server) -> usize {
    ask::<Vec<String>>(server, "KEYS f:*").len()
}

#[test]
fn a_build_never_deletes_the_filter_of_another_client() {
    let (folder, server) = (folder(), Server::start());
    // Another client creates the filter while a build runs, which is then interrupted or fails.
    let endings: [fn(Process); 3] = [
        interrupt,
        |child| assert_eq!(finish(child, ""), 2, "the key exists"),
        |child| assert_eq!(finish(child, &lines(0..20_000)), 2, "over its rate"),
    ];
    for end in endings {
        let child = start(&folder, &format!("build --items 10K -o {}/f", server.url()));
        wait_until("the build runs", || shards(&server) == 1);
        ok(&folder, &server, "build n.txt -o @/f");
        folder.write("one.txt", "of another client\n");
        ok(&folder, &server, "add @/f one.txt");
        end(child);
        assert_eq!(shards(&server), 1);
        assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
        assert_eq!(count(&folder, &server, "check -c @/f one.txt"), 1);
        let _: () = ask(&server, "FLUSHALL");
    }
}

#[test]
fn an_interrupted_rebuild_does_not_end_that_of_another_client() {
    let (folder, server) = (folder(), Server::start());
    ok(&folder, &server, "build n.txt -o @/f");
    let replace = format!("build --replace --items 20K -o {}/f", server.url());
    let mut one = start(&folder, &replace);
    wait_until("the rebuild runs", || shards(&server) == 2);
    let other = start(&folder, &replace.replace("--replace", "--replace --abort-rebuild"));
    // The shard of the first is replaced by that of the second.
    let before: Vec<String> = ask(&server, "KEYS f:*");
    wait_until("the other rebuild runs", || {
        let now: Vec<String> = ask(&server, "KEYS f:*");
        now.len() == 2 && now.iter().any(|key| !before.contains(key))
    });
    // The first build has ended already if it wrote after the end of its rebuild.
    let stdin = one.stdin.take();
    one.send("INT");
    one.wait();
    drop(stdin);
    assert_eq!(finish(other, &lines(1000..10_000)), 0);
    assert_eq!(count(&folder, &server, "check -c @/f n.txt"), 10_000);
    wait_until("nothing is left of the first", || shards(&server) == 1);
}

#[test]
fn a_build_for_java_programs_leaves_nothing_after_a_failure() {
    let (folder, server) = (folder(), Server::start());
    for format in ["redisson", "redis-bitmap"] {
        let build =
            format!("build --to {format} --items 10K --to-funnel long -o {}/f", server.url());
        let child = start(&folder, &build);
        assert_eq!(finish(child, "no number\n"), 2);
        // The build has nothing on the server yet, so the signal ends it without a handler.
        let mut child = start(&folder, &build);
        let program = fs::canonicalize(env!("CARGO_BIN_EXE_tamis")).unwrap();
        let exe = format!("/proc/{}/exe", child.id());
        wait_until("the build runs", || fs::read_link(&exe).unwrap() == program);
        child.send("INT");
        assert_eq!(child.wait().signal(), Some(2));
        let small = build.replace("10K", "10");
        assert_eq!(finish(start(&folder, &small), ""), 2, "over its rate");
        assert_eq!(ask::<Vec<String>>(&server, "KEYS *"), [""; 0], "{format}");
        assert_eq!(finish(start(&folder, &format!("{small} --force")), ""), 3);
        let _: () = ask(&server, "FLUSHALL");
        // Of two builds at once, one wins.
        let (one, other) = (start(&folder, &build), start(&folder, &build));
        assert_eq!((finish(one, ""), finish(other, "")), (0, 2));
        let keys: Vec<String> = ask(&server, "KEYS *");
        assert!(!keys.iter().any(|key| key.contains("tamis-")) && !keys.is_empty(), "{keys:?}");
        let _: () = ask(&server, "FLUSHALL");
    }
    let _: () = ask(&server, "SET cursor 3");
    let build =
        format!("build --to redis-bitmaps --items 10K n.txt -o {}/bloomfilter-0", server.url());
    folder.refused(&build, "the key cursor exists");
}
