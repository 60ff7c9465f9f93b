//! `tamis ints` as a user runs it, compared with `BTreeSet`.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use tamis_testing::CommandExt as _;

use crate::program::{Folder, lines};

/// Runs a job that must succeed, and returns what it printed.
fn printed(folder: &Folder, line: &str, stdin: impl AsRef<[u8]>) -> String {
    let ended = folder.feed(format!("ints {line}"), stdin);
    ended.says(0, "");
    ended.stdout
}

#[test]
fn the_articles_task_is_one_command() {
    let folder = Folder::new();
    assert_eq!(printed(&folder, "dups", "1\n2\n3\n4\n5\n6\n7\n8\n3\n4\n"), "3\n4\n");
    assert_eq!(printed(&folder, "dups", ""), "");
    assert_eq!(printed(&folder, "dups", "0 0"), "0\n");
}

#[test]
fn binary_integers_that_begin_like_packed_data_are_read_as_they_are() {
    let folder = Folder::new();
    // The first bytes of zstd, gzip, xz and bzip2.
    let first = [0xfd2f_b528_u32, 559_903, u32::from_le_bytes(*b"\xfd7zX"), 0x3968_5a42];
    for value in first.into_iter().chain([407_710_288]) {
        let values = [value, 0x5941_315a, 1];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        folder.feed("ints uniq --format=u32 --output-format=text", &bytes).gives(0, lines(values));
        let count = printed(&folder, "count --format=u32 --unpack=no --json", &bytes);
        assert!(count.contains("\"total\":3"));
    }
    let packed = zstd::encode_all(&7_u64.to_le_bytes()[..], 1).unwrap();
    let unpacked = "uniq --format=u64 --unpack=zstd --output-format=text";
    assert_eq!(printed(&folder, unpacked, &packed), "7\n");
    folder.write("ids.zst", &packed);
    folder.run("ints count --format=u64 ids.zst").warns(2, "add --unpack zstd");
}

#[test]
fn uniq_keeps_the_order_and_sort_does_not() {
    let input = b"9\n18446744073709551615\n9\n0\n4294967296\n0\n4294967295";
    let uniq = "9\n18446744073709551615\n0\n4294967296\n4294967295\n";
    let sorted = "0\n9\n4294967295\n4294967296\n18446744073709551615\n";
    let folder = Folder::new();
    assert_eq!(printed(&folder, "uniq", input), uniq);
    assert_eq!(printed(&folder, "sort", input), sorted);
}

#[test]
fn text_is_read_with_any_white_space_signs_and_zeros() {
    let input = b"\xef\xbb\xbf007\r\n +8\t9\r\n\r\n\n10";
    assert_eq!(printed(&Folder::new(), "uniq", input), "7\n8\n9\n10\n");
}

#[test]
fn count_prints_a_table_or_json() {
    let folder = Folder::new();
    let table = printed(&folder, "count", "5 5 7 5 9 9");
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [["total", "6"], ["distinct", "3"], ["repeated", "2"], ["min", "5"], ["max", "9"]]
    );
    let json = folder.feed("ints count --json", "5 5 7 5 9 9").json();
    let expected =
        serde_json::json!({"total": 6, "distinct": 3, "repeated": 2, "min": 5, "max": 9});
    assert_eq!(json, expected);
    let json = folder.json("ints count --json");
    assert_eq!((&json["total"], &json["min"]), (&0.into(), &serde_json::Value::Null));
}

#[test]
fn contains_answers_like_grep() {
    let folder = Folder::new();
    folder.write("set", "1\n3\n5000000000\n");
    let found = printed(&folder, "contains set", "3 2 3 5000000000");
    assert_eq!(found, "3\n3\n5000000000\n");
    assert_eq!(printed(&folder, "contains -v set", "3 2 4"), "2\n4\n");
    assert_eq!(printed(&folder, "contains -c set", "3 2 3"), "2\n");
    folder.feed("ints contains set", "2 4").gives(1, "");
    folder.feed("ints contains -", "2 4").has_status(2);
}

#[test]
fn binary_is_read_and_written_little_endian() {
    let values = [7_u32, 9, 7, u32::MAX];
    let narrow: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let wide: Vec<u8> = values.iter().flat_map(|&value| u64::from(value).to_le_bytes()).collect();
    let folder = Folder::new();
    let output = folder.command("ints uniq --format u32").feed(narrow);
    assert_eq!(output.stdout, [&7_u32.to_le_bytes()[..], &[9, 0, 0, 0], &[255; 4]].concat());
    let text = printed(&folder, "uniq --format u64 --output-format text", wide);
    assert_eq!(text, "7\n9\n4294967295\n");
    let output = folder.command("ints sort --output-format u64").feed("3 1 3");
    assert_eq!(output.stdout, [1_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
}

#[test]
fn several_files_and_packed_ones_are_one_stream() {
    let folder = Folder::new();
    folder.write("plain", "1\n2\n");
    folder.write("packed", zstd::encode_all(&b"2\n3\n3"[..], 1).unwrap());
    // The last line of a file may lack its newline.
    assert_eq!(printed(&folder, "dups packed plain", ""), "2\n3\n");
    assert_eq!(printed(&folder, "uniq packed - plain", "9"), "2\n3\n9\n1\n");
}

#[test]
fn many_integers_move_to_bitmaps_and_stay_exact() {
    // There are enough random 28-bit integers for the sets to change their structure.
    let values: Vec<u64> = (1..=1_500_000_u64)
        .map(|i| i.wrapping_mul(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36)
        .collect();
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for &value in &values {
        *counts.entry(value).or_default() += 1;
    }
    let repeated: Vec<u64> =
        counts.iter().filter(|&(_, &count)| count > 1).map(|(&value, _)| value).collect();
    assert!(!repeated.is_empty());
    let (folder, input) = (Folder::new(), lines(&values));
    let range = "--range=0..=268435455";
    for options in ["", range, &format!("{range} --threads=2")] {
        assert!(
            printed(&folder, &format!("dups {options}"), &input) == lines(&repeated),
            "{options}"
        );
    }
    assert!(printed(&folder, &format!("sort {range}"), &input) == lines(counts.keys()));
    let mut seen = BTreeSet::new();
    let first: Vec<u64> = values.iter().copied().filter(|&value| seen.insert(value)).collect();
    for option in [range, "--memory=24M"] {
        assert!(printed(&folder, &format!("uniq {option}"), &input) == lines(&first), "{option}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_output() {
    // The input has several blocks of 24-bit integers with repeats, and some integers above 32
    // bits.
    let values: Vec<u64> = (1..=700_000_u64)
        .map(|i| {
            i.wrapping_mul(i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
                | u64::from(i % 5_000 == 0) << 40
        })
        .collect();
    let folder = Folder::new();
    folder.write("many", lines(&values));
    folder.write("some", lines(&values[..100_000]));
    for job in [
        "dups many",
        "dups --range=0..=2199023255551 many some",
        "uniq many some",
        "sort --output-format=u64 many",
        "count many",
        "contains -v some many",
        "andnot --range=0..=2199023255551 many some",
    ] {
        let outputs = [1, 2, 8].map(|threads| {
            let output = folder.command(&format!("ints {job} --threads={threads}")).run();
            assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{job}");
            output.stdout
        });
        assert!(!outputs[0].is_empty(), "{job}");
        assert!(outputs[0] == outputs[1] && outputs[0] == outputs[2], "{job}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn set_algebra_agrees_with_tree_sets(
        files in prop::collection::vec(
            prop::collection::vec(prop_oneof![0_u64..60, (1_u64 << 32) - 5..(1 << 32) + 5], 0..60),
            2..4,
        ),
    ) {
        let folder = Folder::new();
        let mut names = String::new();
        for (name, values) in ["a", "b", "c"].into_iter().zip(&files) {
            folder.write(name, lines(values));
            names.extend([" ", name]);
        }
        let sets: Vec<BTreeSet<u64>> =
            files.iter().map(|values| values.iter().copied().collect()).collect();
        type Combine = fn(&BTreeSet<u64>, &BTreeSet<u64>) -> BTreeSet<u64>;
        let jobs: [(&str, Combine); 4] = [
            ("and", |a, b| a & b),
            ("or", |a, b| a | b),
            ("xor", |a, b| a ^ b),
            ("andnot", |a, b| a - b),
        ];
        for (job, combine) in jobs {
            let expected = sets[1..].iter().fold(sets[0].clone(), |all, set| combine(&all, set));
            let found = printed(&folder, &format!("{job}{names}"), "");
            prop_assert_eq!(found, lines(&expected), "{}", job);
        }
    }
}

#[test]
fn or_takes_one_file_too() {
    let folder = Folder::new();
    folder.write("one", "3\n1\n3\n");
    assert_eq!(printed(&folder, "or one", ""), "1\n3\n");
    assert_eq!(printed(&folder, "or -", "2\n2\n"), "2\n");
}
