//! Compares every mode with a simple model that keeps the order and whole keys.

use std::collections::HashMap;

use proptest::prelude::*;

use super::program::dedup;
use crate::program::Folder;

#[derive(Clone, Copy, Debug)]
enum Mode {
    First,
    Once,
    All,
    Unique,
    Count,
    CountRepeated,
}

/// The modes and their options.
const MODES: [(Mode, &[&str]); 6] = [
    (Mode::First, &[]),
    (Mode::Once, &["--repeated"]),
    (Mode::All, &["--repeated=all"]),
    (Mode::Unique, &["--unique"]),
    (Mode::Count, &["--count"]),
    (Mode::CountRepeated, &["--count", "--repeated"]),
];

impl Mode {
    /// Returns the expected output for these records; `key` returns the compared part of a record.
    fn oracle(self, records: &[&[u8]], key: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
        let mut total = HashMap::new();
        records.iter().for_each(|record| *total.entry(key(record)).or_insert(0) += 1);
        let mut before = HashMap::new();
        let mut printed = Vec::new();
        for record in records {
            let (count, before) = (total[&key(record)], before.entry(key(record)).or_insert(0));
            let counted = || [format!("{count:>7} ").as_bytes(), record].concat();
            let line = match self {
                Mode::First if *before == 0 => Some(record.to_vec()),
                Mode::Once if *before == 1 => Some(record.to_vec()),
                Mode::All if *before > 0 => Some(record.to_vec()),
                Mode::Unique if count == 1 => Some(record.to_vec()),
                Mode::Count if *before == 0 => Some(counted()),
                Mode::CountRepeated if *before == 0 && count > 1 => Some(counted()),
                _ => None,
            };
            *before += 1;
            printed.extend(line);
        }
        printed
    }
}

/// Generates records of few different bytes, so that they repeat: the bytes include delimiters,
/// commas, and a byte that is not UTF-8.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"ab\n\n\0,\r\xff".to_vec());
    prop_oneof![
        prop::collection::vec(byte, 0..400),
        prop::collection::vec(prop::sample::select(b"abcdefgh\n".to_vec()), 0..20_000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_mode_prints_what_the_oracle_does(
        text in text(),
        (mode, options) in prop::sample::select(MODES.to_vec()),
        null: bool,
        method in prop::sample::select(vec!["--hash-bits=64", "--hash-bits=128", "--full", "--exact"]),
        field in prop::option::of(1_usize..4),
    ) {
        let end = if null { 0 } else { b'\n' };
        let mut records: Vec<&[u8]> = text.split(|&byte| byte == end).collect();
        if records.last().is_some_and(|record| record.is_empty()) {
            records.pop();
        }
        // A record with too few fields is compared as a whole, with other records that lack the
        // field.
        let key = |record: &[u8]| {
            let part = field.map(|number| record.split(|&byte| byte == b',').nth(number - 1));
            match part {
                Some(Some(part)) => [b"field", part].concat(),
                _ => [b"whole", record].concat(),
            }
        };
        let mut options = options.to_vec();
        options.push(method);
        if null {
            options.push("-0");
        }
        let number = field.map(|number| number.to_string());
        if let Some(number) = &number {
            options.extend(["-d,", "-k", number]);
        }
        let expected: Vec<u8> = mode
            .oracle(&records, key)
            .into_iter()
            .flat_map(|record| [record, vec![end]].concat())
            .collect();
        let run = dedup(options, &text);
        // A run in which no record has the key prints the same, and fails.
        let has_key = records.is_empty() || records.iter().any(|it| key(it).starts_with(b"field"));
        let status = if field.is_some() && !has_key { 2 } else { 0 };
        prop_assert_eq!((run.stdout, run.status), (expected, status));
    }

    #[test]
    fn without_keys_of_their_own_records_keep_apart(
        text in text(),
        option in prop::sample::select(vec!["--url", "--json=/a"]),
    ) {
        // None of these records is a URL or JSON with a member `a`: whole records are compared.
        let expected = super::program::first_occurrences(&text);
        let run = dedup([option], &text);
        let status = if text.is_empty() { 0 } else { 2 };
        prop_assert_eq!((run.stdout, run.status), (expected, status));
    }
}

#[test]
fn keys_come_from_json_and_urls() {
    let pages = "\
{\"url\": \"http://Example.org:80/a/../b\", \"n\": 1}
{\"url\": \"http://example.org/b#top\", \"n\": 2}
{\"url\": \"http://example.org/c\", \"n\": 1}
";
    let line = |i: usize| pages.lines().nth(i).unwrap();
    let printed =
        |options: &[&str]| String::from_utf8(dedup(options, pages.as_bytes()).quietly()).unwrap();
    assert_eq!(printed(&["--json", "/n"]), format!("{}\n{}\n", line(0), line(1)));
    assert_eq!(printed(&["--json", "/url", "--url"]), format!("{}\n{}\n", line(0), line(2)));
    assert_eq!(printed(&["--json", "/url"]), pages);
    // A value keeps its type.
    let values = b"null\n\"null\"\ntrue\n\"true\"\n7\n\"7\"\n[]\n\"[]\"\n";
    let again = [&values[..], b"\"\\u006eull\"\n [ ]\n"].concat();
    for method in ["--hash-bits=64", "--full"] {
        assert_eq!(dedup([method, "--json="], &again).quietly(), values);
    }
}

#[test]
fn several_files_are_one_set_and_each_ends_its_last_line() {
    let folder = Folder::new();
    folder.write("one", "a\nb");
    folder.write("two", "b\nc\na");
    folder.prints("dedup one two", "a\nb\nc\n");
    folder.feed("dedup one - two", "x\na").gives(0, "a\nb\nx\nc\n");
}

#[test]
fn case_and_white_space_may_be_ignored() {
    let text = "A\na\n a\r\n\u{c4}\n\u{e4}\n".as_bytes();
    assert_eq!(dedup(["-i"], text).quietly(), "A\n a\r\n\u{c4}\n".as_bytes());
    let trimmed = dedup(["-i", "--trim", "--full"], text).quietly();
    assert_eq!(trimmed, "A\n\u{c4}\n".as_bytes());
    dedup(["-d\\n", "-k2"], text).fails_with("a newline ends a record");
}

#[test]
fn carriage_returns_make_a_difference() {
    assert_eq!(dedup([""; 0], b"a\r\na\na\r\n").quietly(), b"a\r\na\n");
}

#[test]
fn an_output_may_be_an_input() {
    let folder = Folder::new();
    folder.write("list", "a\nb\na\n");
    folder.prints("dedup -o list list", "");
    assert_eq!(folder.read("list"), b"a\nb\n");
}

#[test]
fn statistics_say_what_was_done() {
    let run = dedup(["--stats=json", "-k2"], b"a\t1\nb\t1\nc\n");
    let stats: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!(run.stdout, b"a\t1\nc\n");
    let numbers = ["records", "written", "distinct", "keyless", "bytes_read", "bytes_written"];
    assert_eq!(numbers.map(|name| stats[name].as_u64().unwrap()), [3, 2, 2, 1, 10, 6]);
    assert_eq!(stats["method"], "exact by 64-bit hash");
    let text = dedup(["--stats"], b"a\na\n").stderr;
    assert!(text.contains("records read") && text.contains("wrongly seen"), "{text}");
    assert!(dedup(["--stats", "--full"], b"a\n").stderr.contains("certain"));
}
