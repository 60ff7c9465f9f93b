//! `cargo xtask test`: runs all checks of CI. The README asks contributors to run this task.
//!
//! After the build, two lanes of steps run at the same time. One lane runs the steps that mostly wait for servers,
//! databases and browsers. The other lane runs the steps of the compiler. Then both lanes share the remaining test
//! programs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use crate::clients::{self, Server};
use crate::setup;
use crate::steps::Steps;
use crate::test_programs::{self, SELECTION, TestProgram, cargo_with_lints, has_clippy};
use crate::tools::{Outcome, cargo, works};
use crate::{console, databases, java, languages, links, proxies, rustdoc, servers};

/// The time limit of one command. The slowest command is the first build. On two old and busy CPU cores, this build
/// took half of the limit.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// Runs all steps of CI.
pub fn run() -> Outcome {
    let steps = Steps::new(LIMIT);
    steps.check("set-up of tools", setup::tools)?;
    format(&steps)?;
    let mut programs = Vec::new();
    steps.lanes(
        || steps.check("set-up of clients", setup::clients),
        || {
            if !has_clippy() {
                steps.skip("lints of clippy", "this Rust has no clippy");
            }
            programs =
                steps.check("build of the tests, and lints", || test_programs::build(&steps))?;
            Ok(())
        },
    )?;
    let (on_servers, mut others) =
        programs.into_iter().partition::<Vec<_>, _>(TestProgram::needs_servers);
    // The lanes take programs from the end of the list. So the longest program runs first, and then the other long
    // programs, and both lanes end at about the same time.
    let is_longest = |program: &TestProgram| program.name() == "tamis-cli integration";
    others.sort_by_key(|program| (is_longest(program), program.is("integration")));
    let others = Mutex::new(others);
    steps.lanes(
        || {
            waits(&steps, &on_servers)?;
            run_all(&steps, &others)
        },
        || {
            compiles(&steps)?;
            run_all(&steps, &others)
        },
    )?;
    steps.end();
    Ok(())
}

/// Runs test programs from the end of the shared list until the list is empty.
fn run_all(steps: &Steps, programs: &Mutex<Vec<TestProgram>>) -> Outcome {
    let next = || programs.lock().expect("no lane panics").pop();
    std::iter::from_fn(next).try_for_each(|program| program.run(steps, &[]))
}

/// Runs the steps that mostly wait for other programs. These steps never call cargo, because cargo would wait for the
/// build lock.
fn waits(steps: &Steps, programs: &[TestProgram]) -> Outcome {
    databases::test(steps, programs)?;
    servers::test(steps, programs)?;
    proxies::test(steps, programs)?;
    clients::test(steps)?;
    java::test(steps)?;
    steps.check("the README's first commands", first_commands)?;
    console::test(steps)
}

/// Runs the steps that call cargo. Cargo locks a build folder, so these steps run one after the other.
fn compiles(steps: &Steps) -> Outcome {
    lower_priority();
    let mut doc_tests = cargo_with_lints(&["test", "--doc", "--quiet"]);
    rustdoc::stand_in(&mut doc_tests);
    steps.run("documentation, and its examples", doc_tests.args(SELECTION))?;
    let mut some = cargo(&["check", "-p", "tamis", "--no-default-features", "--quiet"]);
    some.args(["--features", "libm,serde,uuid,roaring"]);
    steps.run("the library with features and without the standard library", &mut some)?;
    // These tests run few loops, so the code is not optimized. A build with optimization level 2 takes 90 s longer.
    let mut none = cargo(&["--config", "profile.dev.package.tamis.opt-level=0"]);
    none.args(["test", "-p", "tamis", "--no-default-features", "--features", "libm", "--quiet"]);
    none.args(["--test", "integration", "--", "methods", "debug", "no_false_negatives"]);
    steps.run("the library without the standard library", &mut none)?;
    guard_features(steps)?;
    steps.check("links of the pages", links::check)?;
    steps.check("pages in two languages", languages::check)?;
    steps.run("loom", &mut loom())?;
    miri(steps)
}

/// Compiles `tamis-guard` and `tamis-sources` with each feature alone, because the tests enable all features. Warnings
/// are errors.
fn guard_features(steps: &Steps) -> Outcome {
    let guard = ["", "layer", "sources", "proxy"].map(|feature| ("tamis-guard", feature));
    let sources = ["", "tls", "databases"].map(|feature| ("tamis-sources", feature));
    for (package, feature) in guard.into_iter().chain(sources) {
        let mut check = cargo(&["check", "-p", package, "--no-default-features", "--quiet"]);
        check.args(["--features", feature]);
        steps.check(&format!("{package} with the feature {feature:?} alone"), || {
            let warnings = steps.finish_quietly(&mut check)?;
            if warnings.is_empty() { Ok(()) } else { Err(warnings) }
        })?;
    }
    Ok(())
}

/// Lowers the priority of this thread and of the commands that this thread starts. So the tests with servers in the
/// other lane keep short response times. Without `/proc` or `renice`, this function does nothing.
fn lower_priority() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(number) = thread.file_name() {
        _ = Command::new("renice").args(["-n", "10", "-p"]).arg(number).output();
    }
}

fn format(steps: &Steps) -> Outcome {
    if !works(&mut cargo(&["fmt"])) {
        steps.skip("format", "this Rust has no rustfmt");
        return Ok(());
    }
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]))
}

/// Returns the command that runs the model checker loom. Loom tests all interleavings of threads.
fn loom() -> Command {
    let mut command = cargo(&["test", "-p", "tamis-loom", "--quiet"]);
    // Changed compiler flags would rebuild all crates, so this build uses a separate folder.
    command.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
    command
}

/// Runs Miri, which finds undefined behaviour. Skips the step if the toolchain has no Miri.
fn miri(steps: &Steps) -> Outcome {
    if !works(&mut cargo(&["miri"])) {
        steps.skip("miri", "this Rust has no miri (it comes with nightly)");
        return Ok(());
    }
    let mut miri = cargo(&["miri", "test", "-p", "tamis", "--lib", "--target-dir", "target/miri"]);
    steps.run("miri", miri.args(["--", "arch::", "bits::"]))
}

/// The first commands of the README, with the expected replies.
const FIRST_COMMANDS: [(&str, &str); 5] = [
    ("BF.RESERVE seen 0.01 1000000", "+OK\r\n"),
    ("BF.ADD seen user:1", ":1\r\n"),
    ("BF.MADD seen user:1 user:2", "*2\r\n:0\r\n:1\r\n"),
    ("BF.EXISTS seen user:3", ":0\r\n"),
    ("BF.INFO seen ITEMS", "*1\r\n:2\r\n"),
];

/// Starts a server, sends the first five commands of the README, and compares the replies.
fn first_commands() -> Outcome {
    let server = Server::start()?;
    let fail = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{}", server.port)).map_err(fail)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(fail)?;
    for (command, expected) in FIRST_COMMANDS {
        stream.write_all(format!("{command}\r\n").as_bytes()).map_err(fail)?;
        let mut reply = vec![0; expected.len()];
        stream.read_exact(&mut reply).map_err(fail)?;
        if reply != expected.as_bytes() {
            let reply = String::from_utf8_lossy(&reply);
            return Err(format!("{command}: {reply:?}, the README says {expected:?}"));
        }
    }
    // SHUTDOWN must end the server process itself.
    stream.write_all(b"SHUTDOWN\r\n").map_err(fail)
}
