//! `cargo xtask soak`: the long version of the tests. Fuzzing for hours, and runs of `dedup --state`
//! that are killed at random moments and must neither lose nor invent a line.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::r#gen::random::Random;
use crate::setup::{self, cargo};
use crate::steps::Steps;
use crate::{Outcome, fuzz, root};

/// Spends `--minutes`, an hour unless said otherwise.
pub fn run(words: &[&str]) -> Outcome {
    let mut args = Args::new(words);
    let minutes = args.number("--minutes")?.unwrap_or(60).max(1);
    let seed = args.number("--seed")?.unwrap_or(1);
    args.end()?;
    let mut steps = Steps::default();
    steps.check("set-up", setup::run)?;
    // The tests that take minutes are marked so, and left out of `cargo xtask test`.
    let mut long = cargo(&["test", "--release", "--quiet", "--workspace", "--", "--ignored"]);
    steps.run("tests of minutes", &mut long)?;
    steps.run("build of the program", &mut cargo(&["build", "--release", "--quiet"]))?;
    // A third for killed runs, the rest for the fuzz targets.
    let rounds = Duration::from_secs(minutes * 20);
    steps.check("killed runs of dedup --state", || killed_runs(rounds, seed))?;
    steps.run("build of the fuzz targets", &mut fuzz::build()?)?;
    let targets = fuzz::targets()?;
    let seconds = minutes * 40 / targets.len() as u64;
    for target in &targets {
        steps.run_quietly(&format!("fuzz {target}"), &mut fuzz::run(target, seconds)?)?;
    }
    steps.end();
    Ok(())
}

/// Lines in the input of a round.
const LINES: u64 = 2_000_000;

/// Plays rounds until the time is over, each a run of `dedup --state` that is killed again and again.
fn killed_runs(time: Duration, seed: u64) -> Outcome {
    let folder = root().join("target/soak");
    let fresh = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
    };
    let mut random = Random::new(seed);
    let start = Instant::now();
    let (mut rounds, mut kills) = (0, 0);
    while rounds == 0 || start.elapsed() < time {
        fresh()?;
        kills += round(&folder, &mut random)?;
        rounds += 1;
    }
    println!("{rounds} rounds, {kills} kills");
    let _ = fs::remove_dir_all(&folder);
    Ok(())
}

/// Runs `dedup --state` to its end through kills, and compares what it wrote with one exact pass.
fn round(folder: &Path, random: &mut Random) -> Result<u64, String> {
    let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
    let (input, output) = (folder.join("input.txt"), folder.join("output.txt"));
    let seed = random.next() >> 1;
    let status = cargo(&["xtask", "gen", "urls", "--lines", &LINES.to_string()])
        .args(["--seed", &seed.to_string(), "-o"])
        .arg(&input)
        .status()
        .map_err(explain)?;
    if !status.success() {
        return Err("the input could not be generated".to_owned());
    }
    let mut kills = 0;
    loop {
        let mut child = dedup(folder, &input, &output).spawn().map_err(explain)?;
        // Shorter than a run, mostly.
        std::thread::sleep(Duration::from_millis(random.below(900)));
        if child.try_wait().map_err(explain)?.is_none() {
            child.kill().map_err(explain)?;
            kills += 1;
        }
        let status = child.wait().map_err(explain)?;
        // The output gets its name when all of it is there; killed after that, the run was complete.
        if status.success() || output.exists() {
            break;
        }
        if status.code().is_some() {
            return Err(format!(
                "dedup --state ended with {status} after {kills} kills, seed {seed}"
            ));
        }
    }
    let found = fs::read(&output).map_err(explain)?;
    let expected = first_occurrences(&fs::read(&input).map_err(explain)?);
    if found == expected {
        Ok(kills)
    } else {
        let lines = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
        let (found, expected) = (lines(&found), lines(&expected));
        Err(format!("{found} lines instead of {expected} after {kills} kills, seed {seed}"))
    }
}

fn dedup(folder: &Path, input: &Path, output: &Path) -> Command {
    let program: PathBuf = root().join("target/release/tamis");
    let mut command = Command::new(program);
    command.arg("dedup").arg("--state").arg(folder.join("state")).args([
        "--checkpoint",
        "8M",
        "-o",
    ]);
    command.arg(output).arg(input).stdin(Stdio::null());
    command
}

/// The slow, obvious version.
fn first_occurrences(bytes: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| seen.insert(*line)).flatten().copied().collect()
}
