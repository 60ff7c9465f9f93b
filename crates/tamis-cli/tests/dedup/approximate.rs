//! Runs that are approximate say so, say what it cost, and can be made exact afterwards.

use std::collections::HashSet;
use std::fs;

use super::program::{dedup, first_occurrences, lines};

fn set(text: &[u8]) -> HashSet<&[u8]> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
}

fn stats(stderr: &str) -> serde_json::Value {
    let line = stderr.lines().find(|line| line.starts_with('{')).expect("statistics");
    serde_json::from_str(line).unwrap()
}

/// Tells whether a count is within five deviations of what was expected.
fn is_near(found: usize, expected: f64) -> bool {
    (found as f64 - expected).abs() <= 5.0 * expected.sqrt() + 2.0
}

#[test]
fn a_planned_filter_keeps_its_rate() {
    let text = lines(300_000, 150_000);
    let exact = first_occurrences(&text);
    for options in [&["--approx=0.001", "--items=150000"][..], &["--approx=0.001"]] {
        let mut options = options.to_vec();
        options.push("--stats=json");
        let run = dedup(options, &text);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let lost = set(&exact).difference(&set(&run.stdout)).count();
        let stats = stats(&run.stderr);
        assert!(is_near(lost, stats["expected_lost"].as_f64().unwrap()), "{lost}: {stats}");
        assert!(stats["rate"].as_f64().unwrap() <= 0.001, "{stats}");
        assert!(lost <= 150, "{lost}");
        // What is printed is in order and printed once.
        assert!(first_occurrences(&run.stdout) == run.stdout);
    }
}

#[test]
fn a_plan_that_was_too_small_is_confessed() {
    let text = lines(300_000, 1 << 40);
    let run = dedup(["--approx=0.001", "--memory=16M"], &text);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "it grew, and kept the rate");
    for options in [&["--items=1000"][..], &["--memory=9M"]] {
        let run = dedup([&["--approx=0.001"], options].concat(), &lines(2_000_000, 1 << 40));
        assert_eq!(run.status, 3, "{}", run.stderr);
        assert!(run.stderr.contains("above the 1.0e-3 asked for"), "{}", run.stderr);
    }
}

#[test]
fn a_set_that_outgrows_its_memory_says_what_that_costs() {
    let text = lines(1_500_000, 1 << 40);
    let run = dedup(["--memory=9M", "--stats=json"], &text);
    assert_eq!(run.status, 3, "{}", run.stderr);
    assert!(run.stderr.contains("approximate filter"), "{}", run.stderr);
    let exact = first_occurrences(&text);
    let lost = set(&exact).len() - set(&run.stdout).len();
    let expected = stats(&run.stderr)["expected_lost"].as_f64().unwrap();
    // The estimate is of the mean: at so high a rate the losses depend on each other.
    assert!((lost as f64 / expected - 1.0).abs() < 0.05, "{lost} lost, {expected} expected");

    let run = dedup(["--memory=9M", "--hash-bits=128"], &lines(200_000, 1 << 40));
    assert_eq!(run.status, 0, "few enough to keep the target: {}", run.stderr);
    assert!(run.stderr.contains("0.0001") || run.stderr.contains("lost"), "{}", run.stderr);
}

#[test]
fn a_second_pass_over_the_suspects_makes_the_run_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = lines(1_000_000, 1_500_000);
    fs::write(path("in"), &text).unwrap();
    let (input, output, suspects) = (path("in"), path("out"), path("suspects"));
    let args = [
        "--memory=9M".as_ref(),
        "--suspects".as_ref(),
        suspects.as_os_str(),
        "-o".as_ref(),
        output.as_os_str(),
        input.as_os_str(),
    ];
    let run = dedup(args, b"");
    assert!(run.stderr.contains("lost"), "{}", run.stderr);
    let exact = first_occurrences(&text);
    let lost = set(&exact).len() - set(&fs::read(&output).unwrap()).len();
    assert!(lost > 100, "the test is about lost lines");
    // The recipe of docs/dedup.md: what was kept, then what of the suspects is not among it.
    let recovered = dedup([output.as_os_str(), suspects.as_os_str()], b"").quietly();
    assert!(recovered.starts_with(&fs::read(&output).unwrap()));
    assert!(set(&recovered) == set(&exact));
    assert_eq!(recovered.len(), exact.len());
}
