//! Ctrl-C in the middle of a build leaves nothing behind.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tamis_redis::{RedisFilter, RedisPlan};

use crate::program::Folder;
use crate::support::Server;
use crate::{ask, count, folder, numbers, ok};

/// Starts a build that waits for more input.
fn start(folder: &Folder, line: &str) -> Child {
    let mut child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_tamis")])
        .args(line.split(' '))
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(numbers(0, 1000).as_bytes()).unwrap();
    child
}

fn interrupt(mut child: Child) {
    let stdin = child.stdin.take();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    child.wait().unwrap();
    drop(stdin);
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_interrupted_build_leaves_no_key() {
    let (folder, server) = (folder(), Server::start());
    let child = start(&folder, &format!("build --items 10K -o {}/f", server.url()));
    wait_until("the filter exists", || ask::<i64>(&server, "EXISTS f") == 1);
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
    let mut filter = RedisFilter::open(server.node(), "f").unwrap();
    let rebuild = filter.rebuild(&RedisPlan::new(100, 0.01).unwrap()).unwrap();
    rebuild.abort().unwrap();
}
