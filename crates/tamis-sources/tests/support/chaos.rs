//! Random changes of a table and random faults, in an order that a seed decides, while a checker
//! tests the promise of the source.
//!
//! A guard lives several lives: between two of them it is stopped, and the table changes without it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tamis_sources::{Source, SourceKind, SyncState};

use crate::changes::{Changes, Database, Deletion};
use crate::checker::{Committed, check, has, id_set, integers, knows, wait_until};
use crate::stories::follow::start;
use crate::tcp_proxy::TcpProxy;

/// Runs `lives` guards after each other for each of two seeds, with 40 changes and faults in each life.
///
/// `options` returns the options of a source that connects to an address. A source with a snapshot continues the
/// snapshot of the source before it. `deletion` decides how the table loses ids.
pub fn run<D: Database, K: SourceKind + Clone>(
    database: &mut D,
    options: impl Fn(&D, SocketAddr) -> K,
    lives: u32,
    deletion: Deletion,
) {
    for seed in [1, 2] {
        let mut changes = Changes::new(seed, deletion);
        changes.commit(database);
        for life in 0..lives {
            println!("life {life} of seed {seed}");
            live(&mut changes, database, &options);
        }
        database.sql("TRUNCATE products");
    }
}

/// Runs a guard whose connections go through a proxy.
fn live<D: Database, K: SourceKind + Clone>(
    changes: &mut Changes,
    database: &mut D,
    options: impl Fn(&D, SocketAddr) -> K,
) {
    let proxy = TcpProxy::start(database.address());
    let ids = id_set(integers());
    let source = start(&ids, &options(database, proxy.address));
    // The checker reads the ids while the story changes them.
    let committed = Committed(Arc::clone(&changes.committed.0));
    check(&source, &ids, &committed, || {
        for _ in 0..40 {
            step(changes, database, &proxy, &source);
        }
        proxy.heal();
        wait_caught_up(&source);
    });
    wait_until(&source, "the guard knows exactly the ids that exist", || {
        changes.committed.ids().iter().all(|id| knows(&ids, id))
            && changes.gone.iter().all(|id| !has(&ids, id))
    });
    drop(source);
    // Changes that no guard sees.
    for _ in 0..changes.random.below(4) {
        changes.change(database);
    }
}

/// Makes a change or a fault.
fn step(changes: &mut Changes, database: &mut impl Database, proxy: &TcpProxy, source: &Source) {
    match changes.random.below(24) {
        0 => proxy.cut(),
        1 | 2 => {
            proxy.partition();
            for _ in 0..changes.random.below(4) {
                changes.change(database);
            }
            changes.pause(300);
            proxy.heal();
        }
        3 => {
            changes.kill(database);
            database.run();
        }
        4 => source.rebuild(),
        5 | 6 => changes.pause(100),
        // A source that reads all ids after each fault is seldom synced.
        7 => wait_caught_up(source),
        _ => changes.change(database),
    }
}

/// Waits until a source knows all changes that were committed before this call.
///
/// A source that has just lost its connection is still synced for a while, so `wait_synced` returns
/// at once.
fn wait_caught_up(source: &Source) {
    let start = Instant::now();
    wait_until(source, "caught up", || {
        let elapsed = start.elapsed();
        let status = source.status();
        status.state == SyncState::Synced && status.lag.is_some_and(|lag| lag < elapsed)
    });
}
