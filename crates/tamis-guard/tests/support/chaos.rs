//! Random changes of a table and random faults, in an order that a seed decides, while a checker
//! tests the promise of the source.
//!
//! A guard lives several lives: between two of them it is stopped, and the table changes without it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tamis_guard::IdSet;
use tamis_guard::source::Source;

use crate::checker::{
    Committed, Random, check, has, id_set, integers, knows, wait_synced, wait_until,
};
use crate::tcp_proxy::TcpProxy;

/// A database with a table of ids, and faults.
pub trait Database {
    /// Commits one transaction that deletes and inserts ids.
    fn commit(&mut self, delete: &[u64], insert: &[u64]);
    /// Begins a transaction that inserts ids, and ends it without a commit.
    fn roll_back(&mut self, insert: &[u64]);
    /// Replaces the table by another one with these ids, in one step.
    fn swap(&mut self, ids: &[u64]);
    fn truncate(&mut self);
    /// Kills the server and starts it again, in the middle of a transaction that inserts ids.
    fn crash(&mut self, insert: &[u64]);
    fn address(&self) -> SocketAddr;
    /// Starts a source whose connections go to `address`. If it can have a snapshot, it continues
    /// that of the source before it.
    fn source(&self, ids: &Arc<IdSet>, address: SocketAddr) -> Source;
}

/// Runs `lives` guards after each other, with `steps` changes and faults in each life.
pub fn run(database: &mut impl Database, seed: u64, lives: u32, steps: u32) {
    let mut story = Story {
        random: Random(seed),
        next: 1,
        committed: Committed::default(),
        gone: BTreeSet::new(),
    };
    story.commit(database);
    for life in 0..lives {
        let proxy = TcpProxy::start(database.address());
        let ids = id_set(integers());
        let source = database.source(&ids, proxy.address);
        // Not a clone of the story: the checker reads the ids while the story changes them.
        let committed = Arc::clone(&story.committed.0);
        let committed = Committed(committed);
        check(&source, &ids, &committed, || {
            for _ in 0..steps {
                story.step(database, &proxy, &source);
            }
            proxy.heal();
            wait_synced(&source);
        });
        let what = format!("life {life} of seed {seed} knows exactly the ids that exist");
        wait_until(&source, &what, || {
            story.committed.ids().iter().all(|id| knows(&ids, id))
                && story.gone.iter().all(|id| !has(&ids, id))
        });
        drop(source);
        // Changes that no guard sees.
        for _ in 0..story.random.below(4) {
            story.change(database);
        }
    }
}

struct Story {
    random: Random,
    /// The next id that never existed.
    next: u64,
    committed: Committed,
    /// Ids that do not exist: deleted, or never committed.
    gone: BTreeSet<u64>,
}

impl Story {
    /// Makes a change or a fault.
    fn step(&mut self, database: &mut impl Database, proxy: &TcpProxy, source: &Source) {
        match self.random.below(24) {
            0 => proxy.cut(),
            1 | 2 => {
                proxy.partition();
                for _ in 0..self.random.below(4) {
                    self.change(database);
                }
                self.pause(300);
                proxy.heal();
            }
            3 => {
                let never = self.new_ids();
                database.crash(&never);
                self.gone.extend(never);
            }
            4 => source.rebuild(),
            5 | 6 => self.pause(100),
            // A source that reads all ids after each fault is seldom synced.
            7 => _ = wait_synced(source),
            _ => self.change(database),
        }
    }

    /// Changes the table.
    fn change(&mut self, database: &mut impl Database) {
        match self.random.below(16) {
            0 => {
                let removed = self.picked(5);
                self.remove(&removed);
                let new = self.new_ids();
                let mut ids = self.committed.ids();
                ids.extend(&new);
                database.swap(&ids);
                self.committed.insert(new);
            }
            1 => {
                let all = self.committed.ids();
                self.remove(&all);
                database.truncate();
                self.commit(database);
            }
            2 | 3 => {
                let never = self.new_ids();
                database.roll_back(&never);
                self.gone.extend(never);
            }
            _ => self.commit(database),
        }
    }

    /// Commits a transaction. Some of its new ids were deleted before.
    fn commit(&mut self, database: &mut impl Database) {
        let count = self.random.below(8) as usize;
        let delete = self.picked(count);
        self.remove(&delete);
        let mut insert = self.new_ids();
        if self.random.below(2) == 0 {
            let back: Vec<u64> = self.gone.iter().copied().take(2).collect();
            // An id that this transaction deletes and inserts exists in the end.
            insert.extend(back);
        }
        insert.iter().for_each(|id| _ = self.gone.remove(id));
        database.commit(&delete, &insert);
        self.committed.insert(insert);
    }

    /// Records that ids will be deleted.
    fn remove(&mut self, ids: &[u64]) {
        self.committed.remove(ids.iter().copied());
        self.gone.extend(ids);
    }

    fn picked(&mut self, count: usize) -> Vec<u64> {
        let picked = (0..count).filter_map(|_| self.committed.pick(&mut self.random));
        picked.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn new_ids(&mut self) -> Vec<u64> {
        let first = self.next;
        self.next += 1 + self.random.below(20);
        (first..self.next).collect()
    }

    fn pause(&mut self, most_millis: u64) {
        std::thread::sleep(Duration::from_millis(self.random.below(most_millis)));
    }
}
