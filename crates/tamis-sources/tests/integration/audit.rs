//! An audit finds each id that a set refuses, and a rate that is too high.

use std::fs;
use std::time::{Duration, Instant};

use tamis_sources::{
    AuditOptions, AuditReport, AuditSource, CsvColumn, FileFormat, FileOptions, IdSet,
    IdSetOptions, IdType, IntegerForm, RefuseReason, RequestKey, SourceError, SourceKind as _,
    SqliteOptions, SyncState, Verdict, audit,
};

use crate::checker::Dir;

/// A source in memory. The function returns the rows of each read.
struct Rows<F>(F);

impl<F: FnMut() -> Vec<String>> AuditSource for Rows<F> {
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        (self.0)().iter().try_for_each(|row| each(row.as_bytes()))
    }
}

/// Audits a set with these rows.
fn audited(ids: &IdSet, rows: &[String], options: AuditOptions) -> AuditReport {
    audit(ids, &mut Rows(|| rows.to_vec()), options).unwrap()
}

fn integers() -> IdType {
    IdType::Integer { min: 1, max: 1_000_000_000, form: IntegerForm::default() }
}

fn set(id: IdType, rate: f64, rows: &[String]) -> IdSet {
    // No id is recent, so that the negative cache takes each of them.
    let recent_for = Duration::ZERO;
    IdSet::from_ids(IdSetOptions { rate, recent_for, ..IdSetOptions::new(id) }, rows).unwrap()
}

fn numbers(last: u32) -> Vec<String> {
    (1..=last).map(|id| id.to_string()).collect()
}

const QUICK: AuditOptions =
    AuditOptions { absent: 100_000, seed: 3, patience: Duration::from_millis(10) };

#[test]
fn a_good_set_passes_with_each_type_of_id() {
    let uuid = |i: u32| format!("67e55044-10b1-426f-9247-{i:012x}");
    for (id, rows) in [
        (integers(), numbers(20_000)),
        (IdType::Uuid, (0..20_000).map(uuid).collect()),
        (IdType::Text { max_bytes: 20 }, (0..20_000).map(|i| format!("商品 {i}")).collect()),
    ] {
        let ids = set(id, 0.01, &rows);
        let report = audited(&ids, &rows, QUICK);
        assert_eq!((report.present_checked, report.present_refused), (20_000, 0));
        // Two of the random integers are expected to exist.
        assert!((99_900..=100_000).contains(&report.absent_checked), "{report:?}");
        assert_eq!(report.invalid_rows, 0);
        assert!(report.is_complete() && report.is_rate_kept(), "{report:?}");
        // The measured rate agrees with the bits of the filter: five standard deviations.
        let expected = 100_000.0 * report.estimated_rate;
        assert!(
            (report.absent_passed as f64 - expected).abs() < 5.0 * expected.sqrt(),
            "{report:?}"
        );
        assert!(report.absent_passed > 100 && report.rate() < 0.011, "{report:?}");
    }
}

#[test]
fn a_refused_id_is_found() {
    let rows = numbers(20_000);
    let ids = set(integers(), 1e-6, &rows[..19_990]);
    ids.delete(b"5").unwrap();
    let report = audited(&ids, &rows, QUICK);
    assert!(!report.is_complete());
    assert_eq!(report.present_refused, 11);
    assert_eq!(report.refused_examples.len(), 10);
    assert_eq!(report.refused_examples[0], b"19991");
}

#[test]
fn an_id_in_the_negative_cache_that_exists_is_found() {
    let rows = numbers(10);
    let ids = set(integers(), 0.001, &rows);
    let request = http::Request::new(()).into_parts().0;
    ids.not_found(b"7", ids.passed(b"7"), RequestKey::of(&request).unwrap());
    let report = audited(&ids, &rows, QUICK);
    assert_eq!(report.refused_examples, [b"7"]);
}

#[test]
fn an_id_that_the_set_learns_in_time_is_none() {
    let rows = numbers(100);
    let ids = set(integers(), 0.001, &rows[..99]);
    let patient = AuditOptions { patience: Duration::from_secs(30), ..QUICK };
    let start = Instant::now();
    let report = std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            ids.insert(b"100").unwrap();
        });
        audited(&ids, &rows, patient)
    });
    assert!(report.is_complete() && start.elapsed() < patient.patience, "{report:?}");
}

#[test]
fn an_id_that_was_deleted_meanwhile_is_none() {
    let rows = numbers(100);
    let ids = set(integers(), 0.001, &rows);
    ids.delete(b"100").unwrap();
    // The last row is only in the first read.
    let mut last = 101;
    let shrinking = || {
        last -= 1;
        numbers(last)
    };
    let report = audit(&ids, &mut Rows(shrinking), QUICK).unwrap();
    assert!(report.is_complete(), "{report:?}");
}

#[test]
fn a_rate_that_is_too_high_is_found() {
    let small = IdType::Integer { min: 1, max: 100_000, form: IntegerForm::default() };
    let ids = set(small, 0.01, &numbers(5000));
    let absent = AuditOptions { absent: 50_000, ..QUICK };
    // Without the even ids, which then look absent.
    let odd: Vec<_> = (1..=5000).step_by(2).map(|id| id.to_string()).collect();
    let report = audited(&ids, &odd, absent);
    assert!(report.is_complete() && !report.is_rate_kept(), "{report:?}");
    assert!(report.rate() > 0.02 && report.chance < 1e-6, "{report:?}");
    let report = audited(&ids, &numbers(5000), absent);
    assert!(report.is_rate_kept(), "{report:?}");
}

#[test]
fn ids_that_exist_are_no_absent_ones() {
    let dense = IdType::Integer { min: 1, max: 1000, form: IntegerForm::default() };
    let rows: Vec<_> = numbers(1000).into_iter().filter(|id| id != "17").collect();
    let ids = set(dense, 1e-7, &rows);
    let report =
        audited(&ids, &[rows, [" 5 ", "x", "0"].map(str::to_owned).to_vec()].concat(), QUICK);
    assert_eq!((report.absent_checked, report.absent_passed), (1, 0));
    assert_eq!((report.present_checked, report.invalid_rows), (1000, 2));
}

#[test]
fn the_state_and_the_policies_do_not_count() {
    let ids = IdSet::new(IdSetOptions::new(integers())).unwrap();
    assert!(ids.decide(b"5").passes());
    let report = audited(&ids, &numbers(5), QUICK);
    assert_eq!((report.state, report.present_refused), (SyncState::Warming, 5));
    assert_eq!((report.absent_passed, report.estimated_rate), (0, 0.0));
    ids.set_denied([7]).unwrap();
    assert_eq!(ids.decide(b"7"), Verdict::Refuse(RefuseReason::Denied));
}

#[test]
fn files_are_audited() {
    let (dir, ids) = (Dir::new(), set(integers(), 0.001, &numbers(3)));
    let csv = FileFormat::Csv { column: CsvColumn::Name("id".to_owned()), delimiter: b',' };
    for (name, text, format) in [
        ("lines", "1\n2\r\n\n 3 \nx\n4\n", FileFormat::Lines),
        ("csv", "name,id\na,1\nb,2\n\"c\",3\nd,x\ne,4\n", csv),
    ] {
        let path = dir.path(name);
        fs::write(&path, text).unwrap();
        let mut options = FileOptions::new(&path, format);
        let report = audit(&ids, &mut options, QUICK).unwrap();
        assert_eq!((report.present_checked, report.invalid_rows), (4, 1), "{name}");
        assert_eq!(report.refused_examples, [b"4"], "{name}");
    }
    let mut filter = FileOptions::new(dir.path("lines"), FileFormat::Filter);
    let error = audit(&ids, &mut filter, QUICK).unwrap_err();
    assert!(matches!(error, SourceError::NoList), "{error}");
    let mut absent = FileOptions::new("/nowhere/ids", FileFormat::Lines);
    assert!(matches!(audit(&ids, &mut absent, QUICK), Err(SourceError::Io { .. })));
}

#[test]
fn databases_are_audited() {
    let dir = Dir::new();
    let path = dir.path("shop.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE products (id INTEGER PRIMARY KEY, hidden INTEGER);
            WITH RECURSIVE new (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM new WHERE id < 1005)
            INSERT INTO products SELECT id, id > 1003 FROM new;
            CREATE TABLE orders (id BLOB);
            INSERT INTO orders VALUES (x'67e5504410b1426f9247000102030405');",
        )
        .unwrap();
    let ids = set(integers(), 1e-7, &numbers(1000));
    for chunk in [1, 7, 1003, 1004, 10_000] {
        let options = SqliteOptions {
            condition: Some("NOT hidden".to_owned()),
            chunk,
            ..SqliteOptions::new(&path, "products", "id")
        };
        let mut source = options.audit(&integers()).unwrap();
        let report = audit(&ids, &mut *source, QUICK).unwrap();
        assert_eq!(report.present_checked, 1003, "{chunk}");
        assert_eq!(report.refused_examples, ["1001", "1002", "1003"].map(str::as_bytes), "{chunk}");
    }
    // A row may have the bytes of a UUID.
    let ids = set(IdType::Uuid, 1e-7, &["67e55044-10b1-426f-9247-000102030405".to_owned()]);
    let options = SqliteOptions::new(&path, "orders", "id");
    let mut source = options.audit(&IdType::Uuid).unwrap();
    let report = audit(&ids, &mut *source, QUICK).unwrap();
    assert_eq!((report.present_checked, report.present_refused), (1, 0));
    assert!(SqliteOptions::new("/nowhere", "t", "id").audit(&IdType::Uuid).is_err());
}
