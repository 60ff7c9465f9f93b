//! Fuzzing with the stable compiler. libFuzzer comes from its crate, and an LLVM pass that stable
//! rustc can run adds the coverage counters that guide it. `cargo fuzz` works too where it is
//! installed.
//!
//! `cargo xtask test` makes a fixed number of runs from a fixed seed, so that the result is the
//! same on every machine. `cargo xtask soak` continues at random from the stored corpus.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;
use crate::setup::cargo;

/// Every target in `fuzz/fuzz_targets` except `format`, which has one target for each format.
const TARGETS: [&str; 10] = [
    "tamis_file",
    "records",
    "key",
    "integers",
    "plan",
    "resp",
    "commands",
    "guard_delta",
    "guard_snapshot",
    "orc_file",
];

/// A fuzz program, and its format if it takes one.
pub struct Target {
    program: &'static str,
    format: Option<String>,
}

impl Target {
    /// Returns the name that selects the target: that of its format, or of its program.
    fn name(&self) -> &str {
        self.format.as_deref().unwrap_or(self.program)
    }

    /// Returns the folder of the target inside a folder of `fuzz`.
    fn place(&self, parent: &str) -> PathBuf {
        let folder = root().join("fuzz").join(parent).join(self.program);
        self.format.iter().fold(folder, |folder, format| folder.join(format))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.format {
            Some(format) => write!(f, "{} {format}", self.program),
            None => f.write_str(self.program),
        }
    }
}

/// Returns every target. The format targets come from their seed folders, which contain golden
/// files of each format (a test of `tamis-formats` keeps them complete).
pub fn targets() -> Result<Vec<Target>, String> {
    let mut targets: Vec<Target> = TARGETS.map(|program| Target { program, format: None }).into();
    let seeds = root().join("fuzz/seeds/format");
    let failed = |error: std::io::Error| format!("{}: {error}", seeds.display());
    let mut formats = Vec::new();
    for entry in std::fs::read_dir(&seeds).map_err(failed)? {
        formats.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    formats.sort();
    targets.extend(
        formats.into_iter().map(|format| Target { program: "format", format: Some(format) }),
    );
    Ok(targets)
}

/// Returns the targets with these names.
pub fn picked(names: &[&str]) -> Result<Vec<Target>, String> {
    let mut targets = targets()?;
    let is_there = |name: &&&str| targets.iter().any(|target| target.name() == **name);
    if let Some(unknown) = names.iter().find(|name| !is_there(name)) {
        let all: Vec<&str> = targets.iter().map(Target::name).collect();
        return Err(format!("there is no fuzz target {unknown}: there are {}", all.join(", ")));
    }
    targets.retain(|target| names.contains(&target.name()));
    Ok(targets)
}

/// Counts edges, and reports the operands of comparisons to libFuzzer.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Returns the command that builds every target.
pub fn build() -> Result<Command, String> {
    let mut build = cargo(&["build", "--quiet", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    // Naming the host's triple keeps the counters out of build scripts and derive macros.
    build.args(["--target", &triple()?, "--target-dir", "target/fuzz"]).env("RUSTFLAGS", COVERAGE);
    Ok(build)
}

/// Returns the host's triple, as rustc prints it.
fn triple() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let triple = text.lines().find_map(|line| line.strip_prefix("host: "));
    triple.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".to_owned())
}

/// The number of inputs that [`check`] runs a target with. 2,000 of each target took 8 s in all.
const RUNS: u64 = 5_000;

/// Returns the command that runs one target with the committed seeds and a fixed number of
/// mutations of them, always the same. It writes only an input that fails.
pub fn check(target: &Target) -> Result<Command, String> {
    let mut command = command(target)?;
    command.args(["-seed=1", &format!("-runs={RUNS}")]);
    // Sorted by name, because the order in a folder differs between file systems.
    let seeds = files(&target.place("seeds"))?;
    command.arg(format!("-seed_inputs={}", seeds.join(",")));
    Ok(command)
}

/// Returns the command that runs one target for `seconds`, each time with other inputs. The corpus
/// is kept for the next run.
pub fn explore(target: &Target, seconds: u64) -> Result<Command, String> {
    let mut command = command(target)?;
    command.arg(format!("-max_total_time={seconds}"));
    let corpus = target.place("corpus");
    make_folder(&corpus)?;
    command.arg(corpus).arg(target.place("seeds"));
    Ok(command)
}

/// Returns the common part of both commands.
fn command(target: &Target) -> Result<Command, String> {
    let artifacts = target.place("artifacts");
    make_folder(&artifacts)?;
    let program = root().join("target/fuzz").join(triple()?).join("release").join(target.program);
    let mut command = Command::new(program);
    command
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        // An input that exceeds the limit of time or memory counts as a finding.
        .args(["-timeout=20", "-rss_limit_mb=1024", "-verbosity=0", "-print_final_stats=0"])
        .current_dir(root());
    if let Some(format) = &target.format {
        command.env("TAMIS_FORMAT", format);
    }
    Ok(command)
}

fn make_folder(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Returns the paths of a folder's files from the root of the project, sorted.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let path = path.strip_prefix(root()).expect("in the project");
        files.push(path.display().to_string());
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_can_be_picked_by_a_name_of_its_own() {
        for target in targets().unwrap() {
            let picked = picked(&[target.name()]).unwrap();
            let shown: Vec<String> = picked.iter().map(Target::to_string).collect();
            assert_eq!(shown, [target.to_string()]);
        }
    }

    #[test]
    fn every_target_has_seeds() {
        for target in targets().unwrap() {
            let seeds = target.place("seeds");
            assert!(files(&seeds).is_ok_and(|seeds| !seeds.is_empty()), "{}", seeds.display());
        }
    }

    #[test]
    fn a_check_has_a_fixed_seed_and_writes_to_no_corpus() {
        for target in targets().unwrap() {
            let [one, other] = [(); 2].map(|()| format!("{:?}", check(&target).unwrap()));
            assert_eq!(one, other);
            assert!(one.contains("-seed=1") && one.contains("-runs="), "{one}");
            assert!(!one.contains("fuzz/corpus") && !one.contains("max_total_time"), "{one}");
            // libFuzzer would write to a folder.
            let words = check(&target).unwrap();
            assert!(words.get_args().all(|word| word.to_string_lossy().starts_with('-')), "{one}");
        }
    }

    #[test]
    fn an_unknown_target_is_refused_with_those_there_are() {
        let Err(why) = picked(&["guava", "guawa"]) else { panic!("there is no guawa") };
        assert!(why.starts_with("there is no fuzz target guawa: "), "{why}");
        assert!(why.contains("tamis_file") && why.contains("rbloom"), "{why}");
    }
}
