//! Lines in a window expire: a line is dropped only if it occurred a short time, or a few lines,
//! before.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use proptest::prelude::*;

use tamis_testing::CommandExt as _;

use super::program::{Run, command, dedup, first_occurrences, lines};

/// Lines `time name` in the order of the input.
const BY_TIME: [&str; 4] = ["--time-field=1", "-d ", "-k2", "--window"];

/// Runs `dedup` with a window of `span` over lines of `time name`. Returns its stdout.
fn by_time(span: &str, options: &[&str], text: &str) -> String {
    let args: Vec<_> = BY_TIME.iter().chain([&span]).chain(options).collect();
    String::from_utf8(dedup(args, text.as_bytes()).quietly()).unwrap()
}

#[test]
fn a_window_of_few_lines_is_kept_too() {
    // With a window of n lines, a repeat n lines later is dropped, and a repeat 1.25 n lines later
    // is printed.
    for n in [1, 2, 3, 5, 7, 9, 10, 30_usize] {
        for slices in [1, 4] {
            for first in (0..n).step_by(1 + n / 3) {
                let gap = |len: usize| {
                    let others = |from: usize, to: usize| (from..to).map(|i| format!("{i}\n"));
                    let mut text: String = others(0, first).collect();
                    text += "x\n";
                    text.extend(others(first, first + len - 1));
                    text + "x\n"
                };
                let window = format!("--window={n}-lines");
                let slices_option = format!("--slices={slices}");
                let is_dropped = |text: &str| {
                    let run = dedup([&*window, &*slices_option], text.as_bytes()).quietly();
                    run.iter().filter(|&&byte| byte == b'x').count() == 1
                };
                assert!(is_dropped(&gap(n)), "{n} lines in {slices} slices, after {first}");
                let longest = n + n / slices;
                assert!(!is_dropped(&gap(longest + 1)), "{n} in {slices}, after {first}");
            }
        }
    }
}

#[test]
fn a_line_is_remembered_for_the_window_and_forgotten_soon_after() {
    // Each slice is one second long.
    for (again, is_dropped) in [("100", true), ("104", true), ("104.999", true), ("105", false)] {
        let text = format!("100.5 a\n{again} a\n");
        let printed = by_time("4s", &[], &text);
        assert_eq!(printed, if is_dropped { "100.5 a\n" } else { &text }, "{again}");
    }
    // Each slice is four seconds long, and the line is at the end of its slice.
    for (again, is_dropped) in [("104", true), ("107.999", true), ("108", false)] {
        let text = format!("103.999 a\n{again} a\n");
        let printed = by_time("4s", &["--slices=1"], &text);
        assert_eq!(printed, if is_dropped { "103.999 a\n" } else { &text }, "{again}");
    }
}

#[test]
fn digits_that_may_be_a_date_without_minutes_are_named() {
    for (times, unit) in [
        (["2026110110", "2026110112"], "Unix seconds, in the year 2034"),
        (["261101100000", "261101120000"], "Unix milliseconds, in the year 1978"),
    ] {
        let text = times.map(|time| format!("{time} a\n")).concat();
        dedup(BY_TIME.iter().chain(&["30m"]), text.as_bytes()).warns(0, unit);
    }
}

#[test]
fn order_is_kept_and_each_line_has_its_own_window() {
    let text = "1 a\n1 b\n2 a\n3 c\n4 b\n6 a\n6 b\n7 c\n8 c\n11 a\n";
    assert_eq!(by_time("4s", &[], text), "1 a\n1 b\n3 c\n6 a\n6 b\n8 c\n11 a\n");
    assert_eq!(by_time("4s", &["--repeated=all"], text), "2 a\n4 b\n7 c\n");
    assert_eq!(by_time("1w", &[], text), "1 a\n1 b\n3 c\n");
}

#[test]
fn a_repeat_restarts_its_window_only_on_request() {
    let text: String = (0..20).map(|time| format!("{time} a\n")).collect();
    assert_eq!(by_time("4s", &[], &text), "0 a\n5 a\n10 a\n15 a\n");
    assert_eq!(by_time("4s", &["--refresh"], &text), "0 a\n");
    let with_a_gap = format!("{text}24 a\n29 a\n");
    for options in [&["--refresh"][..], &["--refresh", "--approx=1e-6", "--items=100"]] {
        assert_eq!(by_time("4s", options, &with_a_gap), "0 a\n24 a\n29 a\n");
    }
}

#[test]
fn a_window_of_lines_counts_the_lines_that_were_read() {
    let text = "a\nb\na\nc\na\nd\ne\nf\na\n";
    for options in [&[][..], &["--approx=1e-6"]] {
        let with = |span: &str, slices: &str| {
            let options =
                ["--window", span, "--slices", slices].into_iter().chain(options.iter().copied());
            String::from_utf8(dedup(options, text.as_bytes()).quietly()).unwrap()
        };
        assert_eq!(with("1000-lines", "4"), "a\nb\nc\nd\ne\nf\n");
        assert_eq!(with("1-lines", "1"), "a\nb\na\nc\na\nd\ne\nf\na\n");
        assert_eq!(with("2-lines", "2"), "a\nb\nc\na\nd\ne\nf\na\n");
        assert_eq!(with("7-lines", "7"), "a\nb\nc\nd\ne\nf\na\n");
        assert_eq!(with("8-lines", "8"), "a\nb\nc\nd\ne\nf\n");
    }
}

#[test]
fn times_are_read_in_many_forms() {
    let text = "\
{\"at\": 1795255200, \"id\": \"a\"}
{\"at\": 1795255201.5, \"id\": \"a\"}
{\"at\": \"2026-11-21T10:00:02Z\", \"id\": \"a\"}
{\"at\": \"2026-11-21 12:00:03.250+02:00\", \"id\": \"a\"}
{\"at\": 1795255204999, \"id\": \"a\"}
{\"at\": \"2026-11-21T10:00:05Z\", \"id\": \"a\"}
";
    let printed =
        dedup(["--window=4s", "--json=/id", "--time-json=/at"], text.as_bytes()).quietly();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    assert_eq!(printed, [lines[0], lines[5]].concat().as_bytes());
}

#[test]
fn a_line_without_a_time_counts_as_of_the_latest() {
    let text = "title\ntitle\n1 a\nat a\n5 a\n6 b\nno b\n1 c\n10 c\ntitle\n";
    let args: Vec<_> = ["--window=4s", "--time-field=1", "-d "].into();
    // Whole lines are compared: only the title occurs again.
    let run = dedup(&args, text.as_bytes());
    assert_eq!(run.stdout, b"title\n1 a\nat a\n5 a\n6 b\nno b\n1 c\n10 c\ntitle\n");
    let notes = "\
        tamis: 5 lines have no timestamp; the latest one before was used\n\
        tamis: 1 line more than a window older than an earlier line; the latest timestamp was used: \
        check for a timestamp far in the future\n";
    assert_eq!((run.status, run.stderr.as_str()), (0, notes));
    let run = dedup(args.iter().copied().chain(["--stats"]), text.as_bytes());
    run.warns(0, "without time");
    assert!(!run.stderr.contains("tamis:"), "{}", run.stderr);
    // The name is the key: `at a` is in second 1, and `1 c` is in second 6.
    let run = dedup(args.iter().copied().chain(["-k2", "--stats=json"]), text.as_bytes());
    assert_eq!(run.stdout, b"title\n1 a\n6 b\n1 c\ntitle\n");
    assert_eq!(run.stats()["timeless"], 5);
}

#[test]
fn without_times_in_the_lines_the_clock_counts() {
    let text = lines(100_000, 1000);
    let expected = first_occurrences(&text);
    assert!(dedup(["--window=1d"], &text).quietly() == expected);
    // All lines are in one or two of the four slices.
    let run = dedup(["--window=1d", "--approx=1e-6", "--items=4000"], &text);
    assert!(run.quietly() == expected);
}

#[test]
fn the_clock_makes_a_line_come_back() {
    let mut command = command(["--window=100ms", "--threads=1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout_lines());
    for _ in 0..3 {
        to.write_all(b"a\n").unwrap();
        assert_eq!(from.next().as_deref(), Some("a"), "printed at once, since it was forgotten");
        // The pause is longer than the window and one of its four slices.
        std::thread::sleep(Duration::from_millis(150));
    }
    drop(to);
    assert!(child.wait().success());
}

#[test]
fn statistics_say_what_is_remembered() {
    let text: String = (0..10).fold(String::new(), |mut text, time| {
        writeln!(text, "{time} x{time}\n{time} y").unwrap();
        text
    });
    for refreshes in [false, true] {
        let options: Vec<_> = BY_TIME.into_iter().chain(["4s", "--stats=json"]).collect();
        let run =
            dedup(options.into_iter().chain(refreshes.then_some("--refresh")), text.as_bytes());
        let stats = run.stats();
        let window =
            serde_json::json!({"span": "4s", "slices": 4, "remembered": 6, "over_rate": false});
        assert_eq!(stats["window"], window);
        assert_eq!(stats["distinct"], if refreshes { 11 } else { 12 });
    }
    let run = dedup(BY_TIME.into_iter().chain(["24h", "--stats"]), text.as_bytes());
    assert!(run.stderr.contains("of a window of 1d in 4 slices"), "{}", run.stderr);
    assert!(run.stderr.contains("in a window, exact by 64-bit hash"), "{}", run.stderr);
}

/// Writes lines `time name`: ten lines for each millisecond, all with different names.
fn stream(lines: u64) -> String {
    (0..lines).fold(String::new(), |mut text, i| {
        writeln!(text, "{}.{:03} n{i}", i / 10_000, i / 10 % 1000).unwrap();
        text
    })
}

#[test]
fn memory_is_that_of_the_window_and_too_little_is_an_error() {
    let text = stream(2_000_000);
    // The input has 200,000 lines in 20 s. All of them together would take 22 MB.
    let with = |span: &str, memory: &str| {
        let more = [span, "--memory", memory, "--stats=json"];
        dedup(BY_TIME.into_iter().chain(more), text.as_bytes())
    };
    let run = with("20s", "16M");
    assert_eq!(run.status, 0, "{}", run.stderr);
    let stats = run.stats();
    assert_eq!(stats["written"], 2_000_000);
    assert_eq!(stats["window"]["remembered"], 250_000);
    assert!(stats["memory_bytes"].as_u64().unwrap() < 8 << 20, "{stats}");
    with("100s", "16M").fails_with("a shorter --window");
    with("100s", "16M").fails_with("--memory");
    let approx = ["100s", "--memory=9M", "--approx=0.001", "--items=1M"];
    dedup(BY_TIME.into_iter().chain(approx), b"").fails_with("--memory leaves 1.0 MiB");
}

#[test]
fn an_approximate_window_keeps_its_rate_or_says_that_it_did_not() {
    let text = stream(600_000);
    let with = |items: &str| {
        let more = ["10s", "--approx=0.01", "--items", items, "--stats=json"];
        dedup(BY_TIME.into_iter().chain(more), text.as_bytes())
    };
    let losses = |run: &Run| {
        let found = run.stats();
        let number = |name: &str| found[name].as_f64().unwrap();
        (600_000.0 - number("written"), number("expected_lost"), found.clone())
    };
    // The input has 100,000 lines in 10 s.
    let run = with("100000");
    assert_eq!(run.status, 0, "{}", run.stderr);
    let (lost, expected, found) = losses(&run);
    assert!((lost - expected).abs() < 5.0 * expected.sqrt() && lost < 6000.0, "{lost} {found}");
    assert!((0.009..0.0105).contains(&found["rate"].as_f64().unwrap()), "{found}");
    let about = found["window"]["remembered"].as_u64().unwrap();
    assert!(about.abs_diff(125_000) < 2000, "{found}");

    let run = with("50000");
    run.warns(3, "a window had more lines than planned");
    let (lost, expected, found) = losses(&run);
    assert!((lost / expected - 1.0).abs() < 0.05, "{lost} {found}");
    assert_eq!(found["window"]["over_rate"], true);
}

#[test]
fn spans_fields_and_options_that_do_not_fit_are_refused_in_one_line() {
    for (args, words) in [
        (
            "--window 24",
            "write a time such as 30s, 15m, 24h or 7d, or a number of lines such as 1M-lines",
        ),
        ("--window 0s", "'0s' is not a window"),
        ("--window soon", "'soon' is not a window"),
        ("--window 1d --time-field 0", "'0' is not a whole number above zero"),
        ("--window 1d --time-json at", "try /at"),
        ("--window 1d --time-json /at --time-field 1", "cannot be used with"),
        ("--window 5-lines --time-field 1", "needs no time"),
        ("--window 1d --slices 0", "write 1 to 255"),
        ("--window 1d --slices 256", "write 1 to 255"),
        ("--window 1d --repeated", "use --repeated=all"),
        ("--window 1d --unique", "cannot be used with"),
        ("--window 1d --count", "cannot be used with"),
        ("--window 1d --full", "cannot be used with"),
        ("--window 1d --state x", "cannot be used with"),
        ("--window 1d --suspects x", "cannot be used with"),
        ("--window 1d --rate 0.1", "cannot be used with"),
        ("--window 1d --approx 0.01", "--approx needs --items with a --window of 1d"),
        ("--window 1d --approx 0.01 --items 9000T", "window"),
        ("--refresh", "--window <SPAN>"),
        ("--slices 5", "--window <SPAN>"),
        ("--time-field 1", "--window <SPAN>"),
        ("--window 1d -d,", "add -k N or --csv"),
    ] {
        dedup(args.split(' '), b"a\n").fails_with(words);
    }
}

#[test]
fn help_teaches_windows() {
    let run = dedup(["--help"], b"");
    let text = String::from_utf8(run.stdout).unwrap();
    for words in
        ["--window <SPAN>", "1M-lines", "2026-11-21T10:00:00Z", "never goes", "--time-field"]
    {
        assert!(text.contains(words), "{words}");
    }
}

/// Returns the expected output for a window of `slices` seconds. It uses a map from each name to
/// the slice in which the name was last printed or, if `refreshes`, last occurred.
fn model(text: &str, slices: u64, refreshes: bool) -> String {
    let (mut printed, mut at, mut latest) = (String::new(), HashMap::new(), None);
    for line in text.split_inclusive('\n') {
        let (time, name) = line.trim_end().split_once(' ').unwrap();
        if let Ok(seconds) = time.parse::<f64>() {
            if latest.is_none() {
                // Lines before the first time are in the slice of the first time.
                at.values_mut().for_each(|slice| *slice = seconds as u64);
            }
            latest = latest.max(Some(seconds as u64));
        }
        let now = latest.unwrap_or(0);
        let is_new = at.get(name).is_none_or(|slice| now - slice > slices);
        if is_new {
            printed.push_str(line);
        }
        if is_new || refreshes {
            at.insert(name.to_owned(), now);
        }
    }
    printed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_window_prints_what_a_slow_model_does_on_any_number_of_threads(
        seed: u64,
        len in prop::sample::select(vec![0_u64, 10, 3000, 40_000]),
        // The average number of lines per second, and the number of distinct names.
        pace in prop::sample::select(vec![1_u64, 30, 20_000]),
        names in prop::sample::select(vec![3_u64, 1000, 50_000]),
        slices in 1_u64..8,
        refreshes: bool,
        is_approximate: bool,
    ) {
        let (mut text, mut state, mut time) = (String::new(), seed | 1, 1000.0);
        for _ in 0..len {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
            let random = state >> 33;
            time += (random % 1000) as f64 / 500.0 / pace as f64;
            // Some lines are late, and some have no time.
            let late = if random % 16 == 3 { 2.5 } else { 0.0 };
            match random % 64 {
                5 => write!(text, "-"),
                _ => write!(text, "{:.3}", time - late),
            }.unwrap();
            writeln!(text, " {}", (random >> 8) % names).unwrap();
        }
        let (span, count) = (format!("{slices}s"), slices.to_string());
        // If the filter were far too large, clearing its slices would take most of the time.
        let items = (1000 + 2 * pace * slices).to_string();
        let mut options = vec![span.as_str(), "--slices", &count, "--stats=json"];
        options.extend(refreshes.then_some("--refresh"));
        if is_approximate {
            options.extend(["--approx=1e-9", "--items", &items]);
        }
        let expected = model(&text, slices, refreshes);
        let mut known = None;
        for threads in ["1", "2"] {
            let args = BY_TIME.into_iter().chain(options.iter().copied()).chain(["--threads", threads]);
            let run = dedup(args, text.as_bytes());
            prop_assert_eq!(run.status, 0, "{}", run.stderr);
            prop_assert!(run.stdout == expected.as_bytes(), "{threads} threads");
            let stats = run.stats();
            let found = (stats["written"].clone(), stats["timeless"].clone(), stats["window"].clone());
            prop_assert!(known.is_none() || known.as_ref() == Some(&found), "{threads} threads: {stats}");
            known = Some(found);
        }
    }
}

#[test]
fn times_that_cannot_be_read_at_all_are_an_error() {
    dedup(["--window=1h", "--time-field=1", "-d,"], b"10/Oct/2026,a\n11/Oct/2026,a\n")
        .warns(2, "no line has a readable timestamp");
}
