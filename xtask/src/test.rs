//! `cargo xtask test`: all of CI. The README tells contributors to run it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use crate::clients::{self, Server};
use crate::setup::{self, cargo, works};
use crate::steps::Steps;
use crate::{Outcome, console, databases, fuzz, links, servers};

/// The packages and features of every build of the tests. Cargo unites the features of the packages
/// that a command selects: with other packages, it would compile most dependencies again.
const SELECTION: [&str; 3] =
    ["--workspace", "--features", "tamis-redis/async-tls,tamis/rayon,tamis/serde,tamis/uuid"];

/// Returns the command that runs tests of the workspace.
pub fn tests(arguments: &[&str]) -> Command {
    let mut tests = cargo(&["test", "--quiet"]);
    tests.args(SELECTION).args(arguments);
    tests
}

/// Runs every step.
pub fn run() -> Outcome {
    let mut steps = Steps::default();
    steps.check("set-up", setup::run)?;
    format(&mut steps)?;
    lints(&mut steps)?;
    // The property tests try the same cases each time. `cargo xtask soak` tries new ones.
    steps.run("tests", tests(&["--all-targets"]).env("PROPTEST_RNG_SEED", "1"))?;
    steps.run("doc tests", &mut tests(&["--doc"]))?;
    servers::test(&mut steps)?;
    databases::test(&mut steps)?;
    let mut some = cargo(&["check", "-p", "tamis", "--no-default-features", "--quiet"]);
    some.args(["--features", "serde,uuid,roaring"]);
    steps.run("the library with features and without the standard library", &mut some)?;
    let mut none = cargo(&["test", "-p", "tamis", "--no-default-features", "--quiet"]);
    none.args(["--test", "integration", "--", "methods", "debug", "no_false_negatives"]);
    steps.run("the library without the standard library", &mut none)?;
    steps.run(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-Dwarnings"),
    )?;
    steps.check("links of the pages", links::check)?;
    steps.run("loom", &mut loom())?;
    miri(&mut steps)?;
    steps.run("build of the fuzz targets", &mut fuzz::build()?)?;
    for target in &fuzz::targets()? {
        steps.run_quietly(&format!("fuzz {target}"), &mut fuzz::check(target)?)?;
    }
    steps.check("the README's first commands", first_commands)?;
    clients::test(&mut steps)?;
    console::test(&mut steps)?;
    steps.end();
    Ok(())
}

fn format(steps: &mut Steps) -> Outcome {
    if !works(&mut cargo(&["fmt"])) {
        steps.skip("format", "this Rust has no rustfmt");
        return Ok(());
    }
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    let mut fuzz = cargo(&["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"]);
    steps.run("format of the fuzz targets", &mut fuzz)
}

fn lints(steps: &mut Steps) -> Outcome {
    if !works(&mut cargo(&["clippy"])) {
        steps.skip("lints", "this Rust has no clippy");
        return Ok(());
    }
    let deny = ["--", "-D", "warnings"];
    let mut clippy = cargo(&["clippy", "--quiet", "--all-targets"]);
    steps.run("lints", clippy.args(SELECTION).args(deny))?;
    // No other run selects these tests: they are run only with servers.
    let mut clippy = cargo(&["clippy", "--quiet"]);
    for test in ["on_servers", "on_valkey", "mysql", "postgres", "guard_on_databases"] {
        clippy.args(["--test", test]);
    }
    steps.run("lints of the tests on servers", clippy.args(SELECTION).args(deny))
}

/// Runs the model checker, which tries every order in which threads can interleave.
fn loom() -> Command {
    let mut command = cargo(&["test", "-p", "tamis", "--test", "loom", "--release", "--quiet"]);
    // Other compiler flags rebuild everything, so the build has its own folder.
    command.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command
}

/// Runs the interpreter that finds undefined behaviour, if the toolchain has it.
fn miri(steps: &mut Steps) -> Outcome {
    if !works(&mut cargo(&["miri"])) {
        steps.skip("miri", "this Rust has no miri (it comes with nightly)");
        return Ok(());
    }
    let mut miri = cargo(&["miri", "test", "-p", "tamis", "--lib", "--target-dir", "target/miri"]);
    steps.run("miri", miri.args(["--", "arch::", "bits::"]))
}

/// The commands at the top of the README, with their replies.
const FIRST_COMMANDS: [(&str, &str); 5] = [
    ("BF.RESERVE seen 0.01 1000000", "+OK\r\n"),
    ("BF.ADD seen user:1", ":1\r\n"),
    ("BF.MADD seen user:1 user:2", "*2\r\n:0\r\n:1\r\n"),
    ("BF.EXISTS seen user:3", ":0\r\n"),
    ("BF.INFO seen ITEMS", "*1\r\n:2\r\n"),
];

/// Runs the server, sends the five commands at the top of the README, and compares the replies.
fn first_commands() -> Outcome {
    let server = Server::start()?;
    let fail = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", server.port)).map_err(fail)?;
    for (command, expected) in FIRST_COMMANDS {
        stream.write_all(format!("{command}\r\n").as_bytes()).map_err(fail)?;
        let mut reply = vec![0; expected.len()];
        stream.read_exact(&mut reply).map_err(fail)?;
        if reply != expected.as_bytes() {
            let reply = String::from_utf8_lossy(&reply);
            return Err(format!("{command}: {reply:?}, the README says {expected:?}"));
        }
    }
    // The command must end the program, not only cargo.
    stream.write_all(b"SHUTDOWN\r\n").map_err(fail)
}
