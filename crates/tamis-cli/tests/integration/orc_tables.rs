//! Whole ORC files, written by pyarrow and by ORC's Java library, as a user runs the program on them.

use tamis_cli::orc_file::{OrcFile, is_orc};
use tamis_formats::orc::RowGroups;

use crate::orc_builder::{OrcBuilder, StripeBuilder, bytes, filters, number, original_filters};
use crate::program::{Folder, golden_json, lines};

/// Returns the texts of each column of a golden file.
fn texts(golden: &str) -> Vec<(String, Vec<String>)> {
    let all = golden_json(golden);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let columns = all.as_object().unwrap().iter();
    columns
        .map(|(name, of)| (name.clone(), of.as_array().unwrap().iter().map(text).collect()))
        .collect()
}

#[test]
fn every_value_is_found_by_the_text_that_its_writer_prints() {
    for (golden, texts_of, columns) in
        [("orc/types.orc", "orc/types.json", 19), ("orc/java.orc", "orc/java.json", 14)]
    {
        let folder = Folder::new();
        folder.copy_golden(golden, "t.orc");
        let all = texts(texts_of);
        assert_eq!(all.len(), columns);
        // The C++ writer hashes a FLOAT that it does not store.
        let is_read = |column: &str| golden != "orc/types.orc" || column != "f";
        for (column, values) in all.into_iter().filter(|(column, _)| is_read(column)) {
            let check = format!("check -c --no-name t.orc --column {column} items.txt");
            folder.write("items.txt", values.join("\n"));
            let expected = format!("{}\n", values.len());
            folder.prints(&check, &expected);
            if !["s", "v", "bin", "a.c"].contains(&&column[..])
                && !column.starts_with(['a', '"', 'm'])
            {
                // Lines of Windows.
                folder.write("items.txt", values.join("\r\n") + "\r\n");
                folder.prints(&check, &expected);
            }
        }
    }
}

#[test]
fn absent_values_are_found_at_the_rate_of_their_filter() {
    const ITEMS: u64 = 20_000;
    type AbsentValue = fn(u64) -> String;
    let absent: [(&str, AbsentValue); 11] = [
        ("i64", |i| (i * 7 + 1).to_string()),
        ("i32", |i| (i * 3 + 1).to_string()),
        ("s", |i| format!("absent {i}")),
        ("\"a.b\"", |i| format!("absent {i}")),
        ("a.b", |i| format!("absent {i}")),
        ("bin", |i| format!("absent {i}")),
        ("day", |i| (100_000 + i).to_string()),
        ("ts", |i| format!("{}-01-01 00:{:02}:00.{:03}", 2100 + i % 7000, i % 60, i % 1000)),
        ("tz", |i| format!("{}-01-01T00:{:02}:00.{:03}Z", 2100 + i % 7000, i % 60, i % 1000)),
        ("dec", |i| format!("{i}.07")),
        ("d", |i| format!("{i}.03")),
    ];
    let folder = Folder::new();
    folder.copy_golden("orc/types.orc", "t.orc");
    for (column, of) in absent {
        folder.write("absent.txt", lines((0..ITEMS).map(of)));
        let ended = folder.run(format!("check -c t.orc --column {column} absent.txt"));
        ended.is_done();
        let found = ended.stdout.lines().map(|line| line.rsplit_once(':').unwrap());
        let found: Vec<_> =
            found.map(|(name, count)| (name, count.parse::<u64>().unwrap())).collect();
        let groups = ["0.0", "0.1", "1.0", "1.1"].map(|group| format!("t.orc[{group}].{column}"));
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), groups);
        let info = folder.json(format!("info --json t.orc --column {column}"));
        for (index, (name, count)) in found.into_iter().enumerate() {
            // Planned for 1 %. A filter of 25 items may have more bits set than planned.
            let rate = info[index]["rate_now"].as_f64().unwrap();
            let (n, found) = (ITEMS as f64, count as f64);
            let deviation = (n * rate).sqrt();
            assert!(rate < 0.02 && (found - n * rate).abs() < 5.0 * deviation, "{name}: {count}");
        }
    }
}

#[test]
fn an_item_is_reported_for_its_stripe_and_row_group() {
    let folder = Folder::new();
    folder.copy_golden("orc/types.orc", "t.orc");
    folder
        .feed("check t.orc --column s", "text é中 10\ntext é中 80\n")
        .shows(&["t.orc[0.0].s:text é中 10\n", "t.orc[1.1].s:text é中 80\n"]);
    let text = folder.ok("info t.orc --column s");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2 + 4, "{text}");
    assert!(lines[1].trim_start().starts_with("row group  column  items about"), "{text}");
    assert!(lines[5].trim_start().starts_with("1.1  s "), "{text}");
    assert!(lines[5].ends_with("  text in UTF-8"), "{text}");
    let list = folder.json("info --json t.orc --column a.c.d");
    assert_eq!(list[3]["name"], "t.orc[1.1].a.c.d");
}

#[test]
fn row_groups_become_one_filter_if_that_is_wanted() {
    let folder = Folder::new();
    folder.copy_golden("orc/types.orc", "t.orc");
    let all = texts("orc/types.json");
    let (_, values) = all.iter().find(|(column, _)| column == "dec").unwrap();
    folder.write("items.txt", values.join("\n"));
    folder
        .refused("convert t.orc --column dec one.orcbloom", "'convert --union' puts them together");
    // Notes name the columns that are left out.
    let ended = folder.run("convert t.orc one.orcbloom --union");
    ended.warns(2, "choose one with --column (\"a.b\", a.b,");
    assert!(ended.stderr.ends_with(", s, ts, tz)\n"), "{ended:?}");
    folder.run("convert t.orc --column dec one.orcbloom --to orc --union").is_done();
    folder.feed("check -c one.orcbloom --funnel orc-bytes --force", "-2.5\n1\n").prints("2\n");
    // A rebuilt filter takes the texts of the column.
    folder
        .run("convert t.orc --column dec --items items.txt new.tamis --to-items 1000 --union")
        .is_done();
    folder.prints("check -c new.tamis items.txt", "100\n");
}

#[test]
fn every_compression_is_read() {
    let folder = Folder::new();
    folder
        .write("words.txt", lines((0..100).map(|i| format!("word {} of group {}", i % 5, i / 50))));
    folder.write("ids.txt", lines(0..100));
    for compression in ["zlib", "snappy", "lz4", "zstd"] {
        folder.copy_golden(&format!("orc/{compression}.orc"), "t.orc");
        for (column, items) in [("word", "words.txt"), ("id", "ids.txt")] {
            let check = format!("check -c --no-name t.orc --column {column} {items}");
            folder.prints(&check, "100\n");
            let check = format!("check -c --no-name t.orc --format orc --column {column} {items}");
            folder.prints(&check, "100\n");
        }
        folder
            .feed("check -c --no-name t.orc --column word", "word 5 of group 0\n")
            .gives(1, "0\n");
        folder.refused(
            "check t.orc --column plain words.txt",
            "its column plain has no Bloom filter; columns that have one: word, id",
        );
        folder.refused("check t.orc words.txt", "choose one with --column (id, word)");
        folder.refused(
            "info t.orc --column none",
            "has no column none; its columns: word, id, plain",
        );
    }
    folder.copy_golden("orc/lzo.orc", "t.orc");
    folder.refused("info t.orc", "t.orc: as an ORC file: its compression is LZO, which tamis");
    folder.copy_golden("orc/none.orc", "t.orc");
    folder.refused("info t.orc", "none of its columns has a Bloom filter: write it with one");
}

#[test]
fn columns_whose_answers_could_be_wrong_are_refused_by_name() {
    let folder = Folder::new();
    folder.copy_golden("orc/java.orc", "t.orc");
    folder.write("x", "1\n");
    folder
        .refused("check t.orc --column c x", "its column c is of the type CHAR, which writers of");
    folder.refused("check t.orc --column b x", "its column b is of the type BOOLEAN, whose values");
    folder.copy_golden("orc/types.orc", "cpp.orc");
    folder.refused(
        "check cpp.orc --column i8 x",
        "its column i8 is of the type BYTE, of which ORC's",
    );
    folder.refused("check cpp.orc --column flag x", "its column flag is of the type BOOLEAN");
    folder.refused("check cpp.orc --column f x", "its column f is of the type FLOAT, of which");
    // Releases of the C++ writer whose hashes differ (ORC-1024). The file of 1.6.12 is read.
    for (version, is_read) in [
        (None, false),
        (Some("1.6.0"), false),
        (Some("1.6.11-SNAPSHOT"), false),
        (Some("1.7.0"), false),
        (Some("1.6.12"), true),
        (Some("1.7.1"), true),
        (Some("2.2.2"), true),
    ] {
        let version = version.map(|version| bytes(12, version.as_bytes())).unwrap_or_default();
        let file = OrcBuilder { footer_end: [number(9, 1), version].concat(), ..small() };
        folder.write("old.orc", file.build());
        match is_read {
            true => assert_eq!(folder.feed("check -c --no-name old.orc", "1\n2\n").stdout, "2\n"),
            false => folder.refused("check old.orc x", "(ORC-1024)"),
        }
    }
    let ended = folder.run("info t.orc");
    ended.warns(0, "its column c is of the type CHAR");
    assert_eq!(ended.stdout.lines().count(), 2 + 14, "{ended:?}");
    folder.copy_golden("orc/encrypted.orc", "t.orc");
    folder.refused("info t.orc --column s", "its column s is encrypted, and its filters too");
    folder.feed("check -c t.orc", "-5\n1000000000002\n").prints("2\n");
}

#[test]
fn an_item_that_writers_hash_in_different_ways_is_refused() {
    let folder = Folder::new();
    folder.copy_golden("orc/types.orc", "t.orc");
    for (column, item, words) in [
        ("day", "2024-02-30", "an item of the column is a date such as 2026-11-21"),
        ("day", "1582-10-14", "before 1582-10-15, and writers of ORC count these days"),
        ("ts", "1500-01-01 00:00:00", "before 1582-10-15"),
        ("ts", "2024-01-01 00:00:00Z", "has an offset, and the column holds local times"),
        ("ts", "yesterday", "without an offset, or the milliseconds since 1970-01-01"),
        ("tz", "1969-12-31 23:59:59.9991", "before 1970 and finer than a millisecond"),
        ("dec", "12", "has no point: write all 2 digits behind the point"),
        ("dec", "1.234", "has more than 2 digits behind the point"),
        ("i16", "x", "an item of the column is a decimal number of 16 bits"),
    ] {
        folder.write("wrong.txt", format!("{item}\n"));
        folder.refused(format!("check t.orc --column {column} wrong.txt"), words);
    }
    for (column, funnel) in
        [("i64", "orc-double"), ("d", "orc-float"), ("s", "bytes"), ("s", "orc-long")]
    {
        folder.write("items.txt", "1\n");
        folder.refused(
            format!("check t.orc --column {column} --funnel {funnel} items.txt"),
            "leave out --funnel",
        );
    }
    folder
        .feed("check -c --no-name t.orc --column i64 --funnel orc-long", "4320000000000000144\n")
        .gives(0, "1\n");
}

#[test]
fn a_whole_file_is_never_changed() {
    let folder = Folder::new();
    folder.copy_golden("orc/zlib.orc", "t.orc");
    folder.write("items.txt", "1\n");
    folder.refused("add t.orc --column id items.txt", "row groups with a filter each");
    folder.refused("merge t.orc t.orc -o out", "choose one with --column (id, word)");
    folder.copy_golden("orc/java.orc", "one.orc");
    folder.refused("add one.orc --column i64 items.txt", "the file holds more than this filter");
}

/// A file with the column `a` of 20 rows in a stripe, which has the values 1 and 2 in its filters.
fn small() -> OrcBuilder {
    let stripe = StripeBuilder {
        rows: 20,
        streams: vec![(8, 1, filters(&[1, 2], 2))],
        ..StripeBuilder::default()
    };
    OrcBuilder {
        kinds: vec![4],
        row_group_rows: 10,
        stripes: vec![stripe],
        ..OrcBuilder::default()
    }
}

#[test]
fn the_built_file_is_read() {
    let folder = Folder::new();
    folder.write("t.orc", small().build());
    folder.feed("check -c --no-name t.orc", "1\n2\n3\n").prints("2\n");
    assert_eq!(folder.ok("info t.orc").lines().count(), 4);
}

#[test]
fn the_older_stream_is_read_for_numbers_only() {
    let folder = Folder::new();
    let old = |kind| {
        let mut file = small();
        file.kinds = vec![kind];
        file.stripes[0].streams = vec![(7, 1, original_filters(&[1, 2], 2))];
        folder.write("t.orc", file.build());
    };
    old(4);
    folder.feed("check -c --no-name t.orc", "1\n2\n3\n").prints("2\n");
    for kind in [7, 8, 14, 16] {
        old(kind);
        folder.refused("info t.orc", "has only the older stream BLOOM_FILTER, whose text");
    }
    for kind in [9, 18] {
        old(kind);
        folder.refused("info t.orc", "hold times in the time zone of the machine");
    }
    for (kind, words) in [(9, "ORC-135"), (0, "BOOLEAN"), (17, "CHAR"), (19, "number 19")] {
        let mut file = small();
        file.kinds = vec![kind];
        folder.write("t.orc", file.build());
        folder.refused("info t.orc", words);
    }
    for (kind, is_read) in [(5, false), (9, false), (14, false), (4, true), (7, true), (6, true)] {
        let mut file = small();
        (file.kinds, file.footer_end) = (vec![kind], number(9, 4));
        file.stripes[0].encodings = vec![[].into(), number(3, 1)];
        folder.write("t.orc", file.build());
        if is_read {
            folder.ok("info t.orc");
        } else {
            folder.refused("info t.orc", "another program wrote the file (writer 4)");
        }
    }
}

#[test]
fn a_stripe_without_a_filter_may_hold_any_item() {
    let folder = Folder::new();
    let mut file = small();
    file.stripes.push(StripeBuilder { rows: 5, ..StripeBuilder::default() });
    file.stripes.push(StripeBuilder::default());
    folder.write("t.orc", file.build());
    folder.refused("check t.orc", "t.orc[1].a: has no filter, so any item may be in it");
    let ended = folder.run("info t.orc");
    ended.warns(0, "t.orc[1].a: has no filter");
    assert_eq!(ended.stdout.lines().count(), 2 + 3, "{ended:?}");
}

#[test]
#[allow(clippy::too_many_lines, reason = "a list of files")]
fn hostile_files_are_refused_with_one_line() {
    let folder = Folder::new();
    let refused = |bytes: Vec<u8>, words: &str| {
        folder.write("t.orc", bytes);
        folder.refused("info t.orc", words);
    };
    let good = small().build();
    let with_end = |end: &[u8]| [&good[..good.len() - end.len()], end].concat();
    refused(with_end(&[0]), "the length of its PostScript is wrong");
    let magic_field = b"\x82\xf4\x03\x03ORC";
    refused([b"ORC", &magic_field[..], b"\xff"].concat(), "the length of its PostScript is wrong");
    refused(good[..good.len() - 1].to_vec(), "an ORC file whose end is missing");
    refused(good[..20].to_vec(), "an ORC file whose end is missing");
    let mut file = small();
    file.footer_bytes = Some(u64::MAX);
    refused(file.build(), "its footer is longer than the file");
    file.footer_bytes = Some(1 << 20);
    refused(file.build(), "its footer is longer than the file");
    let footer_end = |end: Vec<u8>| OrcBuilder { footer_end: end, ..small() }.build();
    refused(footer_end(vec![0xff; 20]), "not a valid message of Protocol Buffers");
    refused(
        footer_end([&[0x28][..], &[0x80; 20]].concat()),
        "not a valid message of Protocol Buffers",
    );
    refused(
        footer_end(vec![0x22, 0xff, 0xff, 0xff, 0xff, 0x7f]),
        "not a valid message of Protocol Buffers",
    );
    // A type without a parent.
    refused(footer_end(bytes(4, &number(1, 4))), "its footer do not form a tree");
    let stripe = |fields: &[(u64, u64)]| {
        let message: Vec<u8> =
            fields.iter().flat_map(|&(field, value)| number(field, value)).collect();
        // The stripe has one row, and the other stripe 20.
        footer_end([bytes(3, &message), number(6, 21)].concat())
    };
    refused(stripe(&[(1, 3), (2, 1 << 40), (4, 10), (5, 1)]), "a stripe is not inside of the file");
    refused(stripe(&[(1, u64::MAX), (2, u64::MAX), (5, 1)]), "a stripe is not inside of the file");
    refused(stripe(&[(1, 1 << 63), (4, 1 << 63), (5, 1)]), "a stripe is not inside of the file");
    let mut file = small();
    file.stripes[0].stream_bytes = Some(1 << 30);
    refused(file.build(), "the streams of a stripe are longer than the stripe");
    let mut file = small();
    file.stripes[0].rows = u64::MAX;
    refused(file.build(), "more than 200,000 filters of row groups");
    file.stripes[0].rows = 40;
    file.row_group_rows = 20;
    file.stripes[0].streams[0].2 = filters(&[1], 1);
    refused(file.build(), "row groups have 1 filters");
    // A stripe without rows would hide its values.
    file.footer_end = number(6, 41);
    refused(file.build(), "its stripes do not have as many rows as the file");
    let mut file = small();
    file.row_group_rows = 0;
    refused(file.build(), "its row groups have no rows");
    let mut file = small();
    file.stripes[0].streams[0].2.pop();
    refused(file.build(), "t.orc[0].a: its stream of filters: ");
    // One of them would hide the items of the other.
    let mut file = small();
    file.stripes[0].streams.push((8, 1, filters(&[3], 2)));
    refused(file.build(), "a stripe has two streams of filters for one column");
    let mut file = small();
    file.stripes.clear();
    refused(file.build(), "none of its columns has a Bloom filter");
    // A million stripes without rows, and with rows and without streams.
    file.footer_end = bytes(3, &[]).repeat(1_000_000);
    refused(file.build(), "none of its columns has a Bloom filter");
    file.footer_end = [bytes(3, &number(5, 1)).repeat(1_000_000), number(6, 1_000_000)].concat();
    refused(file.build(), "none of its columns has a Bloom filter");
    file.footer_end = bytes(3, &[]).repeat(1_000_001);
    refused(file.build(), "more than 1,000,000 stripes");
    // A stripe that the footer lists many times.
    let mut file = small();
    file.row_group_rows = 1;
    file.stripes[0] = StripeBuilder {
        rows: 1000,
        streams: vec![(8, 1, filters(&[1], 1000))],
        ..StripeBuilder::default()
    };
    file.stripe_copies = 1000;
    refused(file.build(), "more than 200,000 filters of row groups");
    file.stripes[0].rows = 20;
    file.kinds = vec![4; 99];
    let mut columns = OrcBuilder { row_group_rows: 10, ..file };
    columns.stripes[0].streams = (1..100).map(|column| (8, column, filters(&[1], 2))).collect();
    columns.stripe_copies = 20_000;
    refused(columns.build(), "more than 1,000,000 streams of filters");
}

#[test]
fn a_text_with_the_letters_orc_at_both_ends_is_no_orc_file() {
    let folder = Folder::new();
    folder.write("f", "ORC of a text that ends with ORC\n");
    folder.run("info f --format java-bitmap").has_status(0);
    folder.refused("info f", "no other format is recognised");
}

#[test]
fn a_control_character_of_a_column_name_does_not_reach_the_terminal() {
    let folder = Folder::new();
    let (mut file, name) = (small().build(), b"\x1a\x01a");
    let at = file.windows(name.len()).rposition(|it| it == name).unwrap() + 2;
    file[at] = 0x1b;
    folder.write("t.orc", file);
    let shown = folder.ok("info t.orc");
    assert!(shown.contains("\\u{1b}") && !shown.contains('\u{1b}'), "{shown}");
    folder.refused("info t.orc --column x", "has no column x; its columns: \\u{1b}");
}

#[test]
fn damaged_bytes_never_panic() {
    for golden in ["zlib", "snappy", "lz4", "zstd", "none", "encrypted", "types"] {
        let good = Folder::new().copy_golden(&format!("orc/{golden}.orc"), "t.orc");
        assert!(is_orc(&good));
        let step = good.len() / 600 + 1;
        for at in (0..good.len()).step_by(step) {
            read_all(&good[..at]);
            for byte in [0, 0x7f, 0xff, good[at] ^ 1, good[at] ^ 0x80] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                read_all(&bytes);
            }
        }
    }
}

fn read_all(bytes: &[u8]) {
    let Ok(mut file) = OrcFile::open(bytes) else { return };
    _ = file.schema.columns();
    for stream in file.filter_streams().unwrap_or_default() {
        if let Ok(bytes) = file.read(&stream) {
            _ = RowGroups::decode(&bytes);
            _ = RowGroups::decode_original(&bytes);
        }
    }
}
