//! Every failure gives one clear line and status 2, and changes no file.

use std::fs;
use std::process::Stdio;

use tamis_testing::CommandExt as _;

use super::program::{command, dedup, lines};

#[test]
fn an_input_that_cannot_be_read_is_named_and_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (good, output) = (folder.path().join("good"), folder.path().join("out"));
    fs::write(&good, "a\n").unwrap();
    for (bad, reason) in
        [(folder.path().join("missing"), "no such file"), (folder.path().into(), "directory")]
    {
        for to in [&["-o", output.to_str().unwrap()][..], &[]] {
            let with = |paths: &[&std::path::Path]| {
                let paths = paths.iter().map(|path| path.as_os_str());
                dedup(paths.chain(to.iter().map(std::ffi::OsStr::new)), b"")
            };
            fs::write(&output, "old").unwrap();
            let run = with(&[&bad, &good, &bad]);
            let lines: Vec<_> = run.stderr.lines().collect();
            let named = if to.is_empty() { 2 } else { 1 };
            assert_eq!((run.status, lines.len()), (2, named), "{run:?}");
            let is_named =
                |line: &&str| line.contains(bad.to_str().unwrap()) && line.contains(reason);
            assert!(lines.iter().all(is_named), "{run:?}");
            // A pipe gets the lines of the other inputs. An old file must not lose lines.
            assert_eq!(run.stdout, if to.is_empty() { &b"a\n"[..] } else { b"" });
            assert_eq!(fs::read(&output).unwrap(), b"old");
            // If an input does not exist, nothing is written.
            fs::write(&output, "old").unwrap();
            let run = with(&[&bad]);
            run.fails_with(reason);
            assert_eq!((run.stdout, fs::read(&output).unwrap()), (vec![], b"old".to_vec()));
        }
    }
    // A state would record the run as finished.
    let state = folder.path().join("state");
    let missing = folder.path().join("missing");
    let args = ["--state".as_ref(), state.as_os_str(), good.as_os_str(), missing.as_os_str()];
    let run = dedup(args, b"");
    run.fails_with("no such file");
    assert!(run.stdout.is_empty() && !state.exists());
}

#[test]
fn a_run_without_any_key_or_time_fails_and_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [input, output, suspects, state] = ["in", "out", "suspects", "state"].map(file);
    fs::write(&input, "{\n  \"a\": 1\n}\n").unwrap();
    for (options, words) in [
        ("--json /a", "pretty-printed"),
        ("--json /typo --count", "no line has the key (json /typo)"),
        ("--json /typo --full", "no line has the key"),
        ("-d, -k2", "no line has the key (field 2 by ',')"),
        ("-d, -k2 --unique", "no line has the key"),
        ("--url --state {state}", "no line has the key (url of record)"),
        ("--approx 0.01 --url --suspects {suspects}", "no line has the key"),
        ("--window 1h --time-json /at", "no line has a readable timestamp"),
    ] {
        for path in [&output, &suspects] {
            fs::write(path, "old").unwrap();
        }
        let options = options.replace("{state}", &state).replace("{suspects}", &suspects);
        let args = options.split(' ').chain(["-o", &output, &input]);
        let run = dedup(args, b"");
        assert!(run.status == 2 && run.stderr.contains(words), "{options}: {run:?}");
        for path in [&output, &suspects] {
            assert_eq!(fs::read(path).unwrap(), b"old", "{options}");
        }
    }
    let run = dedup(["--json", "/typo"], b"a\na\n");
    assert_eq!((run.status, &run.stdout[..]), (2, &b"a\n"[..]), "{run:?}");
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let folder = tempfile::tempdir().unwrap();
    dedup(["-o".as_ref(), folder.path().as_os_str()], b"a\n").fails_with("is a directory");
    let missing = folder.path().join("missing/out");
    dedup(["-o".as_ref(), missing.as_os_str()], b"a\n").fails_with("missing/out: no such file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_the_old_output_stays() {
    dedup(["-o", "/dev/full"], b"a\n").fails_with("/dev/full: no space left");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command([""; 0]).stdin(Stdio::null()).stdout(full).start().wait();
    assert!(output.success(), "nothing to write is no failure");
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, lines(100_000, 100_000)).unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let run = command([&input]).stdout(full).stderr(Stdio::piped()).start().output();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8(run.stderr).unwrap().contains("standard output: no space left"));
    // A limit on the size of files simulates a disk that becomes full during the run.
    fs::write(&output, "old").unwrap();
    let script = format!(
        "trap '' XFSZ; ulimit -f 100; exec {} dedup {} -o {}",
        env!("CARGO_BIN_EXE_tamis"),
        input.display(),
        output.display()
    );
    let run = std::process::Command::new("bash").args(["-c", &script]).run();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert_eq!(fs::read(&output).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn a_reader_that_has_had_enough_is_a_quiet_success() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::write(&input, lines(200_000, 200_000)).unwrap();
    for options in [&[][..], &["--count"]] {
        let mut command = command(options);
        command.arg(&input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.start();
        drop(child.stdout.take());
        let output = child.output();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    dedup(["--memory", "1M"], b"").fails_with("--memory");
    dedup(["--repeated", "--approx=0.01"], b"").fails_with("--repeated=all");
    for (options, word) in [
        (&["--approx=0"][..], "rate"),
        (&["--approx=1"], "rate"),
        (&["--approx=nan"], "rate"),
        (&["--approx=-1"], "rate"),
        (&["--memory=lots"], "512M"),
        (&["--hash-bits=32"], "64"),
        (&["-k0"], "0"),
        (&["--json=id"], "/id"),
        (&["--full", "--approx=0.1"], "cannot be used with"),
        (&["--unique", "--state=x"], "cannot be used with"),
        (&["-d,"], "-d sets the delimiter of fields: add -k N or --csv"),
        (&["--items=5"], "--approx"),
        (&["--items=5", "--full"], "--items N is the number of lines that --approx is planned for"),
        (&["--items=5", "--unique"], "--items N is the number of lines that --approx"),
        (
            &["--items=5", "--count", "--memory=12M"],
            "--items N is the number of lines that --approx",
        ),
        (&["--restart", "--keyed"], "--restart discards the progress of a killed run with --state"),
        (&["--checkpoint=1M"], "--state"),
        (&["--checkpoint=1M", "--full"], "--checkpoint sets how often --state is saved"),
        (&["--checkpoint=1M", "--count"], "--checkpoint sets how often --state is saved"),
        (&["--checkpoint=1M", "--unique"], "--checkpoint sets how often --state is saved"),
        (&["--slices=3", "--full"], "--slices is for a --window"),
        (&["--refresh", "--count"], "--refresh is for a --window"),
        (&["--time-json=/at", "--unique"], "--time-json is for a --window"),
    ] {
        let run = dedup(options, b"");
        assert!(run.status == 2 && run.stderr.contains(word), "{options:?}: {}", run.stderr);
    }
}

#[test]
fn absurd_plans_are_refused_not_tried() {
    let run = dedup(["--approx=0.01", "--items=9000T"], b"a\n");
    assert_eq!((run.status, run.stdout.len()), (2, 0), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn exact_refuses_to_outgrow_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, lines(400_000, 1 << 40)).unwrap();
    fs::write(&output, "old").unwrap();
    for options in
        [&["--exact"][..], &["--full"], &["--exact", "--count"], &["--exact", "--repeated"]]
    {
        let mut args = vec!["--memory=9M".as_ref(), "-o".as_ref(), output.as_os_str()];
        args.extend(options.iter().map(std::ffi::OsStr::new));
        args.push(input.as_os_str());
        dedup(args, b"").fails_with("--memory");
        assert_eq!(fs::read(&output).unwrap(), b"old");
    }
}

#[test]
fn a_file_cannot_be_two_things_of_which_one_would_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lines, other) = (file("lines"), file("other"));
    std::fs::write(&lines, "a\nb\na\n").unwrap();
    for (options, words) in [
        (["--state", &other, "-o", &other], "is the output too; name another file for --state"),
        (["--state", &lines, "-o", &other], "is an input too; name another file for --state"),
        (["--state", &other, "-o", &lines], "the output cannot be one of the inputs"),
        (
            ["--suspects", &other, "-o", &other],
            "is the output too; name another file for --suspects",
        ),
        (["--suspects", &lines, "-o", &other], "is an input too; name another file for --suspects"),
    ] {
        dedup(options.into_iter().chain([lines.as_str()]), b"").fails_with(words);
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{options:?}");
        assert_eq!(std::fs::read(&lines).unwrap(), b"a\nb\na\n", "{options:?}");
    }
}

#[test]
fn absurd_numbers_and_unknown_options_are_refused_in_one_line() {
    for (args, words) in [
        ("--threads 0", "write 1 to 1024"),
        ("--threads 99999", "write 1 to 1024"),
        ("-k 0", "'0' is not a whole number above zero"),
        ("-k 99999999999999999999999", "is not a whole number above zero, or is too large"),
        ("--no-such-option", "unexpected argument '--no-such-option' found"),
        ("--stats=pdf", "[possible values: text, json]"),
        ("--exact --approx 0.1", "see 'tamis dedup --help'"),
        ("-o", "a value is required for '--output <FILE>'"),
    ] {
        dedup(args.split(' '), b"a\n").fails_with(words);
    }
}
