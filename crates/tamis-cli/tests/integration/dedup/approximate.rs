//! An approximate run reports that it is approximate and how many lines it loses. A second pass can
//! make its output exact.

use std::collections::HashSet;

use super::program::{dedup, first_occurrences, lines};
use crate::program::Folder;

fn set(text: &[u8]) -> HashSet<&[u8]> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
}

/// Returns true if a count is within five standard deviations of the expected count.
fn is_near(found: usize, expected: f64) -> bool {
    (found as f64 - expected).abs() <= 5.0 * expected.sqrt() + 2.0
}

#[test]
fn a_planned_filter_keeps_its_rate() {
    let text = lines(300_000, 150_000);
    let exact = first_occurrences(&text);
    for options in [&["--approx=0.001", "--items=150000"][..], &["--approx=0.001"]] {
        let run = dedup([options, &["--stats=json"]].concat(), &text);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let lost = set(&exact).difference(&set(&run.stdout)).count();
        let stats = run.stats();
        assert!(is_near(lost, stats["expected_lost"].as_f64().unwrap()), "{lost}: {stats}");
        assert!(stats["rate"].as_f64().unwrap() <= 0.001, "{stats}");
        assert!(lost <= 150, "{lost}");
        // The output is in order and has no repeats.
        assert!(first_occurrences(&run.stdout) == run.stdout);
    }
}

#[test]
fn a_plan_that_was_too_small_is_confessed() {
    let text = lines(300_000, 1 << 40);
    let run = dedup(["--approx=0.001", "--memory=16M"], &text);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""), "it grew, and kept the rate");
    for options in [&["--items=1000"][..], &["--memory=9M"]] {
        dedup([&["--approx=0.001"], options].concat(), &lines(2_000_000, 1 << 40))
            .warns(3, "above the target of 1.0e-3");
    }
}

#[test]
fn a_set_that_outgrows_its_memory_says_what_that_costs() {
    let text = lines(1_500_000, 1 << 40);
    let run = dedup(["--memory=9M", "--stats=json"], &text);
    run.warns(3, "approximate filter");
    let exact = first_occurrences(&text);
    let lost = set(&exact).len() - set(&run.stdout).len();
    let expected = run.stats()["expected_lost"].as_f64().unwrap();
    // The estimate is a mean. At this high rate, the losses depend on each other.
    assert!((lost as f64 / expected - 1.0).abs() < 0.05, "{lost} lost, {expected} expected");

    let run = dedup(["--memory=9M", "--hash-bits=128"], &lines(200_000, 1 << 40));
    assert_eq!(run.status, 0, "few enough to keep the target: {}", run.stderr);
    assert!(run.stderr.contains("0.0001") || run.stderr.contains("lost"), "{}", run.stderr);
}

#[test]
fn a_second_pass_over_the_suspects_makes_the_run_exact() {
    let folder = Folder::new();
    let text = lines(1_000_000, 1_500_000);
    folder.write("in", &text);
    let run = folder.run("dedup --memory=9M --suspects suspects -o out in");
    assert!(run.stderr.contains("lost"), "{}", run.stderr);
    let exact = first_occurrences(&text);
    let output = folder.read("out");
    let lost = set(&exact).len() - set(&output).len();
    assert!(lost > 100, "the test is about lost lines");
    // This is the recipe of docs/dedup.md: the output, then the suspects that are not in the
    // output.
    let recovered = folder.ok("dedup out suspects").into_bytes();
    assert!(recovered.starts_with(&output));
    assert!(set(&recovered) == set(&exact));
    assert_eq!(recovered.len(), exact.len());
}

/// Parses output lines that begin with a count.
fn counts(stdout: &[u8]) -> std::collections::HashMap<Vec<u8>, u64> {
    let counted = stdout.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let (count, line) = line.split_at(8);
        (line.to_vec(), std::str::from_utf8(count).unwrap().trim().parse().unwrap())
    });
    counted.collect()
}

#[test]
fn counts_that_outgrow_the_memory_become_approximate() {
    // There are 120,000 lines. Every third line occurs twice, and every ninth line three times.
    let each =
        |step: usize| (0..120_000).step_by(step).map(|i| format!("line number {i} of many\n"));
    let text: String = each(1).chain(each(3)).chain(each(9)).collect();
    let exact = counts(&dedup(["--count"], text.as_bytes()).quietly());
    let run = dedup(["--count", "--memory=10M", "--rate=0.9"], text.as_bytes());
    assert!(run.stderr.contains("going on approximately"), "{}", run.stderr);
    assert!(run.stderr.contains("counts to be too high"), "{}", run.stderr);
    let about = counts(&run.stdout);
    assert!(exact.len() - about.len() < 100, "{} of {}", about.len(), exact.len());
    let mut too_high = 0;
    for (line, count) in &about {
        assert!(*count >= exact[line], "never too low: {}", String::from_utf8_lossy(line));
        too_high += u64::from(*count > exact[line]);
    }
    assert!(too_high < 5000, "{too_high}");
    // The lines are in first-seen order.
    let lines = |stdout: &[u8]| -> Vec<Vec<u8>> {
        stdout.split_inclusive(|&byte| byte == b'\n').map(|line| line[8..].to_vec()).collect()
    };
    let in_order = lines(&run.stdout);
    let mut expected = lines(&dedup(["--count"], text.as_bytes()).quietly()).into_iter();
    assert!(in_order.iter().all(|line| expected.any(|other| other == *line)));

    let run = dedup(["--unique", "--memory=10M", "--rate=0.9"], text.as_bytes());
    assert!(run.stderr.contains("occur once are expected to be left out"), "{}", run.stderr);
    let unique: Vec<_> = run.stdout.split_inclusive(|&byte| byte == b'\n').collect();
    assert!(unique.iter().all(|&line| exact[line] == 1), "no line is taken for a unique one");
    assert!(unique.len() > 75_000, "{}", unique.len());

    let run = dedup(["--repeated", "--count", "--memory=10M", "--rate=0.9"], text.as_bytes());
    let repeated = counts(&run.stdout);
    let missing = exact.iter().filter(|(line, count)| **count > 1 && !repeated.contains_key(*line));
    assert!(missing.count() < 100);

    for exactly in ["--exact", "--full"] {
        dedup(["--count", exactly, "--memory=10M"], text.as_bytes())
            .fails_with("leave out --exact");
    }
}

#[test]
fn repeats_that_outgrow_the_memory_become_approximate() {
    let text = lines(600_000, 700_000);
    let exact = dedup(["--repeated"], &text).quietly();
    let exact = set(&exact);
    let run = dedup(["--repeated", "--memory=9M", "--rate=0.9"], &text);
    assert!(run.stderr.contains("going on with an approximate filter"), "{}", run.stderr);
    assert!(
        run.stderr.contains("occur once are expected to be printed as repeats"),
        "{}",
        run.stderr
    );
    let about = set(&run.stdout);
    assert!(exact.difference(&about).count() < exact.len() / 2);
    assert_eq!(run.stdout.iter().filter(|&&byte| byte == b'\n').count(), about.len(), "each once");
    dedup(["--repeated", "--exact", "--memory=9M"], &text).fails_with("leave out --exact");
}
