//! `tamis guard --demo` as a program.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tamis_testing::{CommandExt as _, wait_until};

use crate::http::get;
use crate::program::{Folder, tamis};

/// Returns the command of a demo that keeps its files below `folder`.
fn demo(folder: &Path, options: &str) -> Command {
    let mut command = tamis(&format!("guard --demo {options}"));
    command.env("TMPDIR", folder);
    command
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn with_the_guard_the_attack_does_not_reach_the_database_and_customers_get_their_answers() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(folder.path(), "--demo-seconds 5 --json").run();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |side: &str, name: &str| summary[side][name].as_f64().expect(name);
    // Each product that the attacker asks for is absent, so the upstream asks its database.
    let attack = number("without", "attack");
    assert!(attack > 100.0, "{summary}");
    assert_eq!(number("without", "absent_queries"), attack, "{summary}");
    // The false positives are a binomial number: a test in a million fails above 5 deviations.
    let attack = number("with", "attack");
    assert!(attack > 100.0, "{summary}");
    let expected = attack * summary["planned_rate"].as_f64().unwrap();
    let most = expected + 5.0 * expected.sqrt() + 5.0;
    assert!(number("with", "absent_queries") <= most, "{summary}");
    for side in ["without", "with"] {
        assert!(number(side, "customers") > 10.0, "{summary}");
        assert_eq!(number(side, "wrong_404"), 0.0, "{summary}");
        assert_eq!(number(side, "failed"), 0.0, "{summary}");
        // Customers ask the database too, and some of them have to.
        assert!(number(side, "queries") > number(side, "absent_queries"), "{summary}");
        assert!(number(side, "p99_micros") > 0.0, "{summary}");
    }
    assert!(summary["created"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["created"], summary["created_passed"], "{summary}");
    assert!(is_empty(folder.path()), "the folder of the demo is removed");
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_demo_and_removes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), "");
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).start();
    let line = process.stderr_lines().next().expect("a line");
    assert!(line.contains("the console of the demo is available"), "{line}");
    let console = line.split("url=http://").nth(1).unwrap().trim_end_matches('/').parse().unwrap();
    let mut lines = process.stdout_lines();
    let first = lines.next().expect("a line");
    assert!(first.contains(" s: database queries a second: ") && first.contains("with"), "{first}");
    assert!(!is_empty(folder.path()));
    let status = get(console, "/api/status").body;
    assert!(status.contains(r#""demo":{"#) && status.contains(r#""attack_per_second":1000"#));
    assert!(get(console, "/").head.contains("content-security-policy: default-src 'self'"));
    process.signal("INT");
    lines.line_with("  of these reached the database");
    assert!(process.wait().success());
    assert!(is_empty(folder.path()), "the folder of the demo is removed");
}

#[cfg(unix)]
#[test]
fn a_signal_during_the_creation_of_the_shop_ends_the_demo_and_removes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), "--json");
    let process = command.stdout(Stdio::piped()).stderr(Stdio::null()).start();
    wait_until("the demo creates its folder", || !is_empty(folder.path()));
    process.signal("INT");
    let output = process.output();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"", "the attack has not begun");
    assert!(is_empty(folder.path()), "the folder of the demo is removed");
}

#[test]
fn options_without_an_effect_on_the_demo_are_refused() {
    let folder = Folder::new();
    for (options, named) in [
        ("--demo --config guard.toml", "--config"),
        ("--demo --ids ids.txt", "--ids"),
        ("--demo --shadow", "--shadow"),
        ("--demo-seconds 3", "--demo"),
        ("--demo --demo-seconds 0", "--demo-seconds"),
    ] {
        folder.refused(format!("guard {options}"), named);
    }
}

#[test]
fn a_missing_temporary_folder_is_named_with_its_variable() {
    let output = demo(Path::new("/dev/null/x"), "").run();
    let expected = "tamis: /dev/null/x: a temporary folder: not a directory; name another folder with TMPDIR\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(output.status.code(), Some(2));
}
