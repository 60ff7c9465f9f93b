//! Ids in Parquet files of pyarrow.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tamis_guard::source::{AuditSource as _, FileFormat, FileOptions, Source};
use tamis_guard::{IdSet, IdType};

use crate::checker::*;

fn golden(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/guard")).join(name)
}

fn table(path: impl Into<PathBuf>, column: &str) -> FileOptions {
    let format = FileFormat::Parquet { column: column.to_owned() };
    FileOptions { quiet: Duration::from_millis(30), ..FileOptions::new(path, format) }
}

fn read(id: IdType, file: FileOptions) -> (Arc<IdSet>, Source) {
    synced(id, |ids| Source::file(Arc::clone(ids), file, options()))
}

/// Returns the values of a column as text, or the error.
fn values(path: impl Into<PathBuf>, column: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    let read = table(path, column).each_row(&mut |row| {
        values.push(String::from_utf8(row.to_vec()).unwrap());
        Ok(())
    });
    read.map(|()| values).map_err(|error| error.to_string())
}

#[test]
fn the_values_of_every_type_are_texts() {
    let all = |text: fn(u64) -> String| (1..=1000).map(text).collect::<Vec<_>>();
    let column = |name| values(golden("columns.parquet"), name);
    assert_eq!(column("id").unwrap(), all(|i| i.to_string()));
    assert_eq!(column("small").unwrap(), all(|i| (i % 100).to_string()));
    assert_eq!(column("unsigned").unwrap(), all(|i| (u64::MAX - i + 1).to_string()));
    let without_nulls = all(|i| i.to_string()).into_iter().enumerate();
    let without_nulls = without_nulls.filter(|(at, _)| (at + 1) % 7 != 0).map(|(_, text)| text);
    assert_eq!(column("nulls").unwrap(), without_nulls.collect::<Vec<_>>());
    assert_eq!(column("text").unwrap(), all(|i| format!("sku-{i}")));
    assert_eq!(column("words").unwrap(), all(|i| format!("word-{}", i % 50)));
    assert_eq!(column("uuid").unwrap(), all(|i| format!("{i:032x}")));
    assert_eq!(column("binary").unwrap(), all(|i| format!("{i:032x}")));
    let tags = (1..=1000).filter(|i| i % 2 == 1).flat_map(|i| [i.to_string(), format!("-{i}")]);
    assert_eq!(column("tags").unwrap(), tags.collect::<Vec<_>>());
    assert_eq!(column("shop.id").unwrap(), all(|i| i.to_string()));
    for (name, why) in [
        ("price", "the column \"price\" has the type DOUBLE; ids are whole numbers"),
        ("day", "has the type Date"),
        ("none", "the file has no column `none`"),
    ] {
        let error = column(name).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn every_usual_compression_is_read() {
    let all: Vec<_> = (1..=300).map(|i| i.to_string()).collect();
    for name in ["none", "snappy", "gzip", "zstd", "lz4"] {
        assert_eq!(values(golden(&format!("{name}.parquet")), "id").unwrap(), all, "{name}");
    }
    let error = values(golden("brotli.parquet"), "id").unwrap_err();
    assert!(error.starts_with("cannot read the Parquet file: ") && error.contains("brotli"));
}

#[test]
fn a_replaced_file_is_read_again_and_a_damaged_one_keeps_the_ids() {
    let dir = Dir::new();
    let path = dir.path("ids.parquet");
    fs::copy(golden("zstd.parquet"), &path).unwrap();
    let (ids, source) = read(integers(), table(&path, "id"));
    assert!((1..=300).all(|id| knows(&ids, id)) && !knows(&ids, 301));
    fs::copy(golden("columns.parquet"), &path).unwrap();
    wait_until(&source, "the new file", || knows(&ids, 1000));
    assert_eq!(source.status().items_read, 1300);

    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let message = wait_stale(&source).last_error.unwrap();
    assert!(message.starts_with("cannot read the Parquet file: "), "{message}");
    assert!((1..=1000).all(|id| has(&ids, id)));
    fs::write(&path, &whole).unwrap();
    wait_synced(&source);
}

#[test]
fn uuids_have_any_form_in_requests() {
    let (ids, _source) = read(IdType::Uuid, table(golden("columns.parquet"), "binary"));
    assert!(knows(&ids, "00000000-0000-0000-0000-0000000003E8"));
    assert!(!knows(&ids, "00000000-0000-0000-0000-0000000003e9"));
}

#[test]
fn no_damaged_file_ends_the_reader() {
    let dir = Dir::new();
    let path = dir.path("damaged.parquet");
    let mut random = Random(3);
    for name in ["columns.parquet", "snappy.parquet", "none.parquet"] {
        let whole = fs::read(golden(name)).unwrap();
        for round in 0..150 {
            let mut damaged = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(damaged.len() as u64) as usize;
                // The end has the table of contents.
                let at = if round % 2 == 0 { at } else { damaged.len() - 1 - at % 2000 };
                damaged[at] = random.below(256) as u8;
            }
            if round % 10 == 0 {
                damaged.truncate(random.below(damaged.len() as u64) as usize);
            }
            fs::write(&path, &damaged).unwrap();
            for column in ["id", "words", "text", "uuid", "tags"] {
                let mut rows = 0;
                let read = table(&path, column).each_row(&mut |_| {
                    rows += 1;
                    Ok(())
                });
                if let Err(error) = read {
                    assert_eq!(error.to_string().lines().count(), 1, "{error}");
                }
                assert!(rows < 1_000_000, "{name} {column}");
            }
        }
    }
}
