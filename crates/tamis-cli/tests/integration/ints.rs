//! `tamis ints` as a user runs it, compared with `BTreeSet`.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::program::{file, ints};

/// Runs a job that must succeed, and returns what it printed.
fn printed(args: &[&str], stdin: &[u8]) -> String {
    let output = ints(args, stdin);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn text<'a>(values: impl IntoIterator<Item = &'a u64>) -> String {
    values.into_iter().map(|value| format!("{value}\n")).collect()
}

#[test]
fn the_articles_task_is_one_command() {
    assert_eq!(printed(&["dups"], b"1\n2\n3\n4\n5\n6\n7\n8\n3\n4\n"), "3\n4\n");
    assert_eq!(printed(&["dups"], b""), "");
    assert_eq!(printed(&["dups"], b"0 0"), "0\n");
}

#[test]
fn binary_integers_that_begin_like_packed_data_are_read_as_they_are() {
    // The first bytes of zstd, gzip, xz and bzip2.
    let first = [0xfd2f_b528_u32, 559_903, u32::from_le_bytes(*b"\xfd7zX"), 0x3968_5a42];
    for value in first.into_iter().chain([407_710_288]) {
        let values = [value, 0x5941_315a, 1];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let output = ints(&["uniq", "--format=u32", "--output-format=text"], &bytes);
        let expected: String = values.iter().map(|value| format!("{value}\n")).collect();
        assert_eq!(output.status.code(), Some(0), "{value}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        let count = ["count", "--format=u32", "--unpack=no", "--json"];
        assert!(printed(&count, &bytes).contains("\"total\":3"));
    }
    let packed = zstd::encode_all(&7_u64.to_le_bytes()[..], 1).unwrap();
    let unpacked = ["uniq", "--format=u64", "--unpack=zstd", "--output-format=text"];
    assert_eq!(printed(&unpacked, &packed), "7\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ids.zst");
    std::fs::write(&path, &packed).unwrap();
    let output = ints(&["count", "--format=u64", path.to_str().unwrap()], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("add --unpack zstd"));
}

#[test]
fn uniq_keeps_the_order_and_sort_does_not() {
    let input = b"9\n18446744073709551615\n9\n0\n4294967296\n0\n4294967295";
    let uniq = "9\n18446744073709551615\n0\n4294967296\n4294967295\n";
    let sorted = "0\n9\n4294967295\n4294967296\n18446744073709551615\n";
    assert_eq!(printed(&["uniq"], input), uniq);
    assert_eq!(printed(&["sort"], input), sorted);
}

#[test]
fn text_is_read_with_any_white_space_signs_and_zeros() {
    let input = b"\xef\xbb\xbf007\r\n +8\t9\r\n\r\n\n10";
    assert_eq!(printed(&["uniq"], input), "7\n8\n9\n10\n");
}

#[test]
fn count_prints_a_table_or_json() {
    let table = printed(&["count"], b"5 5 7 5 9 9");
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [["total", "6"], ["distinct", "3"], ["repeated", "2"], ["min", "5"], ["max", "9"]]
    );
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["count", "--json"], b"5 5 7 5 9 9")).unwrap();
    let expected =
        serde_json::json!({"total": 6, "distinct": 3, "repeated": 2, "min": 5, "max": 9});
    assert_eq!(json, expected);
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["count", "--json"], b"")).unwrap();
    assert_eq!((&json["total"], &json["min"]), (&0.into(), &serde_json::Value::Null));
}

#[test]
fn contains_answers_like_grep() {
    let folder = tempfile::tempdir().unwrap();
    let set = file(folder.path(), "set", "1\n3\n5000000000\n");
    assert_eq!(printed(&["contains", &set], b"3 2 3 5000000000"), "3\n3\n5000000000\n");
    assert_eq!(printed(&["contains", "-v", &set], b"3 2 4"), "2\n4\n");
    assert_eq!(printed(&["contains", "-c", &set], b"3 2 3"), "2\n");
    let none = ints(&["contains", &set], b"2 4");
    assert_eq!((none.status.code(), none.stdout), (Some(1), vec![]));
    let both = ints(&["contains", "-"], b"2 4");
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn binary_is_read_and_written_little_endian() {
    let values = [7_u32, 9, 7, u32::MAX];
    let narrow: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let wide: Vec<u8> = values.iter().flat_map(|&value| u64::from(value).to_le_bytes()).collect();
    let output = ints(&["uniq", "--format", "u32"], &narrow);
    assert_eq!(output.stdout, [&7_u32.to_le_bytes()[..], &[9, 0, 0, 0], &[255; 4]].concat());
    let args = ["uniq", "--format", "u64", "--output-format", "text"];
    assert_eq!(printed(&args, &wide), "7\n9\n4294967295\n");
    let output = ints(&["sort", "--output-format", "u64"], b"3 1 3");
    assert_eq!(output.stdout, [1_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat());
}

#[test]
fn several_files_and_packed_ones_are_one_stream() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(folder.path(), "plain", "1\n2\n");
    let packed = file(folder.path(), "packed", zstd::encode_all(&b"2\n3\n3"[..], 1).unwrap());
    // The last line of a file may lack its newline.
    assert_eq!(printed(&["dups", &packed, &plain], b""), "2\n3\n");
    assert_eq!(printed(&["uniq", &packed, "-", &plain], b"9"), "2\n3\n9\n1\n");
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
    let input = text(&values);
    let range = "--range=0..=268435455";
    for args in [&["dups"][..], &["dups", range], &["dups", range, "--threads=2"]] {
        assert!(printed(args, input.as_bytes()) == text(&repeated), "{args:?}");
    }
    assert!(printed(&["sort", range], input.as_bytes()) == text(counts.keys()));
    let mut seen = BTreeSet::new();
    let first: Vec<u64> = values.iter().copied().filter(|&value| seen.insert(value)).collect();
    assert!(printed(&["uniq", range], input.as_bytes()) == text(&first));
    assert!(printed(&["uniq", "--memory=24M"], input.as_bytes()) == text(&first));
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
    let folder = tempfile::tempdir().unwrap();
    let many = file(folder.path(), "many", text(&values));
    let some = file(folder.path(), "some", text(&values[..100_000]));
    let range = "--range=0..=2199023255551";
    for job in [
        &["dups", &many][..],
        &["dups", range, &many, &some],
        &["uniq", &many, &some],
        &["sort", "--output-format=u64", &many],
        &["count", &many],
        &["contains", "-v", &some, &many],
        &["andnot", range, &many, &some],
    ] {
        let outputs = ["--threads=1", "--threads=2", "--threads=8"].map(|threads| {
            let output = ints(&[job, &[threads]].concat(), b"");
            assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{job:?}");
            output.stdout
        });
        assert!(!outputs[0].is_empty(), "{job:?}");
        assert!(outputs[0] == outputs[1] && outputs[0] == outputs[2], "{job:?}");
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
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> = files
            .iter()
            .enumerate()
            .map(|(i, values)| file(folder.path(), &i.to_string(), text(values)))
            .collect();
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
            let mut args = vec![job];
            args.extend(names.iter().map(String::as_str));
            prop_assert_eq!(printed(&args, b""), text(&expected), "{}", job);
        }
    }
}

#[test]
fn or_takes_one_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let one = file(folder.path(), "one", "3\n1\n3\n");
    assert_eq!(printed(&["or", &one], b""), "1\n3\n");
    assert_eq!(printed(&["or", "-"], b"2\n2\n"), "2\n");
}
