//! Tests of the program with filters on Redis servers, which the tests start.

mod connections;
mod interruptions;
mod java_layouts;
mod modules;
mod native;
mod page;
#[path = "../integration/program.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod program;
#[path = "../../../tamis-redis/tests/on_servers/support/mod.rs"]
mod support;

use program::{Folder, lines};
use support::Server;

/// Creates a folder with `n.txt`, the numbers below 10,000, and `other.txt`, 10,000 more.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("n.txt", lines(0..10_000));
    folder.write("other.txt", lines(10_000..20_000));
    folder
}

/// Runs a command, in which `@` is the URL of the server.
fn ok(folder: &Folder, server: &Server, line: &str) -> String {
    folder.ok(line.replace('@', &server.url()))
}

/// Runs a command that must be refused with `words`.
fn refused(folder: &Folder, server: &Server, line: &str, words: &str) {
    folder.refused(line.replace('@', &server.url()), words);
}

/// Returns the number that a command prints.
fn count(folder: &Folder, server: &Server, line: &str) -> u64 {
    ok(folder, server, line).trim().parse().unwrap()
}

/// Runs a command of Redis and returns its reply.
fn ask<T: redis::FromRedisValue>(server: &Server, line: &str) -> T {
    let words: Vec<&str> = line.split(' ').collect();
    support::ask(&mut server.connection(), &words)
}
