//! A pool of connections to the database of the shop. The pool counts its queries.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::oneshot;

use crate::commands::guard::demo::shop::{self, Product};

/// The number of connections of a pool.
pub const CONNECTIONS: usize = 4;

/// The time that a query takes. SQLite needs only some microseconds for a query, but a database on
/// another machine needs more time than SQLite. A query keeps its connection busy for `QUERY_TIME`.
pub const QUERY_TIME: Duration = Duration::from_millis(5);

/// A pool of connections. Each connection has a thread. If all connections are busy, queries wait
/// in order of arrival.
#[derive(Debug)]
pub struct Database {
    jobs: mpsc::Sender<Job>,
    counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
}

/// The numbers of queries that a database has executed.
#[derive(Debug, Default)]
struct Counters {
    queries: AtomicU64,
    absent: AtomicU64,
}

type Reply<T> = oneshot::Sender<rusqlite::Result<T>>;

enum Job {
    Find(u64, Reply<Option<Product>>),
    Create(Product, Reply<u64>),
}

impl Database {
    /// Opens the connections.
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let counters = Arc::new(Counters::default());
        let mut threads = Vec::new();
        for _ in 0..CONNECTIONS {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(10))?;
            let (queue, counters) = (Arc::clone(&queue), Arc::clone(&counters));
            threads.push(thread::spawn(move || serve(&connection, &queue, &counters)));
        }
        Ok(Self { jobs, counters, threads })
    }

    /// Returns a product, or `None` if no row has the id.
    pub async fn find(&self, id: u64) -> rusqlite::Result<Option<Product>> {
        self.run(|reply| Job::Find(id, reply)).await
    }

    /// Stores a product. Returns the id of the product.
    pub async fn create(&self, product: Product) -> rusqlite::Result<u64> {
        self.run(|reply| Job::Create(product, reply)).await
    }

    /// Returns the number of queries for products.
    pub fn queries(&self) -> u64 {
        self.counters.queries.load(Ordering::Relaxed)
    }

    /// Returns the number of queries for products that do not exist.
    pub fn absent_queries(&self) -> u64 {
        self.counters.absent.load(Ordering::Relaxed)
    }

    async fn run<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> rusqlite::Result<T> {
        let (reply, answer) = oneshot::channel();
        // The threads run until the pool is dropped, so the queue is open.
        _ = self.jobs.send(job(reply));
        answer.await.unwrap_or(Err(rusqlite::Error::InvalidQuery))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The threads end when the queue has no sender.
        self.jobs = mpsc::channel().0;
        for thread in self.threads.drain(..) {
            _ = thread.join();
        }
    }
}

/// Executes queries until the pool is dropped.
fn serve(connection: &Connection, queue: &Mutex<mpsc::Receiver<Job>>, counters: &Counters) {
    loop {
        let job = queue.lock().recv();
        let Ok(job) = job else { return };
        let start = Instant::now();
        match job {
            Job::Find(id, reply) => {
                let found = find(connection, id);
                // Relaxed ordering is enough, because the numbers are only displayed.
                counters.queries.fetch_add(1, Ordering::Relaxed);
                if matches!(found, Ok(None)) {
                    counters.absent.fetch_add(1, Ordering::Relaxed);
                }
                thread::sleep(QUERY_TIME.saturating_sub(start.elapsed()));
                // An error means that the client no longer waits for the result.
                _ = reply.send(found);
            }
            Job::Create(product, reply) => _ = reply.send(shop::insert(connection, &product)),
        }
    }
}

fn find(connection: &Connection, id: u64) -> rusqlite::Result<Option<Product>> {
    let Ok(id) = i64::try_from(id) else { return Ok(None) };
    let query = "SELECT name, name_zh, price_cents, stock FROM products WHERE id = ?";
    let mut statement = connection.prepare_cached(query)?;
    let product = statement.query_row([id], |row| {
        Ok(Product {
            english: row.get(0)?,
            chinese: row.get(1)?,
            price_cents: row.get(2)?,
            stock: row.get(3)?,
        })
    });
    product.optional()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[tokio::test]
    async fn each_query_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        shop::create(&path, 10, &AtomicBool::new(false)).unwrap();
        let database = Database::open(&path).unwrap();
        assert_eq!(database.find(3).await.unwrap(), Some(shop::product(3)));
        for id in [11, 0, u64::MAX] {
            assert_eq!(database.find(id).await.unwrap(), None);
        }
        assert_eq!((database.queries(), database.absent_queries()), (4, 3));
        let id = database.create(shop::product(11)).await.unwrap();
        assert_eq!((id, database.queries()), (11, 4));
        assert!(database.find(11).await.unwrap().is_some());
    }
}
