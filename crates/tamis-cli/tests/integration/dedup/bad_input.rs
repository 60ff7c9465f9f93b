//! Every failure gives one clear line and status 2, and changes no file.

use std::fs;
use std::process::Stdio;

use tamis_testing::CommandExt as _;

use super::program::{dedup, lines};
use crate::program::{Ended, Folder, tamis};

#[test]
fn an_input_that_cannot_be_read_is_named_and_replaces_no_file() {
    let folder = Folder::new();
    folder.write("good", "a\n");
    for (bad, reason) in [("missing", "no such file"), (".", "directory")] {
        for to in ["-o out", ""] {
            folder.write("out", "old");
            let run = folder.run(format!("dedup {to} {bad} good {bad}"));
            let lines: Vec<_> = run.stderr.lines().collect();
            let named = if to.is_empty() { 2 } else { 1 };
            assert_eq!((run.status, lines.len()), (2, named), "{run:?}");
            let is_named = |line: &&str| line.contains(bad) && line.contains(reason);
            assert!(lines.iter().all(is_named), "{run:?}");
            // A pipe gets the lines of the other inputs. An old file must not lose lines.
            run.prints(if to.is_empty() { "a\n" } else { "" });
            assert_eq!(folder.read("out"), b"old");
            // If an input does not exist, nothing is written.
            folder.refused(format!("dedup {to} {bad}"), reason);
        }
    }
    // A state would record the run as finished.
    folder.refused("dedup --state state good missing", "no such file");
}

#[test]
fn a_run_without_any_key_or_time_fails_and_replaces_no_file() {
    let folder = Folder::new();
    folder.write("in", "{\n  \"a\": 1\n}\n");
    for name in ["out", "suspects"] {
        folder.write(name, "old");
    }
    for (options, words) in [
        ("--json /a", "pretty-printed"),
        ("--json /typo --count", "no line has the key (json /typo)"),
        ("--json /typo --full", "no line has the key"),
        ("-d, -k2", "no line has the key (field 2 by ',')"),
        ("-d, -k2 --unique", "no line has the key"),
        ("--url --state state", "no line has the key (url of record)"),
        ("--approx 0.01 --url --suspects suspects", "no line has the key"),
        ("--window 1h --time-json /at", "no line has a readable timestamp"),
    ] {
        folder.run(format!("dedup {options} -o out in")).warns(2, words);
        for name in ["out", "suspects"] {
            assert_eq!(folder.read(name), b"old", "{options}");
        }
    }
    let run = dedup(["--json", "/typo"], b"a\na\n");
    assert_eq!((run.status, &run.stdout[..]), (2, &b"a\n"[..]), "{run:?}");
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let folder = Folder::new();
    folder.refused("dedup -o .", "is a directory");
    folder.refused("dedup -o missing/out", "missing/out: no such file");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_the_old_output_stays() {
    dedup(["-o", "/dev/full"], b"a\n").fails_with("/dev/full: no space left");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = tamis("dedup").stdin(Stdio::null()).stdout(full).start().wait();
    assert!(output.success(), "nothing to write is no failure");
    let folder = Folder::new();
    folder.write("in", lines(100_000, 100_000));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    Ended::of("dedup in", folder.piped("dedup in").stdout(full).start().output())
        .warns(2, "standard output: no space left");
    // A limit on the size of files simulates a disk that becomes full during the run.
    folder.write("out", "old");
    let program = env!("CARGO_BIN_EXE_tamis");
    let script = format!("trap '' XFSZ; ulimit -f 100; exec {program} dedup in -o out");
    let mut bash = std::process::Command::new("bash");
    let run = bash.args(["-c", &script]).current_dir(folder.path(".")).run();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert_eq!(folder.read("out"), b"old");
    assert_eq!(folder.names(), ["in", "out"], "no temporary file is left");
}

#[test]
fn a_reader_that_has_had_enough_is_a_quiet_success() {
    let folder = Folder::new();
    folder.write("in", lines(200_000, 200_000));
    for line in ["dedup in", "dedup --count in"] {
        let mut child = folder.piped(line).start();
        drop(child.stdout.take());
        Ended::of(line, child.output()).says(0, "");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    dedup(["--memory", "1M"], b"").fails_with("--memory");
    dedup(["--repeated", "--approx=0.01"], b"").fails_with("--repeated=all");
    let folder = Folder::new();
    for (options, word) in [
        ("--approx=0", "rate"),
        ("--approx=1", "rate"),
        ("--approx=nan", "rate"),
        ("--approx=-1", "rate"),
        ("--memory=lots", "512M"),
        ("--hash-bits=32", "64"),
        ("-k0", "0"),
        ("--json=id", "/id"),
        ("--full --approx=0.1", "cannot be used with"),
        ("--unique --state=x", "cannot be used with"),
        ("-d,", "-d sets the delimiter of fields: add -k N or --csv"),
        ("--items=5", "--approx"),
        ("--items=5 --full", "--items N is the number of lines that --approx is planned for"),
        ("--items=5 --unique", "--items N is the number of lines that --approx"),
        ("--items=5 --count --memory=12M", "--items N is the number of lines that --approx"),
        ("--restart --keyed", "--restart discards the progress of a killed run with --state"),
        ("--checkpoint=1M", "--state"),
        ("--checkpoint=1M --full", "--checkpoint sets how often --state is saved"),
        ("--checkpoint=1M --count", "--checkpoint sets how often --state is saved"),
        ("--checkpoint=1M --unique", "--checkpoint sets how often --state is saved"),
        ("--slices=3 --full", "--slices is for a --window"),
        ("--refresh --count", "--refresh is for a --window"),
        ("--time-json=/at --unique", "--time-json is for a --window"),
    ] {
        folder.feed(format!("dedup {options}"), "").warns(2, word);
    }
}

#[test]
fn absurd_plans_are_refused_not_tried() {
    Folder::new().refused("dedup --approx=0.01 --items=9000T", "");
}

#[test]
fn exact_refuses_to_outgrow_its_memory() {
    let folder = Folder::new();
    folder.write("in", lines(400_000, 1 << 40));
    folder.write("out", "old");
    for options in ["--exact", "--full", "--exact --count", "--exact --repeated"] {
        folder.refused(format!("dedup --memory=9M -o out {options} in"), "--memory");
    }
}

#[test]
fn a_file_cannot_be_two_things_of_which_one_would_be_lost() {
    let folder = Folder::new();
    folder.write("lines", "a\nb\na\n");
    for (options, words) in [
        ("--state other -o other", "is the output too; name another file for --state"),
        ("--state lines -o other", "is an input too; name another file for --state"),
        ("--state other -o lines", "the output cannot be one of the inputs"),
        ("--suspects other -o other", "is the output too; name another file for --suspects"),
        ("--suspects lines -o other", "is an input too; name another file for --suspects"),
    ] {
        folder.refused(format!("dedup {options} lines"), words);
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
        Folder::new().refused(format!("dedup {args}"), words);
    }
}
