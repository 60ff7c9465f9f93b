//! Builds the test programs of the workspace, and runs each test program with a time limit. Clippy's compiler builds
//! the programs, so the build also checks the lints.
//!
//! This module starts a test program directly and not with cargo, for three reasons. Two programs can run at the same
//! time. If a program hangs, the error message names the tests that have not ended. The report contains the duration of
//! each test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::steps::Steps;
use crate::tools::{self, Outcome, cargo};

/// The packages and features of every test build. Cargo merges the features of all selected packages. So a command with
/// different packages would compile most dependencies again.
pub const SELECTION: [&str; 3] = [
    "--workspace",
    "--features",
    "tamis-fuzz/libfuzzer,tamis-redis/async-tls,tamis/rayon,tamis/serde,tamis/uuid",
];

/// The test programs that need servers or databases. `cargo test` without options skips these programs.
const ON_SERVERS: [&str; 6] =
    ["on_servers", "on_valkey", "on_proxies", "mysql", "postgres", "guard_on_databases"];

/// Returns the arguments that select all test targets, one list for each call of cargo. Two calls are necessary,
/// because cargo ignores named targets if `--all-targets` is present.
fn targets() -> [Vec<&'static str>; 2] {
    [vec!["--all-targets"], ON_SERVERS.iter().flat_map(|target| ["--test", *target]).collect()]
}

/// The time limit of a test program. On two old CPU cores, the slowest program took 3 minutes. With another load on
/// both cores, the same program took 15 minutes.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// A test program that cargo has built.
pub struct TestProgram {
    package: String,
    /// The arguments that select this program in `cargo test -p PACKAGE`, such as `--test integration`.
    target: String,
    executable: PathBuf,
    /// The folder of the package. Cargo also runs test programs in this folder.
    folder: PathBuf,
}

/// Returns a cargo command that compiles the workspace with clippy's compiler, which is rustc with more lints. A
/// separate lint step would take half of the time of the build. Without clippy, the command checks only the lints of
/// rustc.
///
/// Cargo stores the results of both compilers separately. So create every command that reuses the results of [`build`]
/// with this function.
pub fn cargo_with_lints(words: &[&str]) -> Command {
    let mut command = cargo(words);
    if has_clippy() {
        command.env("RUSTC_WORKSPACE_WRAPPER", CLIPPY);
    }
    command
}

/// The program name of clippy's compiler.
const CLIPPY: &str = "clippy-driver";

/// Tests whether clippy is installed.
pub fn has_clippy() -> bool {
    tools::works(&mut Command::new(CLIPPY))
}

/// Builds all test programs, and the programs and the module that the tests start.
///
/// # Errors
///
/// Returns the errors and the warnings of the compiler.
pub fn build(steps: &Steps) -> Result<Vec<TestProgram>, String> {
    let mut programs = Vec::new();
    for targets in targets() {
        // `cargo test --no-run` does not build the module. A separate call without test targets would build the module
        // with fewer features, and would compile most packages again. So the command is `cargo build`.
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
        // A quiet build without warnings prints nothing. If a crate is up to date, cargo prints the warnings of the
        // earlier build again.
        if !diagnostics.is_empty() {
            return Err(format!("warnings; repeat them with\n  cargo clippy\n{diagnostics}"));
        }
    }
    Ok(programs)
}

impl TestProgram {
    /// Parses a JSON message of cargo. Returns `None` if the message is not about a test program.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"].as_bool()?;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let name = message["target"]["name"].as_str()?;
        let kind = message["target"]["kind"][0].as_str()?;
        // Cargo also builds a program with `test = false` as a test program. This code skips these programs, except the
        // tests with servers, which also have `test = false`.
        let has_tests = kind == "test" || message["target"]["test"].as_bool()?;
        if !has_tests {
            return None;
        }
        let target = match kind {
            kind @ ("test" | "example" | "bin" | "bench") => format!("--{kind} {name}"),
            _ => "--lib".to_owned(),
        };
        // The package id ends with `#NAME@VERSION`. If the folder has the same name as the package, the id ends with
        // `#VERSION`.
        let id = message["package_id"].as_str()?.rsplit('#').next()?;
        let package = match id.split_once('@') {
            Some((package, _)) => package.to_owned(),
            None => folder.file_name()?.to_str()?.to_owned(),
        };
        Some(Self { package, target, executable: executable.into(), folder: folder.into() })
    }

    /// Returns the package name and the target name, such as `tamis-cli integration`.
    pub fn name(&self) -> String {
        format!("{} {}", self.package, self.target.rsplit([' ', '-']).next().unwrap_or_default())
    }

    /// Tests whether this program is the test target `target`.
    pub fn is(&self, target: &str) -> bool {
        self.target.strip_prefix("--test ") == Some(target)
    }

    /// Tests whether this program needs servers or databases.
    pub fn needs_servers(&self) -> bool {
        ON_SERVERS.iter().any(|target| self.is(target))
    }

    /// Runs the tests whose names contain at least one of the `filters`. Without filters, runs all tests.
    ///
    /// # Errors
    ///
    /// Returns the output of all failed tests, and the names of the tests that had not ended within the time limit.
    pub fn run(&self, steps: &Steps, filters: &[&str]) -> Outcome {
        steps.check(&self.name(), || {
            let mut command = Command::new(&self.executable);
            command.args(filters).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
            // With a fixed seed, the property tests try the same cases in each run. `cargo xtask soak` tries new cases.
            command.env("PROPTEST_RNG_SEED", "1");
            command.env("TEST_MODULE", tools::module());
            // The JSON report contains the durations of tests. The report is an unstable option, and `RUSTC_BOOTSTRAP`
            // allows unstable options.
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

/// The results that a test program has reported so far.
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

    /// Formats the output of failed tests, the names of tests that have not ended, and the other lines.
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
        // The next messages are about a test with servers, a program with `test = false`, a program built without
        // tests, and a finished build.
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
