//! Ids in files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis::Plan;
use tamis_sources::{
    CsvColumn, FileFormat, FileOptions, IdSet, IdSetOptions, RequestKey, SnapshotOptions, Source,
    SourceOptions, SyncState,
};

use crate::checker::*;
use crate::filter_file::filter_file;
use crate::lasting::Lasting;

const QUIET: Duration = Duration::from_millis(60);

fn start(ids: &Arc<IdSet>, path: &Path, format: FileFormat) -> Source {
    let file = FileOptions { quiet: QUIET, ..FileOptions::new(path, format) };
    Source::start(Arc::clone(ids), file, options())
}

fn lines(ids: impl IntoIterator<Item = u64>) -> String {
    ids.into_iter().map(|id| format!("{id}\n")).collect()
}

/// A list of ids in a file, and a source that reads it.
struct List {
    path: PathBuf,
    ids: Arc<IdSet>,
    source: Source,
    _dir: Dir,
}

impl List {
    fn of(content: impl AsRef<[u8]>) -> Self {
        Self::with(content, FileFormat::Lines)
    }

    fn with(content: impl AsRef<[u8]>, format: FileFormat) -> Self {
        let dir = Dir::new();
        let path = dir.path("ids.txt");
        fs::write(&path, content).unwrap();
        let (ids, source) = synced(integers(), |ids| start(ids, &path, format));
        Self { path, ids, source, _dir: dir }
    }
}

/// Replaces a file in one step.
fn replace(path: &Path, content: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn a_list_is_read_again_when_it_changes() {
    let List { path, ids, source, _dir } = List::of("1\n002\r\n\n 3 \nfour\n0\n");
    let status = source.status();
    assert_eq!((status.items_read, status.invalid_rows, status.generations), (3, 2, 1));
    assert!([1, 2, 3].iter().all(|id| knows(&ids, id)) && !has(&ids, 4));
    // In place, and with the same length.
    fs::write(&path, "1\n002\r\n\n 5 \nfour\n0\n").unwrap();
    wait(&source, "read again", |status| status.generations == 2);
    assert!(knows(&ids, 5) && !has(&ids, 3));
    replace(&path, "1\n2\n6\n");
    wait(&source, "replaced", |status| status.generations == 3);
    assert!(knows(&ids, 6) && !has(&ids, 5));
    // The modification time is set back.
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "1\n2\n7\n").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    wait(&source, "the change time differs", |status| status.generations == 4);
    assert!(knows(&ids, 7));
    source.stop();
    assert_eq!(ids.state(), SyncState::Stale);
}

#[test]
fn a_restart_with_a_snapshot_reads_only_a_list_that_has_changed() {
    let dir = Dir::new();
    let (path, snapshot) = (dir.path("ids.txt"), dir.path("ids.snapshot"));
    let restart = || {
        let ids = id_set(integers());
        let file = FileOptions { quiet: QUIET, ..FileOptions::new(&path, FileFormat::Lines) };
        let file = Lasting { options: file, snapshot: SnapshotOptions::new(&snapshot) };
        let source = Source::start(Arc::clone(&ids), file, options());
        let status = wait_synced(&source);
        (ids, source, status)
    };
    fs::write(&path, lines([1, 2])).unwrap();
    let (_, source, status) = restart();
    assert_eq!(status.items_read, 2);
    // The end of the source waits for the write of the snapshot.
    source.stop();
    let (ids, source, status) = restart();
    assert_eq!((status.items_read, status.generations, status.last_error), (0, 1, None));
    assert!(knows(&ids, 1) && knows(&ids, 2) && !has(&ids, 3));
    // A change is read as without a snapshot.
    replace(&path, lines([1, 3]));
    wait(&source, "the new list", |status| status.generations == 2);
    assert!(knows(&ids, 3) && !has(&ids, 2));
    source.stop();
    replace(&path, lines([4]));
    let (ids, source, status) = restart();
    assert_eq!(status.items_read, 1);
    assert!(knows(&ids, 4) && !has(&ids, 3));
    source.stop();
    fs::write(&snapshot, "damaged").unwrap();
    let (ids, source, status) = restart();
    assert_eq!((status.items_read, status.failures), (1, 0));
    let unused = status.snapshots.unused.unwrap();
    assert_eq!(unused, "the snapshot is incomplete");
    assert!(knows(&ids, 4));
    // It was replaced by a whole one.
    source.stop();
    assert_eq!(restart().2.items_read, 0);
}

#[test]
fn an_id_that_is_created_again_passes_after_a_404() {
    // No id is recent, so that the negative cache takes each of them.
    let options = IdSetOptions { recent_for: Duration::ZERO, ..IdSetOptions::new(integers()) };
    let (dir, ids) = (Dir::new(), Arc::new(IdSet::new(options).unwrap()));
    let path = dir.path("ids.txt");
    fs::write(&path, lines([1, 2])).unwrap();
    let source = start(&ids, &path, FileFormat::Lines);
    wait_synced(&source);
    let (early, late) = (ids.passed(b"1"), ids.passed(b"2"));
    let request = RequestKey::of(&http::Request::new(()).into_parts().0).unwrap();
    ids.not_found(b"1", early, request);
    assert!(ids.is_not_found(b"1", request) && !ids.is_not_found(b"2", request));
    replace(&path, lines([1, 2, 3]));
    wait(&source, "the new list", |status| status.generations == 2);
    ids.not_found(b"2", late, request);
    assert!(!ids.is_not_found(b"1", request) && !ids.is_not_found(b"2", request));
}

#[test]
fn a_column_of_a_csv_file_is_read() {
    let dir = Dir::new();
    let path = dir.path("products.csv");
    fs::write(&path, "name;id\n\"a;\nb\";1\nc;2\nd\n").unwrap();
    let csv = |column| FileFormat::Csv { column, delimiter: b';' };
    let id = csv(CsvColumn::Name("id".to_owned()));
    let (ids, source) = synced(integers(), |ids| start(ids, &path, id));
    let status = source.status();
    assert_eq!((status.items_read, status.invalid_rows), (2, 1));
    assert!(knows(&ids, 1) && knows(&ids, 2) && !has(&ids, 3));
    drop(source);
    let (names, source) = synced(text(), |ids| start(ids, &path, csv(CsvColumn::Number(0))));
    assert!(knows(&names, "a;\nb") && knows(&names, "name") && !has(&names, "e"));
    drop(source);
    let source = start(&id_set(integers()), &path, csv(CsvColumn::Name("no".to_owned())));
    let status = wait(&source, "an error", |status| status.failures > 1);
    assert_eq!(status.last_error.as_deref(), Some("the file has no column `no`"));
    assert_eq!(status.state, SyncState::Warming);
}

#[test]
fn a_filter_file_is_a_generation() {
    let write = |range: std::ops::Range<u64>| {
        filter_file(&Plan::new(10_000, 1e-6).unwrap(), range.map(|id| id.to_string()))
    };
    let first = write(1..10_000);
    let List { path, ids, source, _dir } = List::with(&first, FileFormat::Filter);
    assert!((1..10_000).all(|id| knows(&ids, id)) && !has(&ids, 10_005));
    ids.insert(b"20000").unwrap();
    assert!(knows(&ids, 20_000));
    // A damaged file is not published.
    replace(&path, &first[..first.len() - 1]);
    wait(&source, "a damaged file", |status| status.failures > 0);
    wait_stale(&source);
    replace(&path, write(5000..15_000));
    wait(&source, "replaced", |status| status.generations == 2);
    wait_synced(&source);
    assert!((5000..15_000).all(|id| knows(&ids, id)) && !has(&ids, 4999));
}

#[test]
fn a_damaged_file_keeps_the_last_ids_and_becomes_stale() {
    let content = lines(1..=1000);
    let List { path, ids, source, _dir } = List::of(&content);
    let clear = || match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir(&path).unwrap(),
        Ok(_) => fs::remove_file(&path).unwrap(),
        Err(_) => {}
    };
    let garbage: Vec<u8> =
        (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    type Damage<'d> = (&'d str, &'d dyn Fn());
    let damages: [Damage<'_>; 6] = [
        ("cannot read", &|| {}),
        ("has 0 ids", &|| fs::write(&path, "").unwrap()),
        ("has 10 ids", &|| fs::write(&path, lines(1..=10)).unwrap()),
        ("are no ids", &|| fs::write(&path, &garbage).unwrap()),
        ("are no ids", &|| fs::write(&path, vec![b'7'; 10 << 20]).unwrap()),
        ("not a regular file", &|| fs::create_dir(&path).unwrap()),
    ];
    for (error, damage) in damages {
        clear();
        damage();
        wait_broken(&source, error);
        assert!((1..=1000).all(|id| has(&ids, id)));
        clear();
        fs::write(&path, &content).unwrap();
        wait_synced(&source);
        assert!(source.status().last_error.is_none());
        assert!((1..=1000).all(|id| knows(&ids, id)) && !has(&ids, 1001), "{error}");
    }
}

#[test]
fn a_file_that_is_being_written_is_not_published() {
    let (dir, ids) = (Dir::new(), id_set(integers()));
    let path = dir.path("ids.txt");
    fs::write(&path, lines(1..=500)).unwrap();
    // Far above the pauses of the writer.
    let quiet = Duration::from_millis(500);
    let file = FileOptions { quiet, ..FileOptions::new(&path, FileFormat::Lines) };
    let options = SourceOptions { stale_after: Duration::from_secs(5), ..options() };
    let source = Source::start(Arc::clone(&ids), file, options);
    wait_synced(&source);
    let committed = Committed::of(1..=500);
    let mut random = Random(17);
    check(&source, &ids, &committed, || {
        for round in 1..=5 {
            // The same ids in another order, and new ones, with pauses below `quiet`.
            let mut file = File::create(&path).unwrap();
            for part in 0..25 {
                let part = (part + round * 7) % 25;
                file.write_all(lines(part * 20 + 1..=part * 20 + 20).as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(random.below(20)));
            }
            file.write_all(lines([1000 + round]).as_bytes()).unwrap();
            drop(file);
            wait_until(&source, "the new file", || has(&ids, 1000 + round));
        }
    });
    assert_eq!(source.status().generations, 6);
}

#[test]
fn no_id_is_refused_while_files_are_replaced() {
    let List { path, ids, source, _dir } = List::of(lines([1]));
    let committed = Committed::of([1]);
    let (mut random, mut next) = (Random(3), 2);
    let end = Instant::now() + Duration::from_secs(4);
    check(&source, &ids, &committed, || {
        while Instant::now() < end {
            let new: Vec<u64> = (next..next + random.below(50)).collect();
            next += new.len() as u64;
            let deleted: Vec<u64> =
                (0..random.below(10)).filter_map(|_| committed.pick(&mut random)).collect();
            committed.remove(deleted);
            let mut all = committed.ids();
            all.extend(&new);
            replace(&path, lines(all));
            committed.insert(new);
            std::thread::sleep(Duration::from_millis(random.below(300)));
        }
    });
    assert!(source.status().generations > 5, "{:?}", source.status());
    wait_until(&source, "the last file", || committed.ids().iter().all(|id| knows(&ids, id)));
    wait_until(&source, "deletions", || !has(&ids, next));
}

#[test]
fn a_stop_interrupts_a_long_read() {
    let (dir, ids) = (Dir::new(), id_set(integers()));
    let path = dir.path("ids.txt");
    fs::write(&path, lines(1..=1_000_000)).unwrap();
    let source = start(&ids, &path, FileFormat::Lines);
    std::thread::sleep(QUIET + Duration::from_millis(50));
    let start = Instant::now();
    source.stop();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_file_that_has_not_changed_is_read_again_on_request() {
    let list = List::of("1\n2\n");
    let source = &list.source;
    source.rebuild();
    wait(source, "asked for", |status| status.generations == 2);
    // One request, one read.
    let end = Instant::now() + 20 * crate::checker::INTERVAL;
    wait_until(source, "further reads", || Instant::now() > end);
    assert_eq!(source.status().generations, 2);
    source.rebuild();
    source.rebuild();
    wait(source, "asked for again", |status| status.generations == 3);
}

#[test]
fn a_filter_is_planned_for_the_lines_of_its_file() {
    let list = List::of(lines(1..=100_000));
    let plan = Plan::for_kind(tamis::Kind::SplitBlock, 112_500, 1e-7 / 2.0).unwrap();
    assert_eq!(list.ids.generations().bytes(), plan.bytes());
}
