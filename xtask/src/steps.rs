//! Runs commands one after the other, prints the duration of each, and stops at the first failure.

use std::process::Command;
use std::time::Instant;

use crate::Outcome;

/// A list of steps in progress.
#[derive(Default)]
pub struct Steps {
    passed: usize,
    skipped: Vec<String>,
    started: Option<Instant>,
}

impl Steps {
    /// Runs a command as the next step.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Outcome {
        let shown = show(command);
        self.check(name, || {
            let status = command.status().map_err(|error| format!("{shown}: {error}"))?;
            if status.success() {
                Ok(())
            } else {
                Err(format!("{status}; repeat it with\n  {shown}"))
            }
        })
    }

    /// Runs a command as the next step, and shows its output only if it fails.
    pub fn run_quietly(&mut self, name: &str, command: &mut Command) -> Outcome {
        let shown = show(command);
        self.check(name, || {
            let output = command.output().map_err(|error| format!("{shown}: {error}"))?;
            if output.status.success() {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}; repeat it with\n  {shown}\n{text}", output.status))
        })
    }

    /// Runs a function as the next step.
    pub fn check(&mut self, name: &str, work: impl FnOnce() -> Outcome) -> Outcome {
        println!("\n== {name}");
        let start = Instant::now();
        self.started.get_or_insert(start);
        work().map_err(|why| {
            format!("\nFAILED: {name}: {why}\n\n{} passed, 1 failed", self.passed)
        })?;
        self.passed += 1;
        println!("== {name}: passed in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    /// Skips a step. The reason is printed at the end.
    pub fn skip(&mut self, name: &str, reason: &str) {
        let line = format!("skipped: {name}: {reason}");
        println!("\n== {line}");
        self.skipped.push(line);
    }

    /// Prints a summary.
    pub fn end(self) {
        println!();
        for line in &self.skipped {
            println!("{line}");
        }
        let seconds = self.started.map_or(0.0, |start| start.elapsed().as_secs_f64());
        println!("took {seconds:.0} s\n\n{} passed, 0 failed", self.passed);
    }
}

/// Formats a command as a user would type it.
fn show(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        let value = value.unwrap_or_default().to_string_lossy();
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
        let mut steps = Steps::default();
        steps.run("nothing", &mut Command::new("true")).unwrap();
        let why = steps.run("lie", &mut Command::new("false")).unwrap_err();
        assert!(why.contains("FAILED: lie") && why.contains("\n  false\n"), "{why}");
        assert!(why.ends_with("\n1 passed, 1 failed"), "{why}");
    }
}
