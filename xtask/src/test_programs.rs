//! Builds the test programs of the workspace with one call of cargo, and runs each within a time
//! limit. Clippy's compiler builds them, so that the build is also the lint.
//!
//! A test program is run directly, not by cargo: so two programs can run at the same time, a
//! program that hangs is killed with the names of the tests that have not ended, and the duration
//! of each test is known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::steps::Steps;
use crate::tools::{self, Outcome, cargo};

/// The packages and features of every build of the tests. Cargo unites the features of the packages
/// that a command selects: with other packages, it would compile most dependencies again.
pub const SELECTION: [&str; 3] = [
    "--workspace",
    "--features",
    "tamis-fuzz/libfuzzer,tamis-redis/async-tls,tamis/rayon,tamis/serde,tamis/uuid",
];

/// The test programs that need servers or databases. A plain `cargo test` leaves them out.
const ON_SERVERS: [&str; 5] =
    ["on_servers", "on_valkey", "mysql", "postgres", "guard_on_databases"];

/// Returns the words that select all targets of the tests, one list for each call of cargo: a call
/// with `--all-targets` ignores the targets that are named.
fn targets() -> [Vec<&'static str>; 2] {
    [vec!["--all-targets"], ON_SERVERS.iter().flat_map(|target| ["--test", *target]).collect()]
}

/// The longest time that a test program may take. The slowest one took 15 minutes on two old cores
/// while another load used both, and three minutes without that load.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A test program that cargo has built.
pub struct TestProgram {
    package: String,
    /// The words that select it in `cargo test -p PACKAGE`, such as `--test integration`.
    target: String,
    executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    folder: PathBuf,
}

/// Returns a command of cargo that compiles the packages of the workspace with clippy's compiler: rustc
/// with more lints. A check of its own would take half as long as the build. Without clippy, the
/// command has only the lints of rustc.
///
/// Cargo keeps the results of both compilers apart. So every command that uses the results of
/// [`build`] must be made by this function.
pub fn cargo_with_lints(words: &[&str]) -> Command {
    let mut command = cargo(words);
    if has_clippy() {
        command.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY);
    }
    command
}

/// Clippy's compiler.
const CLIPPY: &str = "clippy-driver";

/// Tests whether clippy is installed.
pub fn has_clippy() -> bool {
    tools::works(&mut Command::new(CLIPPY))
}

/// Builds all test programs, and the programs and the module that they start.
///
/// # Errors
///
/// Returns the errors and the warnings of the compiler.
pub fn build(steps: &Steps) -> Result<Vec<TestProgram>, String> {
    let mut programs = Vec::new();
    for targets in targets() {
        // Not `cargo test --no-run`, which does not make the module. Another call without test
        // targets would make it, but with fewer features, and compile most packages again.
        let mut build = cargo_with_lints(&["build", "--quiet"]);
        build.args(["--message-format", "json-render-diagnostics"]).args(SELECTION).args(targets);
        let mut diagnostics = String::new();
        let ended = steps.finish(&mut build, |line| {
            if line.starts_with('{') {
                programs.extend(TestProgram::from_message(line));
            } else {
                diagnostics.push_str(line);
                diagnostics.push('\n');
            }
        });
        ended.map_err(|why| format!("{why}\n{diagnostics}"))?;
        // A quiet build without warnings prints nothing. Cargo prints the warnings of an earlier build
        // again.
        if !diagnostics.is_empty() {
            return Err(format!("warnings; repeat them with\n  cargo clippy\n{diagnostics}"));
        }
    }
    Ok(programs)
}

impl TestProgram {
    /// Reads a message of cargo about something that it has built.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"].as_bool()?;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let name = message["target"]["name"].as_str()?;
        let kind = message["target"]["kind"][0].as_str()?;
        // Cargo also builds a program with `test = false` as a test program. The tests with servers have
        // this option, too.
        let has_tests = kind == "test" || message["target"]["test"].as_bool()?;
        if !has_tests {
            return None;
        }
        let target = match kind {
            kind @ ("test" | "example" | "bin" | "bench") => format!("--{kind} {name}"),
            _ => "--lib".to_owned(),
        };
        // The id ends with `#NAME@VERSION`, or with `#VERSION` if the folder has the name of the package.
        let id = message["package_id"].as_str()?.rsplit('#').next()?;
        let package = match id.split_once('@') {
            Some((package, _)) => package.to_owned(),
            None => folder.file_name()?.to_str()?.to_owned(),
        };
        Some(Self { package, target, executable: executable.into(), folder: folder.into() })
    }

    /// Returns the package and the name of the target, such as `tamis-cli integration`.
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target.rsplit([' ', '-']).next().unwrap_or_default())
    }

    /// Tests whether this is the program of the test target `target`.
    pub fn is(&self, target: &str) -> bool {
        self.target.strip_prefix("--test ") == Some(target)
    }

    /// Tests whether the tests need servers or databases.
    pub fn needs_servers(&self) -> bool {
        ON_SERVERS.iter().any(|target| self.is(target))
    }

    /// Runs the tests whose names contain one of the `filters`, or all tests without a filter.
    ///
    /// # Errors
    ///
    /// Returns the output of the tests that failed, or the names of the tests that had not ended
    /// within the limit.
    pub fn run(&self, steps: &Steps, filters: &[&str]) -> Outcome {
        steps.check(&self.name(), || {
            let mut command = Command::new(&self.executable);
            command.args(filters).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
            // The property tests try the same cases each time. `cargo xtask soak` tries new ones.
            command.env("PROPTEST_RNG_SEED", "1");
            command.env("TAMIS_MODULE", tools::module());
            // The durations of tests are in the JSON report. It is an unstable option, which this
            // variable admits.
            command.args(["-Zunstable-options", "--format", "json", "--report-time"]);
            command.env("RUSTC_BOOTSTRAP", "1");
            let mut report = Report::default();
            let status =
                crate::process::run(&mut command, LIMIT, steps.failed(), |line| report.add(line));
            let failure = match status {
                Ok(status) if status.success() && report.is_complete => {
                    let name = self.name();
                    let times = report.times.into_iter();
                    steps.record_tests(
                        times.map(|(test, time)| (format!("{name} {test}"), vec![time])),
                    );
                    return Ok(());
                }
                Ok(status) => status.to_string(),
                Err(stopped) => stopped.to_string(),
            };
            let repeat = format!("cargo test -p {} {}", self.package, self.target);
            Err(format!("{failure}; repeat it with\n  {repeat}\n{}", report.failures()))
        })
    }
}

/// What a test program has reported so far.
#[derive(Default)]
struct Report {
    running: BTreeSet<String>,
    times: Vec<(String, Duration)>,
    /// The output of each test that failed.
    failed: Vec<String>,
    /// Lines that are not part of the report, such as the message of an abort.
    others: Vec<String>,
    is_complete: bool,
}

impl Report {
    fn add(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            return self.others.push(line.to_owned());
        };
        let name = event["name"].as_str().unwrap_or_default();
        match (event["type"].as_str(), event["event"].as_str()) {
            (Some("suite"), Some("ok" | "failed")) => self.is_complete = true,
            (Some("test"), Some("started")) => _ = self.running.insert(name.to_owned()),
            (Some("test"), Some("ok" | "failed" | "ignored")) => {
                self.running.remove(name);
                let seconds = event["exec_time"].as_f64().unwrap_or(0.0);
                self.times.push((name.to_owned(), Duration::from_secs_f64(seconds)));
                if event["event"] == "failed" {
                    let output = event["stdout"].as_str().unwrap_or_default();
                    self.failed.push(format!("test {name} failed\n{output}"));
                }
            }
            _ => {}
        }
    }

    /// Formats the failed tests, the tests that have not ended, and the other lines.
    fn failures(&self) -> String {
        let running = self.running.iter().map(|name| format!("test {name} had not ended"));
        let lines: Vec<String> =
            self.failed.iter().cloned().chain(running).chain(self.others.iter().cloned()).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_about_a_test_names_package_and_target() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/tamis-cli/Cargo.toml",
            "package_id":"path+file:///p/crates/tamis-cli#0.1.0",
            "target":{"kind":["test"],"name":"integration","test":true},"profile":{"test":true},"executable":"/b/i-1"}"#;
        let program = TestProgram::from_message(message).unwrap();
        assert_eq!(program.name(), "tamis-cli integration");
        assert!(program.is("integration") && !program.is("memory"));
        assert_eq!(program.folder, Path::new("/p/crates/tamis-cli"));
        let library = message.replace(r#"["test"]"#, r#"["lib"]"#);
        assert_eq!(TestProgram::from_message(&library).unwrap().name(), "tamis-cli lib");
        let other_folder = message.replace("tamis-cli#0.1.0", "fuzz#tamis-fuzz@0.1.0");
        let program = TestProgram::from_message(&other_folder).unwrap();
        assert_eq!(program.name(), "tamis-fuzz integration");
        // A test with servers, a program with `test = false`, a program that is not a test program, and
        // another message.
        let on_servers = message.replace(r#","test":true"#, r#","test":false"#);
        assert_eq!(TestProgram::from_message(&on_servers).unwrap().name(), "tamis-cli integration");
        let without_tests = on_servers.replace(r#"["test"]"#, r#"["bin"]"#);
        assert!(TestProgram::from_message(&without_tests).is_none());
        let program = message.replace(r#"{"test":true}"#, r#"{"test":false}"#);
        assert!(TestProgram::from_message(&program).is_none());
        assert!(TestProgram::from_message(r#"{"reason":"build-finished"}"#).is_none());
    }

    #[test]
    fn a_report_names_failed_and_hanging_tests() {
        let mut report = Report::default();
        for line in [
            r#"{ "type": "suite", "event": "started", "test_count": 3 }"#,
            r#"{ "type": "test", "event": "started", "name": "good" }"#,
            r#"{ "type": "test", "event": "started", "name": "bad" }"#,
            r#"{ "type": "test", "event": "started", "name": "endless" }"#,
            r#"{ "type": "test", "name": "good", "event": "ok", "exec_time": 1.5 }"#,
            r#"{ "type": "test", "name": "bad", "event": "failed", "exec_time": 0.1, "stdout": "it broke\n" }"#,
            "memory allocation failed",
        ] {
            report.add(line);
        }
        assert!(!report.is_complete);
        assert_eq!(report.times[0], ("good".to_owned(), Duration::from_millis(1500)));
        let text = report.failures();
        assert_eq!(
            text,
            "test bad failed\nit broke\n\ntest endless had not ended\nmemory allocation failed"
        );
        report.add(r#"{ "type": "suite", "event": "failed", "passed": 1, "failed": 1 }"#);
        assert!(report.is_complete);
    }
}
