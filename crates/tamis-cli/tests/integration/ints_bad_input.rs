//! Bad input to `tamis ints`: one clear line, exit status 2, outputs untouched.

use std::io::{Read as _, Write as _};

use tamis_testing::{CommandExt as _, join};

use crate::program::{Folder, lines};

/// Checks that a job fails with this line on stderr.
#[track_caller]
fn fails(folder: &Folder, line: &str, stdin: impl AsRef<[u8]>, error: &str) {
    folder.feed(format!("ints {line}"), stdin).says(2, &format!("tamis: {error}\n"));
}

/// Checks that a job fails with one line on stderr that contains `words`.
#[track_caller]
fn fails_with(folder: &Folder, line: &str, stdin: impl AsRef<[u8]>, words: &str) {
    let ended = folder.feed(format!("ints {line}"), stdin);
    ended.warns(2, words);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn what_is_no_integer_is_named_with_file_and_line() {
    let folder = Folder::new();
    folder.write("good", "1\n2\n");
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
        folder.write("bad", text);
        for job in ["dups good", "uniq good", "sort good", "count good", "and good"] {
            fails(&folder, &format!("{job} bad"), "", &format!("bad:{line}: {what}"));
        }
        fails(&folder, "contains bad good", "", &format!("bad:{line}: {what}"));
        fails(&folder, "dups good -", text, &format!("standard input:{line}: {what}"));
    }
}

#[test]
fn the_line_is_right_far_into_a_file() {
    let text = lines(0..200_000) + "oops\n";
    fails(&Folder::new(), "count", text, "standard input:200001: 'oops' is not an integer");
}

#[test]
fn a_line_without_an_end_is_shown_shortened_and_not_kept() {
    let ended = Folder::new().feed("ints uniq", vec![b'7'; 3 << 20]);
    ended.warns(2, "standard input:1: '777777");
    assert!(ended.stderr.contains("...") && ended.stderr.len() < 200, "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn a_range_refuses_what_is_outside_with_its_place() {
    let folder = Folder::new();
    let binary: Vec<u8> = [10_u32, 11, 5].iter().flat_map(|value| value.to_le_bytes()).collect();
    for (format, input, place) in
        [("text", b"10\n20 21\n9".to_vec(), "2: 21"), ("u32", binary, "byte 8: 5")]
    {
        let error = format!("standard input:{place} is outside --range 10..=20");
        fails(&folder, &format!("uniq --format={format} --range 10..=20"), input, &error);
    }
    folder.run("ints uniq --range 20..=10").has_status(2);
}

#[test]
fn binary_of_a_broken_length_is_refused() {
    for (format, len, width) in [("u32", 7, 4), ("u64", 12, 8), ("u32", 1, 4)] {
        let error = format!(
            "standard input: {len} bytes are no whole number of integers of {width} bytes; is the \
             file cut short, or another --format?"
        );
        fails(&Folder::new(), &format!("dups --format {format}"), vec![1; len], &error);
    }
}

#[test]
fn a_value_that_4_bytes_do_not_hold_is_refused() {
    let words = "4294967296 does not fit the 4 bytes";
    fails_with(&Folder::new(), "sort --output-format=u32", "4294967295 4294967296", words);
}

#[test]
fn missing_files_and_folders_are_refused_before_the_work() {
    let folder = Folder::new();
    folder.write("good", "1\n2\n");
    let missing = "missing: no such file or directory";
    for job in ["and missing good", "and good missing", "contains missing good"] {
        fails(&folder, job, "", missing);
    }
    for job in ["xor . good", "andnot good .", "contains . good"] {
        fails_with(&folder, job, "", "tamis: .: is a directory");
    }
    for job in ["uniq", "sort", "or"] {
        folder.run(format!("ints {job} missing good")).gives(2, "1\n2\n");
        fails(&folder, &format!("{job} missing"), "", missing);
    }
    folder.run("ints contains good missing good").gives(2, "1\n2\n");
    // The result of the other inputs does not replace a file.
    folder.write("out", "old");
    for job in ["uniq", "sort", "dups", "count", "or", "contains good"] {
        fails(&folder, &format!("{job} -o out missing good"), "", missing);
        assert_eq!(folder.read("out"), b"old", "{job}");
    }
}

#[test]
fn a_failure_leaves_the_output_file_as_it_was() {
    let folder = Folder::new();
    folder.write("out", "precious");
    for job in ["dups", "uniq", "sort", "count"] {
        fails_with(&folder, &format!("{job} -o out"), "1\n2\nx", "'x' is not an integer");
        assert_eq!(folder.read("out"), b"precious", "{job}");
    }
    assert_eq!(folder.names(), ["out"], "no temporary file is left");
    folder.write("out", "5\n5\n6\n");
    folder.run("ints uniq -o out out").has_status(0);
    assert_eq!(folder.read("out"), b"5\n6\n", "an output may be the input");
}

#[test]
fn a_memory_limit_is_kept_or_refused() {
    let folder = Folder::new();
    fails_with(&folder, "uniq --memory 1M", "1", "--memory 1.0 MiB is too little");
    let scattered = (1..=800_000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    folder.write("scattered", lines(scattered));
    for job in ["uniq", "dups", "sort"] {
        folder.refused(
            format!("ints {job} --memory 16M scattered -o out"),
            "the distinct integers outgrow --memory 16.0 MiB",
        );
    }
}

#[test]
fn one_standard_input_is_not_two_files() {
    let folder = Folder::new();
    fails_with(&folder, "or - -", "1", "one set only");
    fails_with(&folder, "contains -", "1", "both the set and what to look for");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_clear_line() {
    for job in ["uniq", "sort", "dups", "count"] {
        let words = "/dev/full: no space left on device";
        fails_with(&Folder::new(), &format!("{job} -o /dev/full"), "1\n1\n2\n", words);
    }
}

#[test]
fn a_broken_pipe_is_a_quiet_success() {
    let mut child = Folder::new().piped("ints uniq").start();
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
    let mut child = Folder::new().piped("ints uniq").start();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"4242\n").unwrap();
    assert_eq!(child.stdout_lines().next().as_deref(), Some("4242"));
    drop(stdin);
    assert!(child.wait().success());
}
