//! Random changes of a table and random faults, in an order that a seed decides, while a checker
//! tests the promise of the source.
//!
//! A guard lives several lives: between two of them it is stopped, and the table changes without it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use tamis_sources::{IdSet, IdSetOptions, Source, SourceKind, Sources, SyncState};

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

/// Runs guards whose set has a table on each of two servers, with 60 changes and faults for each of two seeds. Both
/// tables have ids from 1 on, so an id may be in one table, in both tables or in no table.
pub fn run_two<D: Database, K: SourceKind + Clone>(
    databases: &mut [D; 2],
    options: impl Fn(&D, SocketAddr) -> K,
) {
    for seed in [3, 4] {
        println!("two tables, seed {seed}");
        let mut changes = [seed, seed + 100].map(|seed| Changes::new(seed, Deletion::Row));
        for (changes, database) in changes.iter_mut().zip(&mut *databases) {
            changes.commit(database);
        }
        live_with_two(&mut changes, databases, &options);
        databases.iter_mut().for_each(|database| database.sql("TRUNCATE products"));
    }
}

/// Runs a guard whose connections to two servers go through two proxies.
fn live_with_two<D: Database, K: SourceKind + Clone>(
    changes: &mut [Changes; 2],
    databases: &mut [D; 2],
    options: impl Fn(&D, SocketAddr) -> K,
) {
    let proxies = [0, 1].map(|i: usize| TcpProxy::start(databases[i].address()));
    let settings = IdSetOptions { rate: 1e-7, items: 1000, ..IdSetOptions::new(integers()) };
    let ids = Arc::new(IdSet::with_sources(settings, 2).unwrap());
    let kinds = [0, 1].map(|i: usize| {
        let kind = options(&databases[i], proxies[i].address);
        (Arc::new(kind) as Arc<dyn SourceKind>, crate::checker::options())
    });
    let sources = Sources::start(Arc::clone(&ids), kinds);
    let all: Vec<_> = sources.iter().map(|(_, source)| source).collect();
    let committed = [0, 1].map(|i: usize| Committed(Arc::clone(&changes[i].committed.0)));
    check(all[0], &ids, &committed[0], || {
        check(all[1], &ids, &committed[1], || {
            for _ in 0..60 {
                let i = changes[0].random.below(2) as usize;
                step(&mut changes[i], &mut databases[i], &proxies[i], all[i]);
            }
            proxies.iter().for_each(TcpProxy::heal);
            all.iter().for_each(|source| wait_caught_up(source));
        });
    });
    let exists = |id: &u64| committed.iter().any(|it| it.0.lock().contains_key(id));
    let what = std::fmt::from_fn(|f| {
        write!(f, "the guard knows exactly the ids that exist: {:?}", sources.status())
    });
    tamis_testing::wait_until(what, || {
        let all_ids =
            changes.iter().flat_map(|it| it.gone.iter().copied().chain(it.committed.ids()));
        all_ids.into_iter().all(|id| has(&ids, id) == exists(&id))
    });
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
