//! `cargo xtask bench`: installs the rival programs, builds the program and the crate
//! `tamis-bench`, and runs the benchmarks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::tools::{Outcome, cargo, debian_package, entries_with, root, works};

/// The Rust programs that the benchmarks compare with `tamis`.
const RIVALS: [&str; 2] = ["huniq", "runiq"];

/// The Python packages that the benchmarks compare with `tamis`, with all dependencies.
const PACKAGES: &str = include_str!("../../bench/originals/requirements.txt");

/// Runs the benchmarks with the arguments `args`.
pub fn run(args: &[&str]) -> Outcome {
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h")) {
        println!("{}", crate::USAGE);
        return Ok(());
    }
    if filter(args) == Some("python") {
        return bench_python(args);
    }
    succeed(&mut cargo(&["build", "--release", "--quiet"]))?;
    if wants_programs(args) {
        install_rivals();
    }
    // Many values of `--filter` select a case of batches, for example a size. Therefore the program is
    // always built. Both builds take seconds.
    build_batches()?;
    if wants(args, &["format", "bloom", "server", "module"]) {
        install_packages();
    }
    if wants(args, &["server", "module", "bitmaps"]) {
        if !works(&mut Command::new("redis-server")) {
            // Without Redis, the bench prints a message and skips the rows of the server.
            _ = debian_package("redis-server");
        }
        let modules = ["-p", "tamis-module", "-p", "tamis-bench-noop"];
        let module = succeed(cargo(&["build", "--release", "--quiet"]).args(modules));
        if module.is_err() {
            println!("the module needs libclang-dev: its rows are left out");
        }
    }
    if wants(args, &["guard"]) {
        install_proxies();
    }
    succeed(cargo(&["run", "--release", "--quiet", "-p", "tamis-bench", "--"]).args(args))?;
    if filter(args).is_none() { bench_python(args) } else { Ok(()) }
}

/// Runs the benchmark of the Python package, in an environment with the rival packages.
fn bench_python(args: &[&str]) -> Outcome {
    let crates = ["-p", "tamis-python", "-p", "tamis-bench-python"];
    succeed(cargo(&["build", "--release", "--quiet"]).args(crates))?;
    let release = root().join("target/release");
    let package = package_folder(&release)?;
    let python = python::environment("rivals/python-package")?;
    python::install(&python, &["-r", "bench/python/requirements.txt"])?;
    let mut bench = Command::new(python);
    bench.current_dir(root()).arg("bench/python/bench.py");
    bench.env("PYTHONPATH", package).env("TAMIS_BENCH_FLOOR", release.join("tamis-bench-python"));
    if args.contains(&"--quick") {
        bench.env("TAMIS_BENCH_QUICK", "1");
    }
    for (option, variable) in [("--rounds", "TAMIS_BENCH_ROUNDS"), ("--out", "TAMIS_BENCH_OUT")] {
        if let Some(value) = value_of(args, option) {
            bench.env(variable, value);
        }
    }
    let status = bench.status().map_err(|error| format!("bench/python/bench.py: {error}"))?;
    if status.success() { Ok(()) } else { Err("the bench failed: see above".to_owned()) }
}

/// Creates a folder with the Python package and its extension, and returns the folder.
fn package_folder(release: &Path) -> Result<PathBuf, String> {
    let fail = |error: io::Error| format!("target/bench-python: {error}");
    let folder = root().join("target/bench-python");
    let package = folder.join("tamis");
    fs::create_dir_all(&package).map_err(fail)?;
    for file in entries_with(&root().join("crates/tamis-python/python/tamis"), "py")? {
        let name = file.file_name().expect("a file has a name");
        fs::copy(&file, package.join(name)).map_err(fail)?;
    }
    fs::copy(release.join("lib_tamis.so"), package.join("_tamis.abi3.so")).map_err(fail)?;
    Ok(folder)
}

/// Tests whether the user selected cases of whole programs. A case is selected if the case name
/// contains the value of `--filter`, or if `--filter` is absent.
fn wants_programs(args: &[&str]) -> bool {
    let cases = ["dedup of 20 M URL lines", "ints of 100 M u32 as text"];
    filter(args).is_none_or(|filter| cases.iter().any(|case| case.contains(filter)))
}

/// Tests whether the value of `--filter` contains one of these words, or whether `--filter` is
/// absent.
fn wants(args: &[&str], words: &[&str]) -> bool {
    filter(args).is_none_or(|filter| words.iter().any(|word| filter.contains(word)))
}

/// Returns the value of `--filter`.
fn filter<'a>(args: &[&'a str]) -> Option<&'a str> {
    value_of(args, "--filter")
}

/// Returns the value of an option.
fn value_of<'a>(args: &[&'a str], option: &str) -> Option<&'a str> {
    args.iter().skip_while(|&&arg| arg != option).nth(1).copied()
}

/// Builds the program that measures batches, for any CPU and for this CPU.
fn build_batches() -> Outcome {
    let build = ["build", "--release", "--quiet", "-p", "tamis-bench-batches"];
    succeed(&mut cargo(&build))?;
    let mut native = cargo(&build);
    native.args(["--target-dir", "target/native"]).env("RUSTFLAGS", "-C target-cpu=native");
    succeed(&mut native)
}

/// Installs nginx and haproxy, the rivals of the guard, and wrk, the program that sends requests.
fn install_proxies() {
    for (program, package) in [("wrk", "wrk"), ("nginx", "nginx-light"), ("haproxy", "haproxy")] {
        // `wrk -v` prints the version but exits with an error. So the code only tests whether the
        // program starts.
        let is_here = Command::new(program).arg("-v").output().is_ok();
        if !is_here && debian_package(package).is_err() {
            println!("{program} could not be installed: its rows are left out");
        }
    }
}

/// Installs the rival programs into `target/rivals`. The benchmark skips the rows of missing
/// programs.
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

/// Installs the Python packages into `target/rivals` with one call of pip per package. If a package
/// has no build for this machine, pip still installs the other packages.
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
