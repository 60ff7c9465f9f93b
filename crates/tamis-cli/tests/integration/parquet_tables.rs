//! Parquet tables, written by the Rust crate, as a user runs the program on them.

use std::sync::Arc;

use crate::program::{Folder, golden_json, lines};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// A folder with `t.parquet`: two row groups of 100 rows.
fn folder() -> Folder {
    let schema = "message t {
        required int64 i64; required int32 u32 (UINT_32); required int64 u64 (UINT_64); required int32 day (DATE);
        required binary s (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_bloom_filter_enabled(true).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for group in 0..2_u8 {
        let rows = i64::from(group) * 100..i64::from(group + 1) * 100;
        let mut row_group = writer.next_row_group().unwrap();
        column::<Int64Type>(&mut row_group, rows.clone().map(|i| i * 1_000_000_007));
        // Parquet stores unsigned integers as signed integers with the same bits.
        column::<Int32Type>(&mut row_group, rows.clone().map(|i| -1 - i as i32));
        column::<Int64Type>(&mut row_group, rows.clone().map(|i| -1 - i));
        column::<Int32Type>(&mut row_group, rows.clone().map(|i| 20_000 + i as i32));
        let texts = rows.map(|i| ByteArray::from(format!("item {i}").into_bytes()));
        column::<ByteArrayType>(&mut row_group, texts);
        row_group.close().unwrap();
    }
    let folder = Folder::new();
    folder.write("t.parquet", writer.into_inner().unwrap());
    folder.write("i64.txt", lines((0..200_u64).map(|i| i * 1_000_000_007)));
    folder.write("u32.txt", lines((0..200_u64).map(|i| 0xffff_ffff - i)));
    folder.write("u64.txt", lines((0..200_u64).map(|i| 0xffff_ffff_ffff_ffff - i)));
    folder.write("day.txt", lines((0..200_u64).map(|i| 20_000 + i)));
    folder.write("s.txt", lines((0..200).map(|i| format!("item {i}"))));
    folder
}

fn column<T: DataType>(
    row_group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: impl Iterator<Item = T::T>,
) {
    let mut column = row_group.next_column().unwrap().unwrap();
    let values: Vec<_> = values.collect();
    column.typed::<T>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
}

#[test]
fn row_groups_become_one_filter_if_that_is_wanted() {
    let folder = folder();
    folder.refused("convert t.parquet --column s s.tamis", "'convert --union' puts them together");
    folder.refused("convert t.parquet s.tamis --union", "choose one with --column");
    folder.run("convert t.parquet --column s s.tamis --union").is_done();
    // The result is fuller than planned, and the command says so.
    folder.run("check -c s.tamis s.txt").prints("200\n");
}

#[test]
fn items_are_what_the_type_of_their_column_says() {
    let folder = folder();
    for column in ["i64", "u32", "u64", "day", "s"] {
        let check = format!("check -c --no-name t.parquet --column {column} {column}.txt");
        folder.prints(&check, "200\n");
    }
    let text = "check -c --no-name t.parquet --column s --funnel text --charset utf-8 s.txt";
    folder.prints(text, "200\n");
    folder
        .feed("check -c --no-name t.parquet --column u32 --funnel hex", "ffffffff\n")
        .prints("1\n");
}

#[test]
fn a_funnel_that_contradicts_the_column_is_refused() {
    let folder = folder();
    for (column, funnel) in [
        ("i64", "int"),
        ("i64", "text --charset utf-8"),
        ("day", "long"),
        ("s", "long"),
        ("u32", "int"),
        ("u64", "long"),
    ] {
        folder.refused(
            format!("check -c t.parquet --column {column} --funnel {funnel} {column}.txt"),
            "leave out --funnel",
        );
    }
    // The command asks for the column before it checks the funnel.
    folder.refused("check t.parquet --funnel int s.txt", "choose one with --column (");
}

#[test]
fn an_error_about_a_wrong_item_says_what_an_item_is() {
    let folder = folder();
    for (column, item, words) in [
        (
            "day",
            "2024-01-1",
            "an item of the column is a date such as 2026-11-21, or the days since 1970-01-01",
        ),
        ("u32", "-1", "from 0 on, of 32 bits"),
        ("u32", "4294967296", "from 0 on, of 32 bits"),
        ("u64", "-1", "from 0 on, of 64 bits"),
    ] {
        folder.write("wrong.txt", format!("{item}\n"));
        folder.refused(format!("check t.parquet --column {column} wrong.txt"), words);
    }
}

#[test]
fn filters_of_a_table_are_shown_as_a_table() {
    let folder = folder();
    let text = folder.ok("info t.parquet");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2 + 2 * 5, "{text}");
    assert_eq!(lines[0], "t.parquet");
    assert!(lines[1].trim_start().starts_with("row group  column  items about"), "{text}");
    assert!(lines[7].trim_start().starts_with("1  i64 "), "{text}");
    assert!(lines[7].ends_with("  a decimal number of 64 bits"), "{text}");
    assert!(lines[10].contains("the days since 1970-01-01"), "{text}");
    let text = folder.ok("info t.parquet --column u32");
    assert_eq!(text.lines().count(), 2 + 2, "{text}");
    let list = folder.json("info --json t.parquet");
    assert_eq!(list.as_array().unwrap().len(), 10);
}

#[test]
fn items_are_the_texts_that_their_writer_prints() {
    let folder = Folder::new();
    folder.copy_golden("parquet/types.parquet", "t.parquet");
    for (column, values) in golden_json("parquet/types.json").as_object().unwrap() {
        let values = values.as_array().unwrap().iter();
        let values: Vec<&str> = values.map(|it| it.as_str().unwrap()).collect();
        folder.write("items.txt", values.join("\n"));
        let name = match &column[..] {
            "a{b}" => "a.b",
            "a.b" => "\"a.b\"",
            other => other,
        };
        let check = format!("check -c t.parquet --column {name}");
        folder.prints(format!("{check} items.txt"), "50\n");
        if !column.starts_with('a') {
            // Lines of Windows.
            folder.write("items.txt", values.join("\r\n") + "\r\n");
            folder.prints(format!("{check} items.txt"), "50\n");
            let to = format!("--items items.txt {column}.filter --to parquet --force");
            folder.run(format!("convert t.parquet --column {name} {to}")).is_done();
        }
    }
    for (column, item, words) in [
        ("day", "2024-02-30", "an item of the column is a date such as 2026-11-21"),
        (
            "ms",
            "2024-01-01 12:00:00.1234",
            "a time such as 2026-11-21 10:00:59.5, or the milliseconds",
        ),
        ("ns", "yesterday", "or the nanoseconds since 1970-01-01"),
        ("time", "25:00:00", "a time such as 10:00:59.5"),
        ("dec", "12", "has no point: write all 2 digits behind the point"),
        ("dec", "1.234", "has more than 2 digits behind the point"),
        ("big", "x", "a decimal number with 4 digits behind the point"),
        ("uuid", "1234", "not a UUID"),
    ] {
        folder.write("wrong.txt", format!("{item}\n"));
        let line = format!("check t.parquet --column {column} wrong.txt");
        folder.refused(&line, words);
    }
    folder.refused("check t.parquet wrong.txt", "\"a.b\", a.b");
    folder
        .feed("check t.parquet --column \"a.b\"", "dot1\r\n")
        .warns(1, "a carriage return, which is part of the text");
}

#[test]
fn an_encrypted_table_is_named() {
    let folder = Folder::new();
    folder.copy_golden("parquet/encrypted.parquet", "t.parquet");
    folder.refused("info t.parquet", "some of its columns are encrypted");
}
