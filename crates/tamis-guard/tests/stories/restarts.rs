//! A source that starts with a snapshot goes on in the log, or reads all ids if it cannot.

use std::fs;
use std::path::Path;

use tamis_guard::source::SourceStatus;
use tamis_guard::{Generation, Snapshot, SnapshotOptions, SnapshotStore};

use super::database::Database as _;
use super::follow::{Options, audited, lasting_shop, restart, start, transact};
use crate::checker::*;
use crate::server::{Server, Shop};

/// Tests that a restart goes on in the log.
pub fn goes_on(status: &SourceStatus) {
    assert_eq!((status.items_read, status.generations), (0, 1), "{status:?}");
    assert_eq!(status.snapshots.unused, None);
    assert!(status.snapshots.age.is_some());
}

/// Tests that a restart has read all ids, and says why.
pub fn reads_all(status: &SourceStatus, reason: &str) {
    assert!(status.items_read > 0, "{reason}: {status:?}");
    let unused = status.snapshots.unused.as_ref().unwrap_or_else(|| panic!("{reason}"));
    assert!(unused.contains(reason) && !unused.contains('\n'), "{reason}: {unused}");
}

/// Inserts an id, and tests that the next start of a source reads all ids for this reason, and that the
/// start after it goes on.
pub fn costs_a_read(shop: &mut Shop, options: &Options, id: u64, reason: &str) {
    shop.run(&format!("INSERT INTO products (id) VALUES ({id})"));
    let (ids, source, status) = restart(options);
    reads_all(&status, reason);
    let all = audited(options);
    assert!(all.contains(&id) && all.iter().all(|id| knows(&ids, id)), "{reason}");
    assert!(!has(&ids, id + 1), "{reason}");
    source.stop();
    let (_, source, status) = restart(options);
    goes_on(&status);
    source.stop();
}

/// Changes the snapshot at a path.
pub fn rewrite(path: &Path, change: impl FnOnce(&mut Snapshot)) {
    let file = fs::File::open(path).unwrap();
    let mut snapshot = Generation::read_snapshot(file, 1 << 30).unwrap();
    change(&mut snapshot);
    let Snapshot { head, generation, end } = snapshot;
    let store = SnapshotStore::new(SnapshotOptions::new(path));
    store.save(&head, &generation, || end).unwrap();
}

#[test]
fn a_restart_goes_on_in_the_log_and_does_not_read_the_table() {
    let (_server, mut shop, _dir, options) = lasting_shop(5000);
    let (ids, source, status) = restart(&options);
    assert_eq!((status.items_read, status.snapshots.unused), (5000, None));
    shop.run("INSERT INTO products VALUES ('new', 5001), ('new', 5002)");
    shop.after(&ids, &source, "DELETE FROM products WHERE id IN (7, 8, 5002)", &[5001], &[8, 5002]);
    source.stop();
    shop.run("INSERT INTO products VALUES ('while it is stopped', 5003)");
    shop.run("INSERT INTO products VALUES ('created again', 8)");
    shop.run("DELETE FROM products WHERE id = 9");
    shop.run(Server::NEXT_LOG);
    shop.run("INSERT INTO products VALUES ('in another file', 5004)");
    for _ in 0..2 {
        let (ids, source, status) = restart(&options);
        goes_on(&status);
        assert!([1, 8, 5000, 5001, 5003, 5004].iter().all(|id| knows(&ids, id)));
        assert!([7, 9, 5002, 5005].iter().all(|id| !has(&ids, id)));
        source.stop();
    }
    // A read of all ids has another hash key, which the next snapshot has too.
    let (ids, source, _) = restart(&options);
    source.rebuild();
    wait(&source, "read again", |status| status.generations == 2);
    shop.after(&ids, &source, "INSERT INTO products VALUES ('new', 5005)", &[5005], &[]);
    source.stop();
    let (ids, _source, status) = restart(&options);
    goes_on(&status);
    assert!([1, 8, 5005].iter().all(|id| knows(&ids, id)) && !has(&ids, 7));
}

/// Every second snapshot is replaced by an older one, as a process that is killed leaves it.
#[test]
fn the_promise_holds_over_restarts_while_rows_change() {
    let (_server, mut shop, dir, options) = lasting_shop(2000);
    let committed = Committed::of(1..=2000);
    let (path, killed) = (dir.path("a"), dir.path("killed"));
    let (mut random, mut next) = (Random(11), 2001);
    restart(&options).1.stop();
    for round in 0..12 {
        for _ in 0..random.below(20) {
            transact(&mut shop, &committed, &mut random, &mut next);
        }
        let ids = id_set(integers());
        let source = start(&ids, &options);
        check(&source, &ids, &committed, || {
            for step in 0..40 {
                transact(&mut shop, &committed, &mut random, &mut next);
                if step == 20 && round % 4 == 1 {
                    source.rebuild();
                }
                // The checker needs some time with a synced set.
                if step == 8 {
                    wait_synced(&source);
                }
                if step == 10 + round {
                    fs::copy(&path, &killed).unwrap();
                }
            }
            wait_synced(&source);
        });
        let status = source.status();
        let is_old = round > 0 && round % 2 == 0;
        if Server::KEEPS_OLD_LOG || !is_old {
            assert_eq!(status.snapshots.unused, None, "{round}: {status:?}");
            assert!(status.items_read == 0 || round % 4 == 1, "{round}: {status:?}");
        }
        let live = committed.ids();
        wait_until(&source, "all changes", || {
            (1..next).all(|id| live.binary_search(&id).is_ok() == knows(&ids, id))
        });
        source.stop();
        if round % 2 == 1 {
            fs::rename(&killed, &path).unwrap();
        }
    }
}
