//! `--csv`: rows of RFC 4180, their header and their columns.

use std::process::Command;

use tamis_testing::CommandExt as _;

use crate::program::{Folder, lines};

const PEOPLE: &str = "\u{feff}id,\"the name\",note\r\n1,\"Doe, \"\"J.\"\"\",\"two\nlines\"\r\n2,\"Roe\",\r\n\
                      3,\"Doe, \"\"J.\"\"\",other\r\n4,Roe,x\r\n";

#[test]
fn rows_pass_unchanged_under_the_header() {
    let folder = Folder::new();
    folder.write("people.csv", PEOPLE);
    let header = "id,\"the name\",note\r\n";
    let [one, two] = ["1,\"Doe, \"\"J.\"\"\",\"two\nlines\"\r\n", "2,\"Roe\",\r\n"];
    let [three, four] = ["3,\"Doe, \"\"J.\"\"\",other\r\n", "4,Roe,x\r\n"];
    for (line, rows) in [
        ("dedup --csv -k 2 people.csv", [one, two].concat()),
        ("dedup --csv --field=2 --full people.csv", [one, two].concat()),
        ("dedup --csv -k2 --approx 0.001 people.csv", [one, two].concat()),
        ("dedup --csv -k2 --repeated people.csv", [three, four].concat()),
        ("dedup --csv -k2 --threads 3 people.csv people.csv", [one, two].concat()),
        ("dedup --csv -k3 --unique people.csv", [one, two, three, four].concat()),
        ("dedup --csv people.csv people.csv", [one, two, three, four].concat()),
    ] {
        folder.prints(line, format!("{header}{rows}"));
    }
    folder.prints(
        "dedup --csv -k2 --count people.csv",
        format!("        {header}      2 {one}      2 {two}"),
    );
    // The name of a column is a word of the command line, and contains a space here.
    folder.write("names.csv", PEOPLE.replace("\"the name\"", "name"));
    folder.prints("dedup --csv -k name names.csv", format!("id,name,note\r\n{one}{two}"));
}

#[test]
fn a_header_is_no_item_and_is_printed_once() {
    let folder = Folder::new();
    folder.write("known.csv", "email;id\na@x;1\n\"b;@x\";2\n");
    folder.write("new.csv", "id;email\n7;\"b;@x\"\n8;email\n9;a@x");
    folder.ok("build --csv -d ; -k email -o known.tamis known.csv");
    assert!(folder.ok("info known.tamis").contains("added         2,"));
    folder.prints("check --csv -d ; -k email known.tamis new.csv", "id;email\n7;\"b;@x\"\n9;a@x\n");
    folder.prints("check --csv -d ; -k email -v known.tamis new.csv", "id;email\n8;email\n");
    folder.prints("check --csv -d ; -k email -c known.tamis new.csv", "2\n");
    folder.prints("check --csv -d ; -k 1 --no-header known.tamis known.csv", "a@x;1\n\"b;@x\";2\n");
    folder.ok("add --csv -d ; -k email known.tamis new.csv");
    folder.prints("check --csv -d ; -k email -c known.tamis new.csv", "3\n");
    // `build` finds the column in each file. Rows of two layouts do not fit under one header.
    folder.ok("build --csv -d ; -k email -o both.tamis known.csv new.csv");
    folder.prints("check --csv -d ; -k email -c both.tamis known.csv new.csv", "5\n");
    folder.refused(
        "dedup --csv -d ; -k email -o out known.csv new.csv",
        "new.csv: line 1: the header differs",
    );
    // A header alone, and an empty file.
    folder.write("header.csv", "email;id");
    folder.write("empty", "");
    folder.prints(
        "dedup --csv -d ; -k email header.csv empty known.csv",
        "email;id\na@x;1\n\"b;@x\";2\n",
    );
    folder.prints("dedup --csv empty", "");
}

#[test]
fn mistakes_in_csv_are_named() {
    let folder = Folder::new();
    folder.write("a.csv", "id,name\n1,\"x\ny\"\n2,\"open\n3,z\n");
    folder.write("short.csv", "id,name\n1\n2\n");
    folder.write("twice.csv", "id,id\n1,2\n");
    folder.write("good.csv", "id,name\n1,2\n");
    folder.write("mac.csv", "id,name\r1,a\r1,b\r");
    let unclosed = "a.csv: line 4: a quote opens a field that no quote closes";
    for (line, words) in [
        ("dedup --csv -o out a.csv", unclosed),
        ("dedup --csv -k2 --count -o out a.csv", unclosed),
        ("build --csv -k name -o out a.csv", unclosed),
        (
            "dedup --csv -k nmae a.csv",
            "a.csv: line 1: no column 'nmae': the columns are 'id', 'name'",
        ),
        ("dedup --csv -k 3 a.csv", "a.csv: line 1: no column 3: the columns are 'id', 'name'"),
        ("build --csv -k nmae -o out a.csv", "a.csv: line 1: no column 'nmae'"),
        ("dedup --csv -k id twice.csv", "columns 1 and 2 are both named 'id'"),
        (
            "dedup --csv -k name -o out short.csv",
            "no line has the key (column 'name' of CSV by ',')",
        ),
        (
            "build --csv -k name -o out short.csv",
            "no line has the key (column 'name' of CSV by ',')",
        ),
        (
            "dedup -k name good.csv",
            "'name' is not a whole number above zero: only the columns of --csv",
        ),
        ("dedup --csv -k name --no-header good.csv", "give the number of the column"),
        ("dedup --csv -d :: good.csv", "separated by one byte"),
        ("dedup --csv -d \" good.csv", "separated by one byte"),
        ("dedup --csv -0 good.csv", "cannot be used with"),
        ("dedup --csv --json /a good.csv", "cannot be used with"),
        ("dedup --no-header good.csv", "--csv"),
        ("dedup --csv -d ; -k name good.csv", "if ',' separates the fields, give it with -d"),
        ("dedup --csv -k id mac.csv", "mac.csv: line 1: the header contains a carriage return"),
        ("dedup --csv mac.csv", "convert them (tr '\\r' '\\n')"),
        ("build --csv -k id -o out mac.csv", "the header contains a carriage return"),
        ("dedup --csv --window 1h --time-field at good.csv", "no column 'at'"),
        ("dedup --window 1h --time-field at good.csv", "'at' is not a whole number above zero"),
        (
            "dedup --csv --no-header --window 1h --time-field at good.csv",
            "give the number of the column",
        ),
    ] {
        folder.refused(line, words);
    }
    // Rows before the mistake reach a pipe, and the status says that the result is incomplete.
    folder.run("dedup --csv -k name a.csv").gives(2, "id,name\n1,\"x\ny\"\n");
    // Some rows have too few fields: they are kept, and only compared with each other.
    folder.write("some.csv", "id,name\n1\n2,x\n1\n3,x\n");
    folder.prints("dedup --csv -k name some.csv", "id,name\n1\n2,x\n");
    folder
        .run("build --csv -k name -o out some.csv")
        .says(0, "tamis: skipped 2 records that have no such key\n");
}

#[test]
fn a_row_without_end_takes_bounded_memory() {
    let folder = Folder::new();
    folder.write("long.csv", format!("id,name\n1,\"{}", lines(0..600_000)));
    folder.refused(
        "dedup --csv --memory 16M -o out long.csv",
        "long.csv: line 2: a row of more than 2.0 MiB",
    );
    folder.write("closed.csv", format!("id,name\n1,\"{}\"\n2,x\n", lines(0..600_000)));
    assert_eq!(folder.ok("dedup --csv -k name closed.csv").into_bytes(), folder.read("closed.csv"));
}

#[test]
fn every_path_drops_the_rows_of_equal_columns() {
    let folder = Folder::new();
    let row = |id: u64, name: u64| format!("{id},\"name\n\"\"{name}\"\"\",x\n");
    let all: String = (0..30_000).map(|id| row(id, id % 10_000)).collect();
    folder.write("all.csv", format!("id,name,rest\n{all}"));
    let once: String = (0..10_000).map(|id| row(id, id)).collect();
    let expected = format!("id,name,rest\n{once}");
    for options in
        ["", "--threads 1", "--threads 3", "--full", "--memory 64M", "--state seen --checkpoint 1K"]
    {
        assert!(
            folder.ok(format!("dedup --csv -k name {options} all.csv")) == expected,
            "{options}"
        );
    }
    // A second run with the state drops all rows, and writes the header of its output.
    folder.prints("dedup --csv -k name --state seen all.csv", "id,name,rest\n");
    folder.refused("dedup --csv -k id --state seen all.csv", "seen");
    folder.feed("dedup --csv -k name", format!("id,name,rest\n{all}")).prints(expected);
}

#[test]
fn a_run_that_continues_writes_no_second_header() {
    let folder = Folder::new();
    let rows: String = (0..20_000).map(|id| format!("{id},\"name\n{}\"\n", id % 9000)).collect();
    folder.write("all.csv", format!("id,name\n{rows}x,\"open"));
    let line = "dedup --csv -k name --state seen --checkpoint 1K -o out all.csv";
    folder.run(line).has_status(2);
    folder.write("all.csv", format!("id,name\n{rows}x,\"open\"\n"));
    folder.run(line).has_status(0);
    let once: String = (0..9000).map(|id| format!("{id},\"name\n{id}\"\n")).collect();
    assert!(folder.read("out") == format!("id,name\n{once}x,\"open\"\n").into_bytes());
}

/// The checkpoint of the killed run is inside the block of the header.
#[test]
fn a_killed_run_loses_no_row_of_a_short_table() {
    let folder = Folder::new();
    let table: String = (0..12_000).map(|id| format!("{id:06},0123456789\n")).collect();
    folder.write("in.csv", format!("id,text\n{table}"));
    let line = "dedup --csv --state s --hash-bits 64 --checkpoint 1K -o out in.csv";
    let script = format!("ulimit -f 160; exec {} {line}", env!("CARGO_BIN_EXE_tamis"));
    let killed = Command::new("sh").args(["-c", &script]).current_dir(folder.path(".")).run();
    assert_eq!(killed.status.code(), None, "the system kills a run with a large file");
    folder.run(line).has_status(0);
    assert!(folder.read("out") == format!("id,text\n{table}").into_bytes());
}

#[test]
fn the_time_of_a_row_is_a_column() {
    let folder = Folder::new();
    let text = "at,user\n\"1000\",a\n1010,a\n5000,a\n";
    folder
        .feed("dedup --csv -k user --window 60s --time-field at", text)
        .gives(0, "at,user\n\"1000\",a\n5000,a\n");
}

#[test]
fn a_quoted_line_without_csv_gets_a_tip() {
    let folder = Folder::new();
    let ended = folder.feed("dedup -d, -k2", "\"Doe, J.\",1\n\"Doe, M.\",2\n");
    ended.warns(0, "replace -d, by --csv");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert_eq!(folder.feed("dedup -d, -k2", "a,1\n").stderr, "");
}
