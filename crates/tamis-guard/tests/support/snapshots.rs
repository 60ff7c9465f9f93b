//! Checks of sources that start with a snapshot.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tamis_guard::IdSet;
use tamis_guard::source::{Source, SourceStatus};

use crate::checker::{
    Committed, Dir, Random, check, id_set, integers, knows, wait_synced, wait_until,
};

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

/// Starts a source again and again while rows change, and checks the promise. The table has the ids from
/// 1 to 2000. `start` starts a source with the snapshot at a path, and `change` runs a transaction.
///
/// Every second snapshot is replaced by an older one, as a process that is killed leaves it. A source
/// must continue it if `has_old_log` is true.
pub fn restart_while_rows_change(
    dir: &Dir,
    start: impl Fn(&Arc<IdSet>, &Path) -> Source,
    has_old_log: bool,
    change: &mut dyn FnMut(&Committed, &mut Random, &mut u64),
) {
    let committed = Committed::default();
    committed.insert(1..=2000);
    let (path, killed) = (dir.path("a"), dir.path("killed"));
    let (mut random, mut next) = (Random(11), 2001);
    let first = start(&id_set(integers()), &path);
    wait_synced(&first);
    first.stop();
    for round in 0..12 {
        for _ in 0..random.below(20) {
            change(&committed, &mut random, &mut next);
        }
        let ids = id_set(integers());
        let source = start(&ids, &path);
        check(&source, &ids, &committed, || {
            for step in 0..40 {
                change(&committed, &mut random, &mut next);
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
        if has_old_log || !is_old {
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
