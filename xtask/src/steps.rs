//! Runs the steps of a task in one or two lanes, and stops at the first failure. At the end, prints
//! the duration of each step and the slowest tests.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::process::{self, Stopped};
use crate::tools::Outcome;

/// The maximum number of tests in the list of the slowest tests.
const SLOWEST: usize = 10;

/// The state of a running task. The lanes share this state.
pub struct Steps {
    started: Instant,
    /// The time limit of each command.
    limit: Duration,
    /// Whether a step has failed. After a failure, the steps of the other lane end early.
    failed: AtomicBool,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    /// The steps that have passed, each with its duration and the CPU time of its commands.
    passed: Vec<Row>,
    skipped: Vec<String>,
    /// The duration and the name of each of the slowest tests.
    tests: Vec<Row>,
}

/// The name of a step or a test, and its durations.
pub type Row = (String, Vec<Duration>);

impl Steps {
    /// Starts a task without steps. `limit` is the time limit of each command.
    pub fn new(limit: Duration) -> Self {
        let failed = AtomicBool::new(false);
        Self { started: Instant::now(), limit, failed, records: Mutex::default() }
    }

    /// Runs a command as the next step. Prints the output of the command only if the command fails.
    ///
    /// # Errors
    ///
    /// Returns a message with the output if the command fails or exceeds the time limit.
    pub fn run(&self, name: &str, command: &mut Command) -> Outcome {
        self.check(name, || self.finish_quietly(command)).map(drop)
    }

    /// Runs a command as a part of a step, and returns the output.
    ///
    /// # Errors
    ///
    /// Returns a message with the output if the command fails or exceeds the time limit.
    pub fn finish_quietly(&self, command: &mut Command) -> Result<String, String> {
        let mut output = String::new();
        let ended = self.finish(command, |line| {
            output.push_str(line);
            output.push('\n');
        });
        match ended {
            Ok(()) => Ok(output),
            Err(why) => Err(format!("{why}\n{output}")),
        }
    }

    /// Runs a command and passes each line of the output to `on_line`.
    ///
    /// # Errors
    ///
    /// Returns the reason for the failure, and the command that repeats the step.
    pub fn finish(&self, command: &mut Command, on_line: impl FnMut(&str)) -> Outcome {
        let why = match process::run(command, self.limit, &self.failed, on_line) {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status.to_string(),
            Err(stopped) => stopped.to_string(),
        };
        Err(format!("{why}; repeat it with\n  {}", show(command)))
    }

    /// Runs a function as the next step.
    ///
    /// # Errors
    ///
    /// Returns the error of the function. Returns an error without running the function if another
    /// lane has failed.
    pub fn check<T>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Stopped::Cancelled.to_string());
        }
        println!("== {name}");
        let (start, cpu_before) = (Instant::now(), process::cpu_time());
        let made = work().map_err(|why| {
            let passed = self.records().passed.len();
            format!("\nFAILED: {name}: {why}\n\n{passed} passed, 1 failed")
        })?;
        let times = vec![start.elapsed(), process::cpu_time() - cpu_before];
        println!("== {name}: passed in {:.1} s", times[0].as_secs_f64());
        self.records().passed.push((name.to_owned(), times));
        Ok(made)
    }

    /// Skips a step. [`end`](Self::end) prints the reason again.
    pub fn skip(&self, name: &str, reason: &str) {
        let line = format!("skipped: {name}: {reason}");
        println!("== {line}");
        self.records().skipped.push(line);
    }

    /// Records the durations of tests for the list of the slowest tests.
    pub fn record_tests(&self, tests: impl IntoIterator<Item = Row>) {
        let mut records = self.records();
        records.tests.extend(tests);
        records.tests.sort_by(|one, other| other.1.cmp(&one.1));
        records.tests.truncate(SLOWEST);
    }

    /// Runs two lanes of steps at the same time. If one lane fails, the other lane ends early.
    ///
    /// # Errors
    ///
    /// Returns the error of the lane that failed first.
    pub fn lanes(
        &self,
        one: impl FnOnce() -> Outcome + Send,
        other: impl FnOnce() -> Outcome + Send,
    ) -> Outcome {
        let lane = |outcome: Outcome| match outcome {
            // If the other lane failed first, this lane returns no error, because the user needs
            // only the first error.
            Err(why) if !self.failed.swap(true, Ordering::Relaxed) => Some(why),
            _ => None,
        };
        let failures = std::thread::scope(|scope| {
            let one = scope.spawn(|| lane(one()));
            let other = lane(other());
            [one.join().expect("a lane does not panic"), other]
        });
        failures.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// Returns the flag that is true after a failed step.
    pub fn failed(&self) -> &AtomicBool {
        &self.failed
    }

    /// Prints a summary of the steps, the slowest tests and the skipped steps.
    pub fn end(self) {
        let records = self.records();
        println!("\n{}", table("step", &["seconds", "CPU"], &records.passed));
        if !records.tests.is_empty() {
            println!("{}", table("slowest tests", &["seconds"], &records.tests));
        }
        for line in &records.skipped {
            println!("{line}");
        }
        let seconds = self.started.elapsed().as_secs_f64();
        println!("took {seconds:.0} s\n\n{} passed, 0 failed", records.passed.len());
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Formats a table of durations in seconds, with a row for each name and a column for each heading.
fn table(title: &str, headings: &[&str], rows: &[Row]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).chain([title.len()]).max().unwrap_or(0);
    let mut text = format!("{title:width$}");
    headings.iter().for_each(|heading| text.push_str(&format!("  {heading:>7}")));
    for (name, times) in rows {
        text.push_str(&format!("\n{name:width$}"));
        times.iter().for_each(|time| text.push_str(&format!("  {:7.1}", time.as_secs_f64())));
    }
    text.push('\n');
    text
}

/// Formats a command so that a user can copy the command into a shell.
fn show(command: &Command) -> String {
    let mut words = Vec::new();
    // A variable that the command removes has no value and is not shown.
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    for (name, value) in set {
        let value = value.to_string_lossy();
        words.push(format!("{}='{value}'", name.to_string_lossy()));
    }
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word = word.to_string_lossy();
        let word = if word == env!("CARGO") { "cargo".into() } else { word };
        words.push(if word.contains([' ', '$']) { format!("'{word}'") } else { word.into_owned() });
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "a b"]).env("RUSTFLAGS", "--cfg loom");
        assert_eq!(show(&command), "RUSTFLAGS='--cfg loom' cargo test 'a b'");
    }

    #[test]
    fn a_failed_step_ends_the_list_with_the_command_to_repeat() {
        let steps = Steps::new(Duration::from_secs(60));
        steps.run("nothing", &mut Command::new("true")).unwrap();
        let why = steps.run("lie", &mut Command::new("false")).unwrap_err();
        assert!(why.contains("FAILED: lie") && why.contains("\n  false\n"), "{why}");
        assert!(why.ends_with("\n1 passed, 1 failed"), "{why}");
    }

    #[test]
    fn a_failure_of_one_lane_ends_the_other_and_is_the_one_shown() {
        let steps = Steps::new(Duration::from_secs(60));
        let why = steps.lanes(
            || steps.run("long", Command::new("sleep").arg("1000")),
            || steps.run("lie", &mut Command::new("false")),
        );
        assert!(why.unwrap_err().contains("FAILED: lie"));
        assert!(steps.run("later", &mut Command::new("true")).is_err());
    }

    #[test]
    fn the_table_is_aligned() {
        let (long, short) = (Duration::from_millis(1234), Duration::ZERO);
        let text = table("step", &["seconds", "CPU"], &[("a".to_owned(), vec![long, short])]);
        assert_eq!(text, "step  seconds      CPU\na         1.2      0.0\n");
    }
}
