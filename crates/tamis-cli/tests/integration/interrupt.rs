//! Ctrl-C, `kill` and a closed terminal leave no temporary files.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use tamis_testing::{CommandExt as _, Process, wait_until};

use crate::program::Folder;

/// Starts `tamis` under `env` with its `options`, and writes lines to its stdin without closing it.
fn start(folder: &Folder, options: &str, line: &str, input: &str) -> Process {
    let mut child = Command::new("env")
        .args(options.split_whitespace())
        .arg(env!("CARGO_BIN_EXE_tamis"))
        .args(line.split_whitespace())
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .start();
    child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
    child
}

fn temporary_files(folder: &Folder) -> usize {
    folder.names().iter().filter(|name| name.ends_with(".tmp")).count()
}

#[test]
fn an_interrupted_run_leaves_the_old_file_and_no_other() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        for (line, files) in [
            ("dedup -o out", 1),
            ("dedup --approx 0.01 --items 100 --suspects maybe -o out", 2),
            ("dedup --count -o out", 1),
            ("ints uniq -o out", 1),
            ("ints sort -o out", 1),
        ] {
            let folder = Folder::new();
            folder.write("out", "old");
            // The process that runs the tests may ignore these signals.
            let mut child = start(&folder, "--default-signal=INT,TERM,HUP", line, "1\n2\n");
            wait_until("there is a temporary file", || temporary_files(&folder) == files);
            // Keep stdin open: at the end of its input the program could finish before the signal
            // arrives.
            let stdin = child.stdin.take();
            child.signal(signal);
            let status = child.wait();
            drop(stdin);
            // The shell sees that the signal ended the program: `$?` is 130 after Ctrl-C, and loops
            // end.
            assert_eq!(status.signal(), Some(number), "{line}: {status}");
            assert_eq!(folder.names(), ["out"], "{line}");
            assert_eq!(folder.read("out"), b"old", "{line}");
        }
    }
}

#[test]
fn an_interrupted_run_with_a_state_can_be_given_again() {
    let folder = Folder::new();
    let line = "dedup --state seen --checkpoint 1 -o out";
    let mut child = start(&folder, "--default-signal=INT", line, "1\n2\n2\n");
    let part = || std::fs::metadata(folder.path(".out.tamis-part")).map_or(0, |file| file.len());
    wait_until("lines are in the part", || part() > 0);
    let stdin = child.stdin.take();
    child.signal("INT");
    assert_eq!(child.wait().signal(), Some(2));
    drop(stdin);
    let hint = child.stderr_lines().rest();
    assert!(
        hint.contains("run the same command again to continue") && hint.contains("--restart"),
        "{hint}"
    );
    assert_eq!(folder.names(), [".out.tamis-part", "seen"]);
    folder.feed(line, "1\n2\n2\n3\n").says(0, "");
    assert_eq!(folder.names(), ["out", "seen"]);
    assert_eq!(folder.read("out"), b"1\n2\n3\n");
}

#[test]
fn two_runs_with_a_state_do_not_share_an_output() {
    let folder = Folder::new();
    let line = "dedup --state seen --checkpoint 1 -o out";
    let mut child = start(&folder, "--default-signal=INT", line, "1\n2\n");
    let part = || std::fs::metadata(folder.path(".out.tamis-part")).map_or(0, |file| file.len());
    wait_until("lines are in the part", || part() > 0);
    folder
        .feed("dedup --state other -o out", "3\n")
        .warns(2, "another run with a --state is writing to it");
    assert!(child.wait().success());
    assert_eq!(folder.read("out"), b"1\n2\n");
    folder.write("three", "3\n");
    folder.ok("dedup --state other -o out three");
    assert_eq!(folder.read("out"), b"3\n");
}

#[test]
fn a_run_under_nohup_goes_on() {
    let folder = Folder::new();
    let mut child = start(&folder, "--ignore-signal=HUP", "dedup -o out", "1\n2\n");
    wait_until("there is a temporary file", || temporary_files(&folder) == 1);
    child.send("HUP");
    std::thread::sleep(Duration::from_millis(50));
    assert!(child.wait().success());
    assert_eq!(folder.read("out"), b"1\n2\n");
}
