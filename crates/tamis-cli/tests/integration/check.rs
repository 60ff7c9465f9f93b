//! `tamis check` as a user runs it.

use std::io::Write as _;

use tamis_testing::CommandExt as _;

use crate::program::{Ended, Folder, gzip, lines};

/// Filters of even and of small numbers below 1000, and the numbers up to 2000.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("even.txt", lines((0..1000).filter(|n| n % 2 == 0)));
    folder.write("small.txt", lines(0..10));
    folder.write("all.txt", lines(0..2000));
    folder.ok("build --rate 1e-9 even.txt -o even.tamis");
    folder.ok("build --rate 1e-9 --seed 5 small.txt -o small.tamis");
    folder
}

#[test]
fn lines_that_are_in_are_printed_in_order() {
    let folder = folder();
    assert_eq!(folder.ok("check even.tamis all.txt").into_bytes(), folder.read("even.txt"));
    folder.prints("check -c even.tamis all.txt", "500\n");
    let odd = lines((0..2000).filter(|n| n % 2 == 1 || *n >= 1000));
    folder.prints("check -v even.tamis all.txt", odd);
    folder.prints("check -vc even.tamis all.txt", "1500\n");
    folder.prints("check -q even.tamis all.txt", "");
}

#[test]
fn no_line_found_is_status_one() {
    let folder = folder();
    for (line, stdout) in [
        ("check even.tamis", ""),
        ("check -c even.tamis", "0\n"),
        ("check -q even.tamis", ""),
        ("check -f even.tamis -f small.tamis", ""),
    ] {
        let ended = folder.feed(line, "1001\nabsent\n");
        ended.gives(1, stdout);
        ended.says(1, "");
    }
    folder.feed("check -v even.tamis", "2\n4\n").has_status(1);
    folder.feed("check even.tamis", "").has_status(1);
}

#[test]
fn several_filters_say_which_has_the_line() {
    let folder = folder();
    let both = "check -f even.tamis -f small.tamis";
    folder
        .feed(both, "3\n4\n20\n21\n")
        .prints("small.tamis:3\neven.tamis:4\nsmall.tamis:4\neven.tamis:20\n");
    folder.feed(format!("{both} --no-name"), "3\n4\n20\n21\n").prints("3\n4\n20\n");
    folder.feed(format!("{both} -v"), "3\n4\n21\n").prints("21\n");
    folder.prints(format!("{both} -c all.txt"), "even.tamis:500\nsmall.tamis:10\n");
    folder.prints(format!("{both} -c --no-name all.txt"), "505\n");
    folder.prints(format!("{both} -c -v all.txt"), "1495\n");
}

#[test]
fn lines_are_bytes_and_the_last_needs_no_newline() {
    let folder = Folder::new();
    folder.feed("build -o odd.tamis", b"\xff\xfe\na\r\n\n");
    folder.feed("check -c odd.tamis", b"\xff\xfe\na\r\n\n").prints("3\n");
    folder.feed("check -c odd.tamis", b"a\n\xff").prints("0\n");
    folder.feed("check odd.tamis", b"x\na\r").prints("a\r\n");
}

#[test]
fn records_without_a_key_are_in_no_filter() {
    let folder = folder();
    folder.feed("check -d , -k 2 even.tamis", "x,4\nnone\ny,5\n").prints("x,4\n");
    folder.feed("check -v -d , -k 2 even.tamis", "x,4\nnone\ny,5\n").prints("none\ny,5\n");
}

#[test]
fn a_filter_may_come_compressed_or_through_a_pipe() {
    let folder = folder();
    folder.write("even.tamis.gz", gzip(folder.read("even.tamis")));
    folder.prints("check -c even.tamis.gz all.txt", "500\n");
    folder.feed("check -c - all.txt", folder.read("even.tamis")).gives(0, "500\n");
    folder.refused("check - -", "standard input can be read only once");
}

#[test]
fn answers_come_as_soon_as_questions_do() {
    let folder = folder();
    let mut child = folder.piped("check even.tamis").start();
    let (mut questions, mut answers) = (child.stdin.take().unwrap(), child.stdout_lines());
    for question in ["4", "8"] {
        writeln!(questions, "{question}").unwrap();
        assert_eq!(answers.next().as_deref(), Some(question));
    }
    drop(questions);
    assert!(child.wait().success());
}

#[test]
fn a_reader_that_has_enough_is_a_quiet_success() {
    let folder = folder();
    folder.write("many.txt", "4\n".repeat(1_000_000));
    let mut child = folder.piped("check even.tamis many.txt").start();
    drop(child.stdout.take());
    Ended::of("check", child.output()).says(0, "");
}

#[test]
fn a_filter_over_its_rate_is_said_to_be() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..5000));
    folder.run("build --force --items 1000 a.txt -o full.tamis");
    let ended = folder.feed("check full.tamis", "77\n");
    ended.warns(3, "over its rate: it holds about ");
    ended.prints("77\n");
    folder.feed("check --force full.tamis", "77\n").has_status(0);
    // With -v, an over-full filter omits the lines that it finds.
    folder.feed("check -v full.tamis", "77\n").has_status(3);
}

#[test]
fn what_is_no_filter_is_refused() {
    let folder = folder();
    folder.write("empty", "");
    std::fs::create_dir(folder.path("folder")).unwrap();
    let good = folder.read("small.tamis");
    folder.write("short.tamis", &good[..good.len() - 1]);
    folder.write("long.tamis", [&good[..], b"\n"].concat());
    let mut newer = good.clone();
    newer[8] = 9;
    folder.write("newer.tamis", newer);
    for (filter, words) in [
        ("missing.tamis", "missing.tamis: no such file"),
        ("folder", "folder: is a directory"),
        ("empty", "empty: is empty"),
        ("all.txt", "all.txt: not a Tamis filter"),
        ("short.tamis", "short.tamis: truncated"),
        ("long.tamis", "long.tamis: damaged"),
        (
            "newer.tamis",
            "newer.tamis: format version 9 is newer than this release, which reads up to 1",
        ),
    ] {
        folder.refused(format!("check {filter} all.txt"), words);
        folder.refused(format!("check -f even.tamis -f {filter} all.txt"), words);
        folder.refused(format!("info {filter}"), words);
        folder.refused(format!("merge even.tamis {filter} -o out.tamis"), words);
        folder.refused(format!("merge {filter} even.tamis -o out.tamis"), filter);
    }
    folder.refused("check", "no filter is given");
    folder.refused("check even.tamis missing.txt", "missing.txt: no such file");
    folder.refused("check even.tamis folder", "folder: is a directory");
}

#[test]
fn a_flipped_bit_anywhere_in_a_filter_is_found() {
    let folder = folder();
    let good = folder.read("small.tamis");
    // The test flips one bit of every byte. The decoder's own tests flip each bit.
    for at in (0..good.len()).step_by(3) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        folder.write("bad.tamis", bad);
        folder.refused("check bad.tamis small.txt", "bad.tamis");
    }
}

#[test]
fn the_pass_that_finds_damage_may_be_left_out() {
    let folder = folder();
    let mut bad = folder.read("even.tamis");
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    folder.write("bad.tamis", bad);
    folder.refused("check bad.tamis all.txt", "the words checksum");
    folder.run("check -q --no-verify bad.tamis all.txt").has_status(0);
}
