//! Bad input to `tamis ints`: one clear line, exit status 2, outputs untouched.

use std::io::{Read as _, Write as _};

use tamis_testing::{CommandExt as _, join};

use crate::program::{file, ints, ints_command};

/// Runs a job that must fail, and returns its line on stderr.
fn refusal(args: &[&str], stdin: &[u8]) -> String {
    let output = ints(args, stdin);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    stderr.trim_end().to_owned()
}

#[test]
fn what_is_no_integer_is_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(folder.path(), "good", "1\n2\n");
    for (text, line, what) in [
        ("1\n\n2\nabc\n5\n", 4, "'abc' is not an integer"),
        ("1\r\n2x\r\n", 2, "'2x' is not an integer"),
        ("1.5", 1, "'1.5' is not an integer"),
        ("1,2", 1, "'1,2' is not an integer"),
        ("12345678\n-5\n", 2, "-5 is negative: integers from 0 to 18446744073709551615 are read"),
        (
            "18446744073709551615\n18446744073709551616\n",
            2,
            "18446744073709551616 is above 18446744073709551615",
        ),
        ("\0", 1, "'\\x00' is not an integer"),
        ("\u{fffd}", 1, "'\\xef\\xbf\\xbd' is not an integer"),
    ] {
        let bad = file(folder.path(), "bad", text);
        for job in ["dups", "uniq", "sort", "count"] {
            let said = refusal(&[job, &good, &bad], b"");
            assert_eq!(said, format!("tamis: {bad}:{line}: {what}"));
        }
        assert_eq!(
            refusal(&["dups", &good, "-"], text.as_bytes()),
            format!("tamis: standard input:{line}: {what}")
        );
        assert_eq!(refusal(&["and", &good, &bad], b""), format!("tamis: {bad}:{line}: {what}"));
        assert_eq!(
            refusal(&["contains", &bad, &good], b""),
            format!("tamis: {bad}:{line}: {what}")
        );
    }
}

#[test]
fn the_line_is_right_far_into_a_file() {
    let mut text: String = (0..200_000).map(|i| format!("{i}\n")).collect();
    text.push_str("oops\n");
    assert_eq!(
        refusal(&["count"], text.as_bytes()),
        "tamis: standard input:200001: 'oops' is not an integer"
    );
}

#[test]
fn a_line_without_an_end_is_shown_shortened_and_not_kept() {
    let said = refusal(&["uniq"], &vec![b'7'; 3 << 20]);
    assert!(said.contains("standard input:1: '777777") && said.contains("..."), "{said}");
    assert!(said.len() < 200, "{said}");
}

#[test]
fn a_range_refuses_what_is_outside_with_its_place() {
    assert_eq!(
        refusal(&["uniq", "--range", "10..=20"], b"10\n20 21\n9"),
        "tamis: standard input:2: 21 is outside --range 10..=20"
    );
    let binary: Vec<u8> = [10_u32, 11, 5].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(
        refusal(&["uniq", "--format=u32", "--range", "10..=20"], &binary),
        "tamis: standard input:byte 8: 5 is outside --range 10..=20"
    );
    assert!(ints(&["uniq", "--range", "20..=10"], b"").status.code() == Some(2));
}

#[test]
fn binary_of_a_broken_length_is_refused() {
    for (format, len, width) in [("u32", 7, 4), ("u64", 12, 8), ("u32", 1, 4)] {
        let said = refusal(&["dups", "--format", format], &vec![1; len]);
        assert_eq!(
            said,
            format!(
                "tamis: standard input: {len} bytes are no whole number of integers of {width} \
                 bytes; is the file cut short, or another --format?"
            )
        );
    }
}

#[test]
fn a_value_that_4_bytes_do_not_hold_is_refused() {
    let said = refusal(&["sort", "--output-format=u32"], b"4294967295 4294967296");
    assert!(said.contains("4294967296 does not fit the 4 bytes"), "{said}");
}

#[test]
fn missing_files_and_folders_are_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(folder.path(), "good", "1\n2\n");
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    let place = folder.path().to_str().unwrap();
    for args in [["and", missing, &good], ["and", &good, missing], ["contains", missing, &good]] {
        let said = refusal(&args, b"");
        assert_eq!(said, format!("tamis: {missing}: no such file or directory"));
    }
    for args in [["xor", place, &good], ["andnot", &good, place], ["contains", place, &good]] {
        assert!(refusal(&args, b"").starts_with(&format!("tamis: {place}: is a directory")));
    }
    for job in ["uniq", "sort", "or"] {
        let output = ints(&[job, missing, &good], b"");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b"1\n2\n"[..]));
        let said = refusal(&[job, missing], b"");
        assert_eq!(said, format!("tamis: {missing}: no such file or directory"));
    }
    let output = ints(&["contains", &good, missing, &good], b"");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b"1\n2\n"[..]));
    // The result of the other inputs does not replace a file.
    let out = file(folder.path(), "out", "old");
    for job in ["uniq", "sort", "dups", "count", "or", "contains"] {
        let set: &[&str] = if job == "contains" { &[&good] } else { &[] };
        let args = [&[job, "-o", &out], set, &[missing, &good]].concat();
        assert_eq!(refusal(&args, b""), format!("tamis: {missing}: no such file or directory"));
        assert_eq!(std::fs::read(&out).unwrap(), b"old", "{job}");
    }
}

#[test]
fn a_failure_leaves_the_output_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let out = file(folder.path(), "out", "precious");
    for job in ["dups", "uniq", "sort", "count"] {
        refusal(&[job, "-o", &out], b"1\n2\nx");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), "precious");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    std::fs::write(&out, "5\n5\n6\n").unwrap();
    assert!(ints(&["uniq", "-o", &out, &out], b"").status.success());
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "5\n6\n", "an output may be the input");
}

#[test]
fn a_memory_limit_is_kept_or_refused() {
    let said = refusal(&["uniq", "--memory", "1M"], b"1");
    assert!(said.contains("--memory 1.0 MiB is too little"), "{said}");
    let scattered: String =
        (1..=800_000_u64).map(|i| format!("{}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let folder = tempfile::tempdir().unwrap();
    let input = file(folder.path(), "scattered", scattered);
    let output = folder.path().join("out");
    for job in ["uniq", "dups", "sort"] {
        let args = [job, "--memory", "16M", &input, "-o", output.to_str().unwrap()];
        let said = refusal(&args, b"");
        assert!(said.contains("the distinct integers outgrow --memory 16.0 MiB"), "{said}");
        assert!(!output.exists());
    }
}

#[test]
fn one_standard_input_is_not_two_files() {
    assert!(refusal(&["or", "-", "-"], b"1").contains("one set only"));
    assert!(refusal(&["contains", "-"], b"1").contains("both the set and what to look for"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_clear_line() {
    for job in ["uniq", "sort", "dups", "count"] {
        let said = refusal(&[job, "-o", "/dev/full"], b"1\n1\n2\n");
        assert!(said.contains("/dev/full: no space left on device"), "{said}");
    }
}

#[test]
fn a_broken_pipe_is_a_quiet_success() {
    let mut child = ints_command(&["uniq"]).start();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        for i in 0..3_000_000_u32 {
            if stdin.write_all(format!("{i}\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || stdout.read_exact(&mut [0; 10]).unwrap());
    join("the reader of the first bytes", reader);
    let output = child.output();
    join("the thread that writes", feeder);
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn results_of_a_slow_input_are_shown_as_they_come() {
    let mut child = ints_command(&["uniq"]).start();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"4242\n").unwrap();
    assert_eq!(child.stdout_lines().next().as_deref(), Some("4242"));
    drop(stdin);
    assert!(child.wait().success());
}
