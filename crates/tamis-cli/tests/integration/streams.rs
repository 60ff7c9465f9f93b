//! Standard streams that are closed, full or also the input, and files that change while a command
//! reads them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use tamis_testing::{CommandExt as _, join};

use crate::program::{Ended, Folder, lines};

/// Runs a shell command in which `tamis` is the program under test.
fn shell(folder: &Folder, line: &str) -> Ended {
    let script = format!("tamis() {{ {} \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_tamis"));
    let mut sh = Command::new("sh");
    Ended::of(line, sh.args(["-c", &script]).current_dir(folder.path(".")).run())
}

#[test]
fn a_full_or_closed_stderr_loses_words_and_nothing_else() {
    let folder = Folder::new();
    folder.write("list", "a\nb\na\n");
    folder.write("full", lines(0..2000));
    for stderr in ["2>/dev/full", "2>&-"] {
        for (line, status, stdout) in [
            ("dedup --stats list", 0, "a\nb\n"),
            ("dedup --rate 1e-9 list", 0, "a\nb\n"),
            ("dedup --wrong", 2, ""),
            ("dedup missing", 2, ""),
            ("", 2, ""),
            ("build --items 10 -o x.tamis full", 2, ""),
            ("build --items 10 --force -o x.tamis full", 3, ""),
            ("info x.tamis missing > /dev/null", 2, ""),
            ("check x.tamis list -c", 3, "3\n"),
            ("serve --port x", 2, ""),
        ] {
            shell(&folder, &format!("tamis {line} {stderr}")).gives(status, stdout);
        }
    }
}

#[test]
fn a_closed_standard_stream_is_an_error() {
    let folder = Folder::new();
    folder.write("list", "1\n2\n1\n");
    folder.ok("build list -o list.tamis");
    for line in [
        "dedup list",
        "dedup --count list",
        "dedup --state seen list",
        "ints sort list",
        "ints count list",
        "check list.tamis list",
        "info list.tamis",
        "plan --items 100 --rate 1%",
        "formats",
        "build list -o -",
        "completions bash",
        "guard example",
    ] {
        shell(&folder, &format!("tamis {line} >&-")).says(2, "tamis: standard output: is closed\n");
    }
    for line in ["dedup", "ints sort -", "check list.tamis", "build -o x", "info -"] {
        shell(&folder, &format!("tamis {line} <&-")).says(2, "tamis: standard input: is closed\n");
    }
    // A stream that the command does not use may be closed.
    for line in
        ["build list -o y >&- <&-", "check -q list.tamis list >&- <&-", "dedup list <&- >/dev/null"]
    {
        shell(&folder, &format!("tamis {line}")).says(0, "");
    }
}

#[test]
fn a_command_does_not_feed_on_its_own_output() {
    let folder = Folder::new();
    folder.write("list", lines(0..100_000));
    folder.write("copy", lines(0..100_000));
    fs::hard_link(folder.path("list"), folder.path("link")).unwrap();
    folder.ok("build copy -o all.tamis");
    for line in [
        "dedup list >> list",
        "dedup copy list >> list",
        "dedup link >> list",
        "dedup --repeated=all < list >> list",
        "dedup list -o - >> list",
        "dedup list -o /dev/stdout >> list",
        "ints uniq list >> list",
        "ints sort < list >> list",
        "ints or copy list >> list",
        "ints contains list copy >> list",
        "check all.tamis list >> list",
    ] {
        // A regression must not fill the disk: at most 64 MiB are written.
        shell(&folder, &format!("ulimit -f 131072; tamis {line}"))
            .warns(2, "is standard output too");
        assert_eq!(folder.read("list"), folder.read("copy"), "{line}");
    }
    // The output may be appended to another file. A device may be both input and output.
    shell(&folder, "tamis dedup list >> other; tamis dedup /dev/null > /dev/null").has_status(0);
    // An output with another name is replaced at the end of the command.
    shell(&folder, "tamis dedup list copy -o list >> list").has_status(0);
    assert_eq!(folder.read("list"), folder.read("copy"));
}

#[test]
fn standard_output_by_its_name_is_appended_to() {
    let folder = Folder::new();
    folder.write("log", "old\n");
    shell(&folder, "echo new | tamis dedup -o /dev/stdout >> log").has_status(0);
    assert_eq!(folder.read("log"), b"old\nnew\n");
}

#[test]
fn a_link_to_a_missing_file_stays_a_link() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("target", folder.path("link")).unwrap();
    folder.write("list", "a\n");
    folder.ok("dedup list -o link");
    assert_eq!(folder.read("target"), b"a\n");
    assert!(folder.path("link").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn other_names_of_a_replaced_file_are_reported() {
    let folder = Folder::new();
    folder.write("list", "a\n");
    folder.write("out", "old");
    fs::hard_link(folder.path("out"), folder.path("other")).unwrap();
    let note = "tamis: out: a hard link: its 1 other name keeps the old content\n";
    folder.run("dedup list -o out").says(0, note);
    assert_eq!((folder.read("out"), folder.read("other")), (b"a\n".to_vec(), b"old".to_vec()));
}

#[test]
fn a_filter_that_is_overwritten_under_a_check_ends_it_in_words() {
    // `cp` first truncates a file. Other programs overwrite the bytes in place.
    for is_cut in [true, false] {
        let folder = Folder::new();
        folder.write("list", lines(0..400_000));
        folder.ok("build list -o live");
        folder.write("other", lines(400_000..800_000));
        folder.ok("build other -o new");
        let mut child = folder.piped("check live").start();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"7\n").unwrap();
        let mut answers = child.stdout_lines();
        assert_eq!(answers.next().as_deref(), Some("7"));
        if is_cut {
            File::create(folder.path("live")).unwrap();
        } else {
            let mut live = OpenOptions::new().write(true).open(folder.path("live")).unwrap();
            live.write_all(&folder.read("new")).unwrap();
        }
        _ = stdin.write_all(lines(0..1000).as_bytes());
        drop(stdin);
        assert_eq!(answers.rest(), "", "no answer rests on what changed");
        let ended = Ended::of("check live", child.output());
        ended.warns(2, "overwritten while it was in use");
        assert_eq!(ended.stderr.lines().count(), 1);
    }
}

#[test]
fn quiet_leaves_only_errors() {
    let folder = Folder::new();
    folder.write("full", lines(0..2000));
    folder.run("build --quiet --items 10 --force -o x.tamis full").says(3, "");
    folder.run("--quiet check x.tamis full -c --no-progress").says(3, "");
    folder.refused("dedup missing --quiet", "missing: no such file");
}

/// Returns a pseudo-terminal: the controlling end, which reads its output, and the terminal.
fn terminal() -> (rustix::fd::OwnedFd, File) {
    let (controller, name) = terminal_and_name();
    let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
    (controller, terminal)
}

/// Returns the controlling end of a pseudo-terminal, and the name of the terminal.
fn terminal_and_name() -> (rustix::fd::OwnedFd, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    (controller, name.to_str().unwrap().to_owned())
}

/// Runs `tamis` with a terminal as its standard output.
fn on_a_terminal(folder: &Folder, line: &str) -> Ended {
    let (_controller, terminal) = terminal();
    let mut command = folder.piped(line);
    Ended::of(line, command.stdin(Stdio::null()).stdout(terminal).start().output())
}

/// Returns the text that `tamis` writes to a terminal as its standard error during a run of over a
/// second.
fn drawn(folder: &Folder, line: &str) -> String {
    let (controller, terminal) = terminal();
    let mut child = folder.piped(line).stdout(Stdio::null()).stderr(terminal).start();
    // A thread reads during the run: when the terminal's few kilobytes are full, the program waits.
    let reader = std::thread::spawn(move || {
        // The read fails when no program has the terminal open.
        let mut drawn = Vec::new();
        _ = File::from(controller).read_to_end(&mut drawn);
        String::from_utf8(drawn).unwrap()
    });
    let mut stdin = child.stdin.take().unwrap();
    for _ in 0..8 {
        stdin.write_all(lines(0..100_000).as_bytes()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    drop(stdin);
    assert!(child.wait().code().is_some_and(|code| code < 2), "{line}");
    join("the reader of the terminal", reader)
}

#[test]
fn no_progress_draws_no_bar_on_a_terminal() {
    let folder = Folder::new();
    folder.write("list", lines(0..10));
    folder.ok("build list -o list.tamis");
    std::thread::scope(|scope| {
        for command in
            ["dedup", "dedup --count", "build -o x.tamis", "check list.tamis", "ints count"]
        {
            let folder = &folder;
            scope.spawn(move || {
                let bar = drawn(folder, command);
                assert!(bar.contains("iB/s"), "{command}: {bar:?}");
            });
            for option in ["--no-progress", "--quiet"] {
                // `check --quiet` ends at the first line that is in the filter.
                if (command, option) != ("check list.tamis", "--quiet") {
                    scope.spawn(move || {
                        assert_eq!(drawn(folder, &format!("{command} {option}")), "");
                    });
                }
            }
        }
    });
}

#[test]
fn binary_output_does_not_go_to_a_terminal() {
    let folder = Folder::new();
    folder.write("list", "1\n2\n");
    folder.ok("build list -o list.tamis");
    for line in [
        "build list -o -",
        "build list -o /dev/stdout",
        "merge list.tamis list.tamis -o -",
        "ints sort --output-format u32 list",
    ] {
        on_a_terminal(&folder, line).warns(2, "is a terminal");
    }
    // The output is the file name of a terminal.
    let (_controller, name) = terminal_and_name();
    for line in ["build list -o", "merge list.tamis list.tamis -o", "convert list.tamis --to tamis"]
    {
        folder.refused(format!("{line} {name}"), &format!("{name}: is a terminal"));
    }
    folder.refused(format!("ints sort --output-format u32 list -o {name}"), "is a terminal");
    for line in ["ints sort list", "dedup list", "info list.tamis"] {
        on_a_terminal(&folder, line).has_status(0);
    }
    // The command writes the same data to a pipe.
    assert!(folder.command("build list -o -").run().stdout == folder.read("list.tamis"));
}
