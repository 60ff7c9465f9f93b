//! `cargo xtask test`: all of CI, and what the README tells contributors to run.

use std::collections::HashSet;
use std::process::Stdio;

use crate::setup::{self, cargo, works};
use crate::steps::Steps;
use crate::{Outcome, console, fuzz, links};

/// How long each fuzz target runs here; `cargo xtask soak` runs them for hours.
const FUZZ_SECONDS: u64 = 8;

/// Runs every step.
pub fn run() -> Outcome {
    let mut steps = Steps::default();
    steps.check("set-up", setup::run)?;
    format(&mut steps)?;
    lints(&mut steps)?;
    steps.run("tests", &mut cargo(&["test", "--workspace", "--all-targets", "--quiet"]))?;
    steps.run("doc tests", &mut cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    steps.run(
        "tests of the benches",
        &mut cargo(&[
            "test",
            "--quiet",
            "--manifest-path",
            "bench/Cargo.toml",
            "--target-dir",
            "target",
        ]),
    )?;
    steps.run(
        "documentation",
        cargo(&["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-Dwarnings"),
    )?;
    steps.run(
        "no default features",
        &mut cargo(&["check", "--workspace", "--no-default-features", "--quiet"]),
    )?;
    steps.check("links of the pages", links::check)?;
    steps.run("loom", &mut loom())?;
    miri(&mut steps)?;
    steps.run("build of the fuzz targets", &mut fuzz::build()?)?;
    for target in fuzz::TARGETS {
        steps.run_quietly(&format!("fuzz {target}"), &mut fuzz::run(target, FUZZ_SECONDS)?)?;
    }
    steps.run("build of the program", &mut cargo(&["build", "--release", "--quiet"]))?;
    steps.check("the README's first command", first_command)?;
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
    for apart in ["bench", "fuzz"] {
        let manifest = format!("{apart}/Cargo.toml");
        steps.run(
            &format!("format of {apart}"),
            &mut cargo(&["fmt", "--check", "--manifest-path", &manifest]),
        )?;
    }
    Ok(())
}

fn lints(steps: &mut Steps) -> Outcome {
    if !works(&mut cargo(&["clippy"])) {
        steps.skip("lints", "this Rust has no clippy");
        return Ok(());
    }
    let deny = ["--", "-D", "warnings"];
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets", "--quiet"]);
    steps.run("lints", clippy.args(deny))?;
    let mut clippy = cargo(&["clippy", "--all-targets", "--quiet"]);
    clippy.args(["--manifest-path", "bench/Cargo.toml", "--target-dir", "target"]);
    steps.run("lints of the benches", clippy.args(deny))
}

/// The model checker tries every order in which threads can meet.
fn loom() -> std::process::Command {
    let mut command = cargo(&["test", "-p", "tamis", "--test", "loom", "--release", "--quiet"]);
    // Other flags build everything anew: not in the folder of the other steps.
    command.args(["--target-dir", "target/loom"]).env("RUSTFLAGS", "--cfg loom");
    command
}

/// The interpreter that finds undefined behaviour, where the toolchain has it.
fn miri(steps: &mut Steps) -> Outcome {
    if !works(&mut cargo(&["miri"])) {
        steps.skip("miri", "this Rust has no miri (it comes with nightly)");
        return Ok(());
    }
    let mut miri = cargo(&["miri", "test", "-p", "tamis", "--lib", "--target-dir", "target/miri"]);
    steps.run("miri", miri.args(["--", "arch::", "bits::"]))
}

/// How many of the bundled addresses differ.
const DISTINCT_EXAMPLES: usize = 30_089;

/// Runs the command at the top of the README, and compares what it wrote with the plain truth.
fn first_command() -> Outcome {
    let mut dedup = cargo(&["run", "--release", "--quiet", "--", "dedup", "--stats"]);
    let output = dedup.arg("examples/urls.txt.gz").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status));
    }
    let lines: Vec<&[u8]> = output.stdout.split_inclusive(|&byte| byte == b'\n').collect();
    let distinct: HashSet<&[u8]> = lines.iter().copied().collect();
    if (lines.len(), distinct.len()) == (DISTINCT_EXAMPLES, DISTINCT_EXAMPLES) {
        Ok(())
    } else {
        let (kept, distinct) = (lines.len(), distinct.len());
        Err(format!("{kept} lines kept, {distinct} distinct; {DISTINCT_EXAMPLES} expected of both"))
    }
}
