//! `kill -9` at any time: a log keeps all digests that a process has flushed, and no others.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tamis::Hasher;
use tamis_state::{SeenLog, StateError};
use tamis_testing::{CommandExt as _, Random};

/// The variable that holds the path of the log in the child process.
const VARIABLE: &str = "TAMIS_TEST_SEEN_LOG";

fn open(path: &Path) -> SeenLog<u128> {
    SeenLog::open(path, "numbers", Hasher::mix(0)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the digest of the number `n`. A digest contains no zero bytes.
fn digest(n: u64) -> u128 {
    Hasher::mix(0).hash128(&n.to_le_bytes()) | 0x0101_0101_0101_0101_0101_0101_0101_0101
}

/// Checks that the log holds the digests of 0, 1, 2 and so on, and returns their number.
fn replay(log: &mut SeenLog<u128>) -> u64 {
    let (mut replay, mut held) = (log.replay().unwrap(), 0);
    while let Some(digests) = replay.next_batch().unwrap() {
        for &found in digests {
            assert_eq!(found, digest(held), "the digest at index {held}");
            held += 1;
        }
    }
    held
}

/// Appends digests until the process is killed. Prints the number of flushed digests.
fn append_forever(path: &Path) {
    let mut log = open(path);
    let mut next = replay(&mut log);
    for round in 1_u64.. {
        let end = next + round * 37 % 9_000;
        log.append((next..end).map(digest)).unwrap();
        next = end;
        if round.is_multiple_of(5) {
            log.sync().unwrap();
        } else {
            log.flush().unwrap();
        }
        println!("flushed {next}");
    }
}

#[test]
fn a_killed_process_loses_no_flushed_digest() {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return append_forever(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    let (mut random, mut held) = (Random(36), 0);
    for round in 0..20 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_killed_process_loses_no_flushed_digest", "--nocapture"]);
        let mut child = command.env(VARIABLE, &path).stdout(Stdio::piped()).start();
        let mut lines = child.stdout_lines();
        // The child has opened the log, and appends when the kill arrives.
        lines.line_with("flushed");
        std::thread::sleep(Duration::from_micros(random.below(30_000) as u64));
        child.kill();
        let rest = lines.rest();
        let mut flushed =
            rest.lines().filter_map(|line| line.strip_prefix("flushed ")?.parse().ok());
        let flushed = flushed.next_back().unwrap_or(held);
        held = replay(&mut open(&path));
        assert!(held >= flushed, "round {round}: {held} of {flushed} digests");
    }
    assert!(held > 10_000, "only {held} digests");
}

#[test]
fn another_process_is_refused_while_a_process_has_the_file_open() {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let opened = SeenLog::<u128>::open(Path::new(&path), "numbers", Hasher::mix(0));
        let error = opened.err().expect("the parent process has the file open");
        assert!(matches!(error, StateError::Locked { .. }), "{error}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    let log = open(&path);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "another_process_is_refused_while_a_process_has_the_file_open";
    let output = command.args(["--exact", name]).env(VARIABLE, &path).run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    log.close().unwrap();
}

/// An attacker who knows the key could choose items whose digests collide.
#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen");
    open(&path).close().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let names = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names, 1, "no temporary file remains");
}
