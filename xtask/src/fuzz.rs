//! Fuzzes with the stable compiler. libFuzzer comes from the crate `libfuzzer-sys`. An LLVM pass of stable rustc adds
//! the coverage counters that guide libFuzzer.
//!
//! `cargo xtask soak` searches for new inputs, starting from the committed seeds and the corpus of earlier runs. `cargo
//! xtask test` runs the same targets without libFuzzer, in the test `mutations` of `tamis-fuzz`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{cargo, entries, root};

/// The name of a fuzz target, such as `records` or `format/guava`. The seeds of the target are in the folder
/// `fuzz/seeds/NAME`. A test of `tamis-fuzz` checks that each target has a folder.
pub struct Target(String);

impl Target {
    /// Returns the folder of this target inside the folder `fuzz/PARENT`.
    fn place(&self, parent: &str) -> PathBuf {
        root().join("fuzz").join(parent).join(&self.0)
    }

    /// Returns the name without the prefix `format/`.
    fn short_name(&self) -> &str {
        self.0.strip_prefix(FORMATS).unwrap_or(&self.0)
    }
}

/// The prefix of the targets that test formats.
const FORMATS: &str = "format/";

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.short_name())
    }
}

/// Returns all fuzz targets.
pub fn targets() -> Result<Vec<Target>, String> {
    let seeds = root().join("fuzz/seeds");
    let mut names = folders(&seeds)?;
    names.retain(|name| format!("{name}/") != FORMATS);
    names.extend(folders(&seeds.join(FORMATS))?.into_iter().map(|name| format!("{FORMATS}{name}")));
    Ok(names.into_iter().map(Target).collect())
}

/// Returns the sorted names of the folders inside `parent`.
fn folders(parent: &Path) -> Result<Vec<String>, String> {
    let mut paths = entries(parent)?;
    paths.retain(|path| path.is_dir());
    let names = paths.iter().filter_map(|path| path.file_name());
    Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
}

/// Returns the targets with these names. For a format's target, pass the name of the format without `format/`.
pub fn picked(names: &[&str]) -> Result<Vec<Target>, String> {
    let mut targets = targets()?;
    let is_there = |name: &&&str| targets.iter().any(|target| target.short_name() == **name);
    if let Some(unknown) = names.iter().find(|name| !is_there(name)) {
        let all: Vec<&str> = targets.iter().map(Target::short_name).collect();
        return Err(format!("there is no fuzz target {unknown}: there are {}", all.join(", ")));
    }
    targets.retain(|target| names.contains(&target.short_name()));
    Ok(targets)
}

/// The compiler flags that count control-flow edges and report the operands of comparisons to libFuzzer.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Returns the command that builds the fuzz program, which contains all targets.
pub fn build() -> Result<Command, String> {
    let mut build = cargo(&["build", "--quiet", "--profile", "fuzz", "-p", "tamis-fuzz"]);
    // With an explicit target triple, cargo compiles build scripts and derive macros without the counters.
    build.args(["--features", "libfuzzer", "--target", &triple()?, "--target-dir", "target/fuzz"]);
    build.env("RUSTFLAGS", COVERAGE);
    Ok(build)
}

/// Returns the target triple of the host, which rustc prints.
fn triple() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let triple = text.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

/// Returns the command that fuzzes one target for `seconds` seconds. Each run tries new inputs, and stores interesting
/// inputs in the corpus for the next run.
pub fn explore(target: &Target, seconds: u64) -> Result<Command, String> {
    let [artifacts, corpus] = ["artifacts", "corpus"].map(|parent| target.place(parent));
    for folder in [&artifacts, &corpus] {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let program = root().join("target/fuzz").join(triple()?).join("fuzz/tamis-fuzz");
    let mut command = Command::new(program);
    command
        .env("TAMIS_FUZZ_TARGET", &target.0)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        // libFuzzer reports an input as a failure if the input exceeds the time limit or the memory limit.
        .args(["-timeout=20", "-rss_limit_mb=1024", "-verbosity=0", "-print_final_stats=0"])
        .arg(corpus)
        .arg(target.place("seeds"))
        .current_dir(root());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_can_be_picked_by_a_name_of_its_own() {
        for target in targets().unwrap() {
            let picked = picked(&[target.short_name()]).unwrap();
            let names: Vec<&str> = picked.iter().map(|target| &*target.0).collect();
            assert_eq!(names, [target.0]);
        }
    }

    #[test]
    fn an_unknown_target_is_refused_with_those_there_are() {
        let Err(why) = picked(&["guava", "guawa"]) else { panic!("there is no guawa") };
        assert!(why.starts_with("there is no fuzz target guawa: "), "{why}");
        assert!(why.contains("tamis_file") && why.contains("rbloom"), "{why}");
    }
}
