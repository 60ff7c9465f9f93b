//! A state keeps lines from run to run, even if runs are killed or fail.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tamis_testing::{CommandExt as _, wait_until};

use super::program::{Run, command, dedup, first_occurrences, lines};

fn with_state(state: &Path, options: &[&str], stdin: &[u8]) -> Run {
    let mut args = vec!["--state", state.to_str().unwrap()];
    args.extend(options);
    dedup(args, stdin)
}

#[test]
fn later_runs_print_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    for bits in ["--hash-bits=64", "--hash-bits=128"] {
        let state = folder.path().join(bits);
        assert_eq!(with_state(&state, &[bits], b"a\nb\na\n").quietly(), b"a\nb\n");
        assert_eq!(with_state(&state, &[bits], b"b\nc\nc\n").quietly(), b"c\n");
        assert_eq!(with_state(&state, &[], b"a\nb\nc\nd").quietly(), b"d\n");
        assert_eq!(with_state(&state, &["--repeated=all"], b"a\nnew\n").quietly(), b"a\n");
        assert_eq!(with_state(&state, &[], b"new\n").quietly(), b"");
    }
}

#[test]
fn a_state_serves_exact_and_approximate_runs() {
    let folder = tempfile::tempdir().unwrap();
    for bits in ["--hash-bits=64", "--hash-bits=128"] {
        let state = folder.path().join(bits);
        assert_eq!(with_state(&state, &[bits], b"a\nb\n").quietly(), b"a\nb\n");
        assert_eq!(with_state(&state, &["--approx=1e-6"], b"b\nc\n").quietly(), b"c\n");
        assert_eq!(with_state(&state, &[], b"a\nb\nc\nd\n").quietly(), b"d\n");
    }
}

/// An attacker who knew the hash could choose lines that make every later run slow.
#[test]
fn each_new_state_hashes_with_a_key_of_its_own_that_only_the_owner_can_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| {
        let state = folder.path().join(name);
        assert_eq!(with_state(&state, &["--seed=0", "-0"], b"a\0").quietly(), b"a\0");
        fs::remove_file(&state).unwrap();
        assert_eq!(with_state(&state, &[], b"a\nb\n").quietly(), b"a\nb\n");
        assert_eq!(with_state(&state, &[], b"a\nb\nc\n").quietly(), b"c\n");
        assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
        fs::read(&state).unwrap()
    });
    let key = |state: &[u8]| state[32 + usize::from(state[10])..][..17].to_vec();
    assert_eq!((key(&one)[0], key(&two)[0]), (2, 2), "SipHash-1-3");
    assert_ne!(key(&one), key(&two));
}

#[test]
fn a_state_that_was_cut_or_zeroed_is_named_and_never_new() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let input = lines(40, 1 << 40);
    with_state(&state, &[], &input).quietly();
    let whole = fs::read(&state).unwrap();
    for len in [0, 5, 20, 60, whole.len() / 2, whole.len() - 1] {
        for zeros in [0, whole.len() - len] {
            let cut = [&whole[..len], &vec![0; zeros]].concat();
            fs::write(&state, &cut).unwrap();
            let run = with_state(&state, &[], &input);
            run.fails_with("state");
            assert_eq!((run.stdout, fs::read(&state).unwrap()), (vec![], cut), "cut at {len}");
        }
    }
}

#[test]
fn the_same_run_given_again_has_the_same_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in"), "a\nb\na\n").unwrap();
    let run = |to: To| {
        let mut command = command(["--state"]);
        command.arg(path("state")).arg(path("in"));
        let output = path("out");
        match to {
            To::File => command.arg("-o").arg(&output),
            To::Append => {
                command.stdout(OpenOptions::new().create(true).append(true).open(&output).unwrap())
            }
            To::Truncate => command.stdout(File::create(&output).unwrap()),
        };
        assert!(command.start().wait().success());
        fs::read(&output).unwrap()
    };
    for to in [To::File, To::Append, To::Truncate] {
        for _ in 0..3 {
            assert_eq!(run(to), b"a\nb\n", "{to:?}");
        }
        fs::remove_file(path("state")).unwrap();
        fs::remove_file(path("out")).unwrap();
    }
    run(To::File);
    fs::write(path("in"), "a\nc\na\n").unwrap();
    assert_eq!(run(To::File), b"c\n", "a file of the same size that was changed is another run");
}

#[test]
fn a_state_of_another_kind_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    with_state(&state, &["-k2", "--hash-bits=64"], b"1\ta\n").quietly();
    let before = fs::read(&state).unwrap();
    for (options, text) in [
        (&["-k3"][..], "remembers 'field 2"),
        (&["-k2", "-0"], "newline"),
        (&["-k2", "--seed=7"], "seed"),
        (&["-k2", "--hash-bits=128"], "64-bit"),
        (&["-k2", "--unpack=no"], "asks for 'field 2"),
        (&["-k2", "--unpack=gzip"], "--unpack gzip'"),
        (&[], "remembers"),
    ] {
        with_state(&state, options, b"1\tb\n").fails_with(text);
        assert_eq!(fs::read(&state).unwrap(), before);
    }
    with_state(&state, &["-k2", "--unpack=auto"], b"1\ta\n").quietly();
    let plain = folder.path().join("plain");
    for _ in 0..2 {
        with_state(&plain, &["--unpack=no"], b"a\n").quietly();
    }
    with_state(&plain, &[], b"a\n").fails_with("--unpack no'");
    fs::write(&state, "some text\n").unwrap();
    with_state(&state, &[], b"a\n").fails_with("is not a state file");
    assert_eq!(fs::read(&state).unwrap(), b"some text\n");
    with_state(folder.path(), &[], b"a\n").fails_with("a state must be a regular file");
}

#[test]
fn a_run_that_fails_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let (state, bad, output) =
        (folder.path().join("state"), folder.path().join("bad.gz"), folder.path().join("out"));
    with_state(&state, &[], b"a\n").quietly();
    let before = fs::read(&state).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&lines(100_000, 50_000)).unwrap();
    let packed = encoder.finish().unwrap();
    fs::write(&bad, &packed[..packed.len() - 100]).unwrap();
    let options = ["--checkpoint=1", "-o", output.to_str().unwrap(), bad.to_str().unwrap()];
    with_state(&state, &options, b"").fails_with("gzip");
    assert_eq!(fs::read(&state).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    with_state(&state, &["-o", bad.to_str().unwrap(), bad.to_str().unwrap()], b"")
        .fails_with("cannot be one of the inputs");
}

#[test]
fn a_second_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut first = command(["--state".as_ref(), state.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .start();
    wait_until("the first process makes the state", || {
        fs::metadata(&state).is_ok_and(|metadata| metadata.len() > 0)
    });
    with_state(&state, &[], b"a\n").fails_with("another process");
    assert!(first.wait().success());
    assert_eq!(with_state(&state, &[], b"a\n").quietly(), b"a\n");
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

/// Repeats the run until one run is not killed. Returns the number of killed runs and the output.
///
/// A run may be killed after all its work but before it exits. The next run finds nothing new and
/// empties `FILE`, so this function keeps the complete output of the run before.
fn run_through_kills(
    folder: &Path,
    to: To,
    expected: &[u8],
    mut delays: impl Iterator<Item = u64>,
) -> (u32, Vec<u8>) {
    let output = folder.join("out");
    let mut kills = 0;
    loop {
        let before = fs::read(&output).unwrap_or_default();
        let mut command = command(["--checkpoint=1", "--state"]);
        command.arg(folder.join("state")).arg(folder.join("in")).stderr(Stdio::piped());
        match to {
            To::File => command.arg("-o").arg(&output),
            To::Append => {
                command.stdout(OpenOptions::new().create(true).append(true).open(&output).unwrap())
            }
            To::Truncate => command.stdout(File::create(&output).unwrap()),
        };
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
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("in"), &text).unwrap();
        with_state(&path("state"), &[], &earlier).quietly();
        if matches!(to, To::Append) {
            fs::write(path("out"), "a line before\n").unwrap();
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
        let (killed, found) = run_through_kills(folder.path(), to, &expected, delays);
        kills += killed;
        assert!(
            found == expected,
            "round {round}, {to:?}: {} bytes for {}",
            found.len(),
            expected.len()
        );
        assert!(!path(".out.tamis-part").exists());
        // The state holds all lines of the runs and no others.
        assert_eq!(with_state(&path("state"), &[], &text).quietly(), b"");
        assert_eq!(with_state(&path("state"), &[], b"a new line").quietly(), b"a new line\n");
    }
    assert!(kills >= 24, "only {kills} runs were killed");
}

#[test]
fn a_killed_run_wants_its_own_input_or_to_be_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let state = path("state");
    let mut child = command(["--checkpoint=1", "--state"])
        .arg(&state)
        .stdin(Stdio::piped())
        .stdout(File::create(path("out")).unwrap())
        .start();
    child.stdin.as_mut().unwrap().write_all(b"a\nb\n").unwrap();
    wait_until("the lines are passed on", || fs::metadata(path("out")).unwrap().len() == 4);
    child.kill();
    fs::write(path("other"), "a\n").unwrap();
    with_state(&state, &[path("other").to_str().unwrap()], b"").fails_with("--restart");
    let other = [path("other").to_str().unwrap().to_string(), "--restart".into()];
    let other: Vec<&str> = other.iter().map(String::as_str).collect();
    assert_eq!(with_state(&state, &other, b"").quietly(), b"a\n", "the killed run is forgotten");
}
