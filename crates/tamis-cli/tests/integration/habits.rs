//! Texts for habits of other programs and for common mistakes.

use tamis_testing::CommandExt as _;

use crate::program::{Ended, Folder, tamis};

#[test]
fn habits_and_mistakes_get_a_text_that_helps() {
    let folder = Folder::new();
    folder.write("f", "B\na\na\n");
    for (line, words) in [
        ("dedup -u f", "'-u' is no option of 'tamis dedup': use --unique"),
        ("dedup -D f", "use --repeated=all"),
        ("dedup -z f", "use -0, records that end with NUL"),
        ("dedup -f1 f", "use -k N"),
        ("dedup -n f", "use 'tamis ints'"),
        ("dedup -d f", "add -k N or --csv (to print only repeated lines, use --repeated)"),
        ("build -d, -o out f", "-d sets the delimiter of fields: add -k N or --csv; see"),
        ("dedup -s2 f", "use -k N with -d DELIM"),
        ("dedup -w3 f", "use -k N with -d DELIM"),
        ("dedup -t, f", "use -d DELIM"),
        ("dedup --zero-terminated f", "use -0"),
        ("dedup --skip-fields 1 f", "use -k N"),
        ("dedup --group f", "use --repeated=all"),
        ("dedup --header f", "use --csv, which reads the first row of each file as its header"),
        ("build --header -o out f", "use --csv"),
        ("check --headers out f", "use --csv"),
        ("dedup --no-headers f", "use --csv --no-header"),
        ("dedup -d \\n -k2 f", "a newline ends a record, so no record has two fields: add -0"),
        ("dedup --window 1h --slices 0 f", "'0' is not a number of slices: write 1 to 255"),
        ("build --window 1h --slices 0 --items 9 -o out f", "'0' is not a number of slices"),
        (
            "dedup --repeated once f",
            "once: no such file; if it is the value of --repeated, write --repeated=once",
        ),
        ("dedup --repeated all f", "write --repeated=all"),
        ("dedup --stats json f", "write --stats=json"),
        ("dedup -q f", "unexpected argument '-q' found; see 'tamis dedup --help'"),
        ("dedup --zebra f", "unexpected argument '--zebra' found; see 'tamis dedup --help'"),
    ] {
        folder.refused(line, words);
        assert!(!folder.run(line).stderr.contains("-- -"), "{line}: no advice to name a file");
    }
    // Options that `uniq` and `sort` have in the same meaning.
    for line in ["dedup -i", "dedup --ignore-case"] {
        folder.feed(line, "a\nA\n").prints("a\n");
    }
    // An empty word is no file.
    Ended::of("dedup ''", tamis("dedup").arg("").run())
        .warns(2, "tamis: '' is an empty word, not a file or a value");
}

#[test]
fn one_item_is_not_called_items() {
    let folder = Folder::new();
    folder.write("one", "a\n");
    folder.ok("build --items 1 -o one.tamis one");
    folder.ok("build --kind cuckoo --items 1 -o one.cuckoo one");
    for line in [
        "info one.tamis",
        "info one.cuckoo",
        "plan --items 1 --rate 1%",
        "plan --items 1 --memory 64",
    ] {
        let text = folder.run(line).stdout;
        assert!(!text.contains(" 1 items") && !text.starts_with("1 items"), "{line}: {text}");
    }
}

/// As `sort -o` does.
#[cfg(unix)]
#[test]
fn a_read_only_output_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let folder = Folder::new();
    let set_mode = |name: &str, mode| {
        std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(".", 0o777);
    folder.write("f", "a\na\n");
    set_mode("f", 0o444);
    folder.write("g", "a\na\n");
    for args in [
        "dedup -o f f",
        "dedup -o f g",
        "dedup --state s -o f g",
        "build -o f g",
        "ints sort -o f g",
    ] {
        let mut command = folder.command(args);
        if rustix::process::geteuid().is_root() {
            // Root may write to any file.
            command.uid(65_534).gid(65_534);
            let can_run = command.args(["--help"]).output().is_ok_and(|help| help.status.success());
            if !can_run {
                eprintln!("another user cannot run the program: not tested");
                return;
            }
            command = folder.command(args);
            command.uid(65_534).gid(65_534);
        }
        Ended::of(args, command.run()).warns(2, "tamis: f: permission denied");
        assert_eq!(folder.read("f"), b"a\na\n", "{args}");
    }
}
