//! Runs the project's tasks. The module doc of each task's file describes the task.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod clients;
mod console;
mod databases;
mod fuzz;
mod r#gen;
mod glibc;
mod java;
mod languages;
mod lines;
mod links;
mod npm;
mod package;
mod process;
mod proxies;
mod python;
mod release;
mod rustdoc;
mod sentences;
mod servers;
mod setup;
mod site;
mod soak;
mod steps;
mod test;
mod test_programs;
mod tools;
mod wheel;
mod zig;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK

  test            all of CI: formats, lints, tests, documentation, models, fuzz targets, the README
  setup           installs what the tests need (test does so too)
  soak [--minutes N] [--seed N] [--target NAME]...
                  the long version: N minutes (60) of each fuzz target and of runs killed at random
                  moments, or of the fuzz targets that are named alone
  wheel [--check] builds the Python package with the program: a wheel and a source distribution;
                  --check installs and tests both
  package [--check]
                  builds the packages of a release in target/packages: tar file, Debian, RPM, image, npm;
                  --check installs each package on a clean system and uses it
  site [--check]  builds the documentation site in target/site; --check checks the links, and opens
                  the site in Chromium
  release VERSION --dry-run
                  checks that a version can be released: versions, changelog, files and checksums;
                  prints the files, where they are uploaded, and the commands
  bench [--filter TEXT] [--quick] [--rounds N] [--out FOLDER]
                  measures Tamis beside its rivals and what memory can do
  languages       compares the English and the Chinese version of each page
  lines           prints how many lines of code and of tests each crate has
  sentences FOLDER [--count N] [--seed N]
                  draws sentences (200) from comments or pages, for a reader who judges them";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(folder) = std::env::var(rustdoc::FOLDER) {
        return rustdoc::run(&folder, &args);
    }
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.split_first() {
        Some((&"test", [])) => test::run(),
        Some((&"setup", [])) => setup::run(),
        Some((&"soak", rest)) => soak::run(rest),
        Some((&"wheel", rest)) => wheel::run(rest),
        Some((&"package", rest)) => package::run(rest),
        Some((&"site", rest)) => site::run(rest),
        Some((&"release", rest)) => release::run(rest),
        Some((&"bench", rest)) => bench::run(rest),
        Some((&"languages", [])) => languages::check(),
        Some((&"lines", [])) => lines::run(),
        Some((&"sentences", rest)) => sentences::run(rest),
        Some((&"gen", rest)) => r#gen::run(rest),
        _ => Err(format!("{USAGE}\n{}", r#gen::USAGE)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
