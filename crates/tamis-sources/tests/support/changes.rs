//! Random changes of a table of ids, in an order that a seed decides.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use crate::checker::{Committed, Random};

/// A database with a table `products` of ids.
pub trait Database {
    /// Creates an empty table `replacement`, which is like `products`.
    const CREATE: &'static str;
    /// Replaces the products by that table in one step, and drops the old table.
    const REPLACE: &'static str;

    /// Runs statements.
    fn sql(&mut self, sql: &str);
    /// Kills the server.
    fn kill(&mut self);
    /// Starts the server that was killed.
    fn run(&mut self);
    fn address(&self) -> SocketAddr;
}

/// Returns the statement that inserts ids, or an empty text for no ids.
fn insert(table: &str, ids: &[u64]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let rows: Vec<String> = ids.iter().map(|id| format!("('p', {id})")).collect();
    format!("INSERT INTO {table} VALUES {};", rows.join(", "))
}

/// Changes a table, and records which ids exist.
pub struct Changes {
    pub random: Random,
    /// The next id that never existed.
    next: u64,
    pub committed: Committed,
    /// Ids that do not exist: deleted, or never committed.
    pub gone: BTreeSet<u64>,
    deletion: Deletion,
}

/// The way in which a table loses ids.
#[derive(Clone, Copy)]
pub enum Deletion {
    Row,
    /// The row stays, but no longer satisfies the condition `name <> 'gone'`. Some rows are deleted.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    Condition,
}

impl Changes {
    /// Starts with an empty table.
    pub fn new(seed: u64, deletion: Deletion) -> Self {
        Self {
            deletion,
            random: Random(seed),
            next: 1,
            committed: Committed::default(),
            gone: BTreeSet::new(),
        }
    }

    /// Changes the table.
    pub fn change(&mut self, database: &mut impl Database) {
        match self.random.below(16) {
            0 => self.swap(database),
            1 => self.truncate(database),
            2 | 3 => {
                let never = self.never();
                let insert = insert("products", &never);
                database.sql(&format!("START TRANSACTION; {insert} ROLLBACK"));
            }
            _ => self.commit(database),
        }
    }

    /// Commits a transaction. Some of its new ids were deleted before.
    pub fn commit(&mut self, database: &mut impl Database) {
        let count = self.random.below(8) as usize;
        let gone = self.picked(count);
        self.remove(&gone);
        let mut new = self.new_ids();
        if self.random.below(2) == 0 {
            let back: Vec<u64> = self.gone.iter().copied().take(2).collect();
            // An id that this transaction deletes and inserts exists in the end.
            new.extend(back);
        }
        new.iter().for_each(|id| _ = self.gone.remove(id));
        let delete: String = gone.iter().map(|id| self.delete(*id)).collect();
        let insert = insert("products", &new);
        // An inserted id may have a row that does not satisfy the condition.
        let gone: String = match self.deletion {
            Deletion::Row => String::new(),
            Deletion::Condition => {
                new.iter().map(|id| format!("DELETE FROM products WHERE id = {id};")).collect()
            }
        };
        let delete = format!("{delete} {gone}");
        database.sql(&format!("START TRANSACTION; {delete} {insert} COMMIT"));
        self.committed.insert(new);
    }

    /// Replaces the table by one with some other ids.
    pub fn swap<D: Database>(&mut self, database: &mut D) {
        let removed = self.picked(5);
        self.remove(&removed);
        let new = self.new_ids();
        let mut ids = self.committed.ids();
        ids.extend(&new);
        database.sql(D::CREATE);
        database.sql(&insert("replacement", &ids));
        database.sql(D::REPLACE);
        self.committed.insert(new);
    }

    /// Empties the table, and commits some ids.
    pub fn truncate(&mut self, database: &mut impl Database) {
        let all = self.committed.ids();
        self.remove(&all);
        database.sql("TRUNCATE products");
        self.commit(database);
    }

    /// Kills the server in the middle of a transaction.
    pub fn kill(&mut self, database: &mut impl Database) {
        let never = self.never();
        database.sql(&format!("START TRANSACTION; {}", insert("products", &never)));
        database.kill();
    }

    fn delete(&self, id: u64) -> String {
        match (self.deletion, id % 3) {
            (Deletion::Row, _) | (_, 0) => format!("DELETE FROM products WHERE id = {id};"),
            (_, 1) => format!("UPDATE products SET name = 'gone' WHERE id = {id};"),
            _ => format!("UPDATE products SET name = NULL WHERE id = {id};"),
        }
    }

    pub fn pause(&mut self, most_millis: u64) {
        std::thread::sleep(Duration::from_millis(self.random.below(most_millis)));
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

    /// Returns new ids that will not be committed.
    fn never(&mut self) -> Vec<u64> {
        let never = self.new_ids();
        self.gone.extend(&never);
        never
    }
}
