//! The number of threads changes only the time of a run, not its output.

use std::io::Write as _;

use proptest::prelude::*;
use tamis_testing::CommandExt as _;

use super::program::{Run, command, lines};
use crate::program::Folder;

/// Returns records of many lengths in several blocks. Many are repeats, and the last may lack its
/// delimiter.
fn text(seed: u64, end: u8) -> Vec<u8> {
    // One record is a URL, so that `--url` finds a key.
    let (mut text, mut state) = (b"http://example.org/".to_vec(), seed | 1);
    text.push(end);
    while text.len() < 3 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed | 1);
        let number = (state >> 40) % 5000;
        // Most records are short or empty, and some are longer than a block.
        let padding = match number % 1000 {
            999 if number == 999 => 700_000,
            0..100 => 300,
            _ => number as usize % 3,
        };
        if number % 7 > 0 {
            write!(text, "{number},{},", number % 50).unwrap();
            text.resize(text.len() + padding, b'x');
        }
        text.push(end);
    }
    text.truncate(text.len() - (seed % 3) as usize);
    text
}

/// Returns the output and the statistics of a run, without its time and memory.
fn known(run: &Run) -> (&[u8], i32, serde_json::Value, String) {
    let (stats, said): (Vec<_>, Vec<_>) =
        run.stderr.lines().partition(|line| line.starts_with('{'));
    let mut stats: serde_json::Value =
        stats.first().map_or(serde_json::Value::Null, |line| serde_json::from_str(line).unwrap());
    for taken in ["seconds", "memory_bytes"] {
        stats[taken] = 0.into();
    }
    (&run.stdout, run.status, stats, said.join("\n"))
}

fn on_threads(folder: &Folder, threads: &str, options: &[&str]) -> Run {
    let options = options.iter().copied().chain(["--stats=json", "--threads", threads]);
    Run::of(command(options).current_dir(folder.path(".")).run())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_number_of_threads_prints_and_counts_the_same(
        seed: u64,
        null: bool,
        is_packed: bool,
        mode in prop::sample::select(vec!["--stats", "--repeated", "--repeated=all", "--count"]),
        method in prop::sample::select(vec![
            "--hash-bits=64",
            "--hash-bits=128",
            "--full",
            "--approx=0.01",
        ]),
        key in prop::sample::select(vec![&[][..], &["-d,", "-k2"], &["-d,", "-k3"], &["--url"]]),
    ) {
        let is_approximate = method.starts_with("--approx");
        prop_assume!(!is_approximate || !["--repeated", "--count"].contains(&mode));
        // A decompressing thread passes blocks of other sizes, and the estimate is updated after
        // each block.
        let is_packed = is_packed && !is_approximate;
        let folder = Folder::new();
        let end = if null { 0 } else { b'\n' };
        for (name, text) in [("one", text(seed, end)), ("two", text(!seed, end))] {
            let bytes = if is_packed { zstd::encode_all(&text[..], 1).unwrap() } else { text };
            folder.write(name, bytes);
        }
        let mut options = vec![mode, method, "one", "two"];
        options.extend(key);
        options.extend(null.then_some("-0"));
        // With `-0`, inputs are not decompressed by their first bytes.
        options.extend((null && is_packed).then_some("--unpack=zstd"));
        if mode == "--stats" {
            options.remove(0);
        }
        let one = on_threads(&folder, "1", &options);
        prop_assert!(one.stdout.len() > 100 && one.status == 0, "{}", one.stderr);
        for threads in ["2", "8"] {
            let run = on_threads(&folder, threads, &options);
            prop_assert!(known(&run) == known(&one), "{threads}: {} {}", run.stderr, one.stderr);
        }
    }
}

#[test]
fn what_came_before_a_broken_input_is_the_same_on_any_number_of_threads() {
    let folder = Folder::new();
    folder.write("good", lines(100_000, 100_000));
    let packed = zstd::encode_all(&lines(200_000, 1 << 40)[..], 1).unwrap();
    folder.write("broken", &packed[..packed.len() / 2]);
    let expected = folder.ok("dedup good").into_bytes();
    let one = on_threads(&folder, "1", &["good", "broken"]);
    for threads in ["1", "2", "8"] {
        let run = on_threads(&folder, threads, &["good", "broken"]);
        run.fails_with("cut short");
        assert!(run.stdout.starts_with(&expected), "{threads}");
        assert_eq!(run.stderr, one.stderr);
    }
}

#[test]
fn a_state_of_one_thread_serves_a_run_of_many() {
    let folder = Folder::new();
    let options = ["--state", "state", "--checkpoint", "1M", "in"];
    let old = lines(100_000, 1 << 40);
    let all = [&old[..], b"new\n", &old, b"newer"].concat();
    for (threads, then) in [("1", "8"), ("8", "1")] {
        folder.write("in", &old);
        assert_eq!(on_threads(&folder, threads, &options).status, 0);
        folder.write("in", &all);
        assert_eq!(on_threads(&folder, then, &options).stdout, b"new\nnewer\n");
        std::fs::remove_file(folder.path("state")).unwrap();
    }
}
