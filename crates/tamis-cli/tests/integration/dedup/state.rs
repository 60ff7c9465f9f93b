//! A state keeps lines from run to run, even if runs are killed or fail.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use tamis::Hasher;
use tamis_state::{SeenLog, StateError};
use tamis_testing::{CommandExt as _, wait_until};

use super::program::{first_occurrences, lines};
use crate::program::{Ended, Folder, gzip};

/// Runs `tamis dedup --state` with these words.
fn run(folder: &Folder, words: &str, stdin: impl AsRef<[u8]>) -> Ended {
    folder.feed(format!("dedup --state {words}"), stdin)
}

/// Checks that a run keeps these lines, and has no message.
#[track_caller]
fn keeps(folder: &Folder, words: &str, stdin: impl AsRef<[u8]>, kept: &str) {
    let ended = run(folder, words, stdin);
    ended.says(0, "");
    ended.prints(kept);
}

#[test]
fn later_runs_print_only_what_is_new() {
    let folder = Folder::new();
    for bits in ["64", "128"] {
        keeps(&folder, &format!("{bits} --hash-bits={bits}"), "a\nb\na\n", "a\nb\n");
        keeps(&folder, &format!("{bits} --hash-bits={bits}"), "b\nc\nc\n", "c\n");
        keeps(&folder, bits, "a\nb\nc\nd", "d\n");
        keeps(&folder, &format!("{bits} --repeated=all"), "a\nnew\n", "a\n");
        keeps(&folder, bits, "new\n", "");
    }
}

#[test]
fn a_state_serves_exact_and_approximate_runs() {
    let folder = Folder::new();
    for bits in ["64", "128"] {
        keeps(&folder, &format!("{bits} --hash-bits={bits}"), "a\nb\n", "a\nb\n");
        keeps(&folder, &format!("{bits} --approx=1e-6"), "b\nc\n", "c\n");
        keeps(&folder, bits, "a\nb\nc\nd\n", "d\n");
    }
}

/// An attacker who knew the hash could choose lines that make every later run slow.
#[test]
fn each_new_state_hashes_with_a_key_of_its_own_that_only_the_owner_can_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new();
    let [one, two] = ["one", "two"].map(|name| {
        keeps(&folder, &format!("{name} --seed=0 -0"), "a\0", "a\0");
        fs::remove_file(folder.path(name)).unwrap();
        keeps(&folder, name, "a\nb\n", "a\nb\n");
        keeps(&folder, name, "a\nb\nc\n", "c\n");
        assert_eq!(fs::metadata(folder.path(name)).unwrap().permissions().mode() & 0o777, 0o600);
        folder.read(name)
    });
    let key = |state: &[u8]| state[32 + usize::from(state[10])..][..17].to_vec();
    assert_eq!((key(&one)[0], key(&two)[0]), (2, 2), "SipHash-1-3");
    assert_ne!(key(&one), key(&two));
}

#[test]
fn a_state_that_was_cut_or_zeroed_is_named_and_never_new() {
    let folder = Folder::new();
    let input = lines(40, 1 << 40);
    run(&folder, "state", &input).says(0, "");
    let whole = folder.read("state");
    for len in [0, 5, 20, 60, whole.len() / 2, whole.len() - 1] {
        for zeros in [0, whole.len() - len] {
            let cut = [&whole[..len], &vec![0; zeros]].concat();
            folder.write("state", cut);
            folder.write("input", &input);
            folder.refused("dedup --state state input", "state");
        }
    }
}

#[test]
fn the_same_run_given_again_has_the_same_output() {
    let folder = Folder::new();
    folder.write("in", "a\nb\na\n");
    let run = |to: To| {
        let mut command = to.add(&folder, folder.command("dedup --state state in"));
        assert!(command.start().wait().success());
        folder.read("out")
    };
    for to in [To::File, To::Append, To::Truncate] {
        for _ in 0..3 {
            assert_eq!(run(to), b"a\nb\n", "{to:?}");
        }
        fs::remove_file(folder.path("state")).unwrap();
        fs::remove_file(folder.path("out")).unwrap();
    }
    run(To::File);
    folder.write("in", "a\nc\na\n");
    assert_eq!(run(To::File), b"c\n", "a file of the same size that was changed is another run");
}

#[test]
fn a_state_of_another_kind_is_refused_and_untouched() {
    let folder = Folder::new();
    keeps(&folder, "state -k2 --hash-bits=64", "1\ta\n", "1\ta\n");
    folder.write("in", "1\tb\n");
    for (options, text) in [
        ("-k3", "remembers 'field 2"),
        ("-k2 -0", "newline"),
        ("-k2 --seed=7", "seed"),
        ("-k2 --hash-bits=128", "64-bit"),
        ("-k2 --unpack=no", "asks for 'field 2"),
        ("-k2 --unpack=gzip", "--unpack gzip'"),
        ("", "remembers"),
    ] {
        folder.refused(format!("dedup --state state {options} in"), text);
    }
    keeps(&folder, "state -k2 --unpack=auto", "1\ta\n", "");
    for kept in ["a\n", ""] {
        keeps(&folder, "plain --unpack=no", "a\n", kept);
    }
    folder.refused("dedup --state plain in", "--unpack no'");
    folder.write("state", "some text\n");
    folder.refused("dedup --state state in", "is not a state file");
    folder.refused("dedup --state . in", "a state must be a regular file");
}

#[test]
fn a_run_that_fails_is_not_remembered() {
    let folder = Folder::new();
    keeps(&folder, "state", "a\n", "a\n");
    let packed = gzip(lines(100_000, 50_000));
    folder.write("bad.gz", &packed[..packed.len() - 100]);
    folder.refused("dedup --state state --checkpoint=1 -o out bad.gz", "gzip");
    folder.refused("dedup --state state -o bad.gz bad.gz", "cannot be one of the inputs");
}

#[test]
fn a_second_process_is_refused() {
    let folder = Folder::new();
    let mut first = folder.piped("dedup --state state").stdout(Stdio::null()).start();
    wait_until("the first process makes the state", || {
        fs::metadata(folder.path("state")).is_ok_and(|metadata| metadata.len() > 0)
    });
    folder.refused("dedup --state state /dev/null", "another process");
    assert!(first.wait().success());
    keeps(&folder, "state", "a\n", "a\n");
}

/// The output of a run.
#[derive(Clone, Copy, Debug)]
enum To {
    /// `-o FILE`.
    File,
    /// `>> FILE`.
    Append,
    /// `> FILE`.
    Truncate,
}

impl To {
    /// Sends the output of a command to the file `out`.
    fn add(self, folder: &Folder, mut command: Command) -> Command {
        let output = folder.path("out");
        match self {
            To::File => command.arg("-o").arg(output),
            To::Append => {
                command.stdout(OpenOptions::new().create(true).append(true).open(output).unwrap())
            }
            To::Truncate => command.stdout(File::create(output).unwrap()),
        };
        command
    }
}

/// Repeats the run until one run is not killed. Returns the number of killed runs and the output.
///
/// A run may be killed after all its work but before it exits. The next run finds nothing new and
/// empties `FILE`, so this function keeps the complete output of the run before.
fn run_through_kills(
    folder: &Folder,
    to: To,
    expected: &[u8],
    mut delays: impl Iterator<Item = u64>,
) -> (u32, Vec<u8>) {
    let output = folder.path("out");
    let mut kills = 0;
    loop {
        let before = fs::read(&output).unwrap_or_default();
        let command = folder.command("dedup --checkpoint=1 --state state in");
        let mut command = to.add(folder, command);
        command.stderr(Stdio::piped());
        let mut child = command.start();
        std::thread::sleep(Duration::from_micros(delays.next().unwrap()));
        child.kill();
        let ended = child.output();
        match ended.status.code() {
            Some(status) => {
                assert_eq!(status, 0, "{}", String::from_utf8_lossy(&ended.stderr));
                let found = fs::read(&output).unwrap();
                let was_complete = found.is_empty() && before == expected;
                return (kills, if was_complete { before } else { found });
            }
            None => kills += 1,
        }
    }
}

#[test]
fn runs_that_are_killed_lose_and_invent_nothing() {
    let earlier = lines(10_000, 15_000);
    let text = lines(300_000, 100_000);
    let all = first_occurrences(&[&earlier[..], &text].concat());
    let expected = &all[first_occurrences(&earlier).len()..];
    let mut random = 88_172_645_463_325_252_u64;
    let mut kills = 0;
    for round in 0..24 {
        let to = [To::File, To::Append, To::Truncate][round % 3];
        let folder = Folder::new();
        folder.write("in", &text);
        run(&folder, "state", &earlier).says(0, "");
        if matches!(to, To::Append) {
            folder.write("out", "a line before\n");
        }
        let mut longest = 2_000;
        let delays = std::iter::from_fn(|| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Runs that start over need more time, or none would ever finish.
            longest += longest / 3;
            Some(random % longest)
        });
        let expected = match to {
            To::Append => [b"a line before\n", expected].concat(),
            _ => expected.to_vec(),
        };
        let (killed, found) = run_through_kills(&folder, to, &expected, delays);
        kills += killed;
        let (len, right) = (found.len(), expected.len());
        assert!(found == expected, "round {round}, {to:?}: {len} bytes for {right}");
        assert!(!folder.path(".out.tamis-part").exists());
        // The state holds all lines of the runs and no others.
        keeps(&folder, "state", &text, "");
        keeps(&folder, "state", "a new line", "a new line\n");
    }
    assert!(kills >= 24, "only {kills} runs were killed");
}

#[test]
fn a_killed_run_wants_its_own_input_or_to_be_forgotten() {
    let folder = Folder::new();
    let mut command = folder.piped("dedup --checkpoint=1 --state state");
    let mut child = command.stdout(File::create(folder.path("out")).unwrap()).start();
    child.stdin.as_mut().unwrap().write_all(b"a\nb\n").unwrap();
    wait_until("the lines are passed on", || folder.read("out").len() == 4);
    child.kill();
    folder.write("other", "a\n");
    folder.refused("dedup --state state other", "--restart");
    // The killed run is forgotten.
    keeps(&folder, "state other --restart", "", "a\n");
}

/// Opens a state of the program as a log, with this description.
fn seen_log(folder: &Folder, text: &str) -> Result<SeenLog<u128>, StateError> {
    SeenLog::open(&folder.path("state"), text, Hasher::keyed([1, 2]))
}

#[test]
fn a_log_of_another_program_and_a_run_share_a_state() {
    let folder = Folder::new();
    let lines = "record, records end with newline";
    let mut log = seen_log(&folder, lines).unwrap();
    log.append([log.hasher().hash128(b"a")]).unwrap();
    log.sync().unwrap();
    folder.refused("dedup --state state /dev/null", "another process");
    log.append([log.hasher().hash128(b"b")]).unwrap();
    log.close().unwrap();
    keeps(&folder, "state", "a\nb\nc\n", "c\n");
    let mut log = seen_log(&folder, lines).unwrap();
    let (mut replay, mut held) = (log.replay().unwrap(), Vec::new());
    while let Some(digests) = replay.next_batch().unwrap() {
        held.extend_from_slice(digests);
    }
    assert_eq!(held, [b"a", b"b", b"c"].map(|line| log.hasher().hash128(line)));
    log.close().unwrap();
    keeps(&folder, "state", "c\nd\n", "d\n");
}

#[test]
fn a_log_and_a_run_refuse_the_state_of_each_other_if_the_description_differs() {
    let folder = Folder::new();
    seen_log(&folder, "fingerprints").unwrap().close().unwrap();
    folder.refused("dedup --state state /dev/null", "remembers 'fingerprints', but this run asks");
    fs::remove_file(folder.path("state")).unwrap();
    keeps(&folder, "state", "a\n", "a\n");
    let error = seen_log(&folder, "fingerprints").err().unwrap().to_string();
    assert!(error.contains("newline', not of 'fingerprints'"), "{error}");
}

#[test]
fn a_log_refuses_the_state_of_a_killed_run() {
    let folder = Folder::new();
    let mut command = folder.piped("dedup --checkpoint=1 --state state");
    let mut child = command.stdout(File::create(folder.path("out")).unwrap()).start();
    child.stdin.as_mut().unwrap().write_all(b"a\nb\n").unwrap();
    wait_until("the lines are passed on", || folder.read("out").len() == 4);
    child.kill();
    let state = folder.read("state");
    let text = &state[32..][..usize::from(state[10])];
    let error = seen_log(&folder, std::str::from_utf8(text).unwrap()).err().unwrap();
    assert!(matches!(error, StateError::KilledRun { .. }), "{error}");
}
