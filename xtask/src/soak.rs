//! `cargo xtask soak`: the long version of the tests. The task runs every fuzz target for an hour.
//! The task also runs `dedup --state` and kills the process at random times. After all kills, the
//! output must contain exactly the expected lines. The task also runs the model tests of the
//! server's log and of the whole server.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::args::Args;
use crate::fuzz;
use crate::r#gen::{self, random::Random};
use crate::setup;
use crate::steps::Steps;
use crate::tools::{Outcome, cargo, root};

/// Runs each fuzz target for `--minutes` (60 by default). Runs the killed runs and each of the two
/// models for the same time. With `--target`, runs only the named targets.
pub fn run(words: &[&str]) -> Outcome {
    let mut args = Args::new(words);
    let minutes = minutes(args.number("--minutes")?)?;
    let seed = args.number("--seed")?.unwrap_or(1);
    let mut picked = Vec::new();
    while let Some(name) = args.value("--target")? {
        picked.push(name);
    }
    args.end()?;
    let is_whole = picked.is_empty();
    let targets = if is_whole { fuzz::targets()? } else { fuzz::picked(&picked)? };
    println!("{}", announcement(targets.len() as u64, is_whole, minutes));
    let steps = Steps::new(Duration::from_secs(minutes * 60 + 3 * 60 * 60));
    steps.check("set-up", setup::run)?;
    steps.run("build of the fuzz targets", &mut fuzz::build()?)?;
    if is_whole {
        // With a new seed, the property tests try new cases.
        let cases = new_seed();
        let mut tests = cargo(&["test", "--release", "--quiet", "--workspace"]);
        tests.env("PROPTEST_RNG_SEED", cases.to_string());
        steps.run(&format!("tests with PROPTEST_RNG_SEED={cases}"), &mut tests)?;
        // Tests that take minutes have the attribute `ignore`, so `cargo xtask test` skips these
        // tests.
        let mut long = cargo(&["test", "--release", "--quiet", "--workspace", "--", "--ignored"]);
        // `redis_cli::stand_in` is not a test. The tests of the pages call this function instead of
        // redis-cli.
        long.args(["--skip", "redis_cli::stand_in"]);
        steps.run("tests of minutes", &mut long)?;
        steps.run("build of the program", &mut cargo(&["build", "--release", "--quiet"]))?;
        let time = Duration::from_secs(minutes * 60);
        steps.check("killed runs of dedup --state", || killed_runs(time, seed))?;
        let log_model = ["tamis-server", "--lib", "nothing_promised_is_lost"];
        steps.run("model of the server's log", &mut model(log_model, time))?;
        let server_model = ["tamis-cli", "--test=integration", "a_server_that_restarts"];
        steps.run("model of the server", &mut model(server_model, time))?;
    }
    for target in &targets {
        steps.run(&format!("fuzz {target}"), &mut fuzz::explore(target, minutes * 60)?)?;
    }
    steps.end();
    Ok(())
}

/// Returns a seed that differs from the seeds of earlier runs.
fn new_seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("the clock is after 1970").as_micros() as u64
}

/// Returns the command of a model test. A model test searches for a case in which the server loses
/// data, with a new seed in each run. To repeat a failure, set `TAMIS_MODEL_SEED` to the seed in
/// the failure message.
fn model([package, target, test]: [&str; 3], time: Duration) -> Command {
    let mut model = cargo(&["test", "--release", "--quiet", "-p", package, target, "--", test]);
    model.env("TAMIS_MODEL_SECONDS", time.as_secs().to_string());
    model
}

/// Returns the duration of each part in minutes. Returns an error if the duration is out of range.
fn minutes(wanted: Option<u64>) -> Result<u64, String> {
    match wanted.unwrap_or(60) {
        minutes @ 1..=MAX_MINUTES => Ok(minutes),
        minutes => Err(format!("--minutes wants 1 to {MAX_MINUTES}, not {minutes}")),
    }
}

/// The maximum duration of each part, which is a week.
const MAX_MINUTES: u64 = 7 * 24 * 60;

/// Formats a message with the parts of the task and the total duration.
fn announcement(targets: u64, is_whole: bool, minutes: u64) -> String {
    let plural = if targets == 1 { "" } else { "s" };
    let (killed, before) = match is_whole {
        true => (", the killed runs and two models", "tests and builds"),
        false => ("", "builds"),
    };
    let all = (targets + 3 * u64::from(is_whole)) * minutes;
    let (hours, rest) = (all / 60, all % 60);
    format!(
        "{targets} fuzz target{plural}{killed}, {minutes} min each: {hours} h {rest} min in all, after some minutes of {before}"
    )
}

/// The number of input lines in each round.
const LINES: u64 = 2_000_000;

/// Runs rounds for the duration `time`. In each round, kills `dedup --state` repeatedly until the
/// run is complete.
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

/// Starts `dedup --state` again after each kill until the run is complete. Then compares the output
/// with the output of the reference implementation.
fn round(folder: &Path, random: &mut Random) -> Result<u64, String> {
    let explain = |error: std::io::Error| format!("{}: {error}", folder.display());
    let (input, output) = (folder.join("input.txt"), folder.join("output.txt"));
    let seed = random.next() >> 1;
    let output_of_gen = input.to_str().ok_or("the path of the project is not UTF-8")?;
    let urls = ["urls", "--lines", &LINES.to_string(), "--seed", &seed.to_string()];
    r#gen::run(&[&urls[..], &["-o", output_of_gen]].concat())?;
    let mut kills = 0;
    loop {
        let mut child = dedup(folder, &input, &output).spawn().map_err(explain)?;
        // The delay is shorter than most runs, so most runs are killed.
        std::thread::sleep(Duration::from_millis(random.below(900)));
        if child.try_wait().map_err(explain)?.is_none() {
            child.kill().map_err(explain)?;
            kills += 1;
        }
        let status = child.wait().map_err(explain)?;
        // `dedup` gives the output file the final name after the last write. So if the file exists,
        // the run was complete before the kill.
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
    command.args(["dedup", "--checkpoint", "8M", "--state"]).arg(folder.join("state"));
    command.arg("-o").arg(output).arg(input).stdin(Stdio::null());
    command
}

/// Returns the first occurrence of each line. This is the slow reference implementation of `dedup`.
fn first_occurrences(bytes: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| seen.insert(*line)).flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_all_is_said_before() {
        let all = "32 fuzz targets, the killed runs and two models, 60 min each: 35 h 0 min in all, after some minutes of tests and builds";
        assert_eq!(announcement(32, true, 60), all);
        let two = "2 fuzz targets, 45 min each: 1 h 30 min in all, after some minutes of builds";
        assert_eq!(announcement(2, false, 45), two);
    }

    #[test]
    fn an_hour_each_unless_said_otherwise_and_never_forever() {
        assert_eq!(minutes(None), Ok(60));
        assert_eq!(minutes(Some(1)), Ok(1));
        // libFuzzer would treat 0 as no time limit.
        assert!(minutes(Some(0)).is_err());
        assert!(minutes(Some(u64::MAX)).is_err());
    }
}
