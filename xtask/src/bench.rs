//! `cargo xtask bench`: builds the program and the `bench` crate, rivals and all, and runs it.

use std::process::Command;

use crate::setup::{cargo, debian_package, works};
use crate::{Outcome, python, root};

/// Programs written in Rust that are measured beside `tamis`.
const RIVALS: [&str; 2] = ["huniq", "runiq"];

/// Packages of Python that are measured beside `tamis`, with what they need.
const PACKAGES: &str = include_str!("../../bench/originals/requirements.txt");

/// Runs the benches; `args` are theirs.
pub fn run(args: &[&str]) -> Outcome {
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h")) {
        println!("{}", crate::USAGE);
        return Ok(());
    }
    succeed(&mut cargo(&["build", "--release", "--quiet"]))?;
    if wants_programs(args) {
        install_rivals();
    }
    if wants_packages(args) {
        install_packages();
    }
    if wants_server(args) && !works(&mut Command::new("redis-server")) {
        // Without it the server's rows are left out, with a word.
        _ = debian_package("redis-server");
    }
    let mut bench = cargo(&["run", "--release", "--quiet", "--manifest-path", "bench/Cargo.toml"]);
    // One folder for all that is built.
    succeed(bench.args(["--target-dir", "target", "--"]).args(args))
}

/// Tells whether cases of whole programs are asked for: `--filter` is part of their names, or absent.
fn wants_programs(args: &[&str]) -> bool {
    let filter = args.iter().skip_while(|&&arg| arg != "--filter").nth(1);
    filter.is_none_or(|filter| {
        ["dedup of 20 M URL lines", "ints of 100 M u32 as text"]
            .iter()
            .any(|case| case.contains(filter))
    })
}

/// Tells whether cases of the server are asked for.
fn wants_server(args: &[&str]) -> bool {
    let filter = args.iter().skip_while(|&&arg| arg != "--filter").nth(1);
    filter.is_none_or(|filter| filter.contains("server"))
}

/// Tells whether cases with originals from Python's packages are asked for.
fn wants_packages(args: &[&str]) -> bool {
    let filter = args.iter().skip_while(|&&arg| arg != "--filter").nth(1);
    filter.is_none_or(|filter| ["format", "bloom", "server"].iter().any(|it| filter.contains(it)))
}

/// Installs the programs among the rivals into `target/rivals`; without them their rows are left out.
fn install_rivals() {
    for rival in RIVALS {
        if root().join("target/rivals/bin").join(rival).exists() {
            continue;
        }
        println!("installing {rival} into target/rivals");
        let mut install =
            cargo(&["install", "--quiet", "--locked", "--root", "target/rivals", rival]);
        if succeed(install.args(["--target-dir", "target/rivals/build"])).is_err() {
            println!("{rival} could not be installed: its rows are left out");
        }
    }
}

/// Installs Python's packages into `target/rivals`, each by itself: where one has no build for the machine, the others do.
fn install_packages() {
    let python = match python::environment("rivals/python") {
        Ok(python) => python,
        Err(why) => return println!("{why}: rows of Python's packages are left out"),
    };
    for package in PACKAGES.lines() {
        if let Err(why) = python::install(&python, &[package]) {
            println!("{why}: its rows are left out");
        }
    }
}

fn succeed(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the bench failed: see above".to_owned()) }
}
