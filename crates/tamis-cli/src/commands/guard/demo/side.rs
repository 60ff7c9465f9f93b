//! One of the two copies of the shop, with the counters of its clients and its database.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;

use crate::commands::guard::demo::database::Database;
use crate::commands::guard::demo::latencies::Latencies;

/// One of the two copies of the shop.
#[derive(Debug)]
pub struct Side {
    /// The address to which the clients of this copy of the shop send requests: the guard or the
    /// product service.
    pub address: SocketAddr,
    database: Arc<Database>,
    attack: AtomicU64,
    customers: AtomicU64,
    wrong_404: AtomicU64,
    failed: AtomicU64,
    /// The latencies of customers since the last sample.
    recent: Mutex<Latencies>,
}

/// The counters of one copy of the shop since the start of the demo.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// The number of database queries for products.
    pub queries: u64,
    /// The number of queries for products that do not exist.
    pub absent_queries: u64,
    /// The number of requests that the attacker sent.
    pub attack: u64,
    /// The number of customer requests that got the product.
    pub customers: u64,
    /// The number of customer requests that got a 404 response although the product exists.
    pub wrong_404: u64,
    /// The number of requests without a response, or with an unexpected status.
    pub failed: u64,
}

impl Side {
    pub fn new(address: SocketAddr, database: Arc<Database>) -> Self {
        Self {
            address,
            database,
            attack: AtomicU64::new(0),
            customers: AtomicU64::new(0),
            wrong_404: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            recent: Mutex::default(),
        }
    }

    /// Counts a request that the attacker is about to send.
    pub fn count_attack(&self) {
        self.attack.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a response to the attacker as failed if the status is not 404. `None` stands for a
    /// request without a response.
    pub fn count_attack_answer(&self, status: Option<StatusCode>) {
        if status != Some(StatusCode::NOT_FOUND) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a response to a customer.
    pub fn count_customer(&self, status: Option<StatusCode>, time: Duration) {
        let counter = match status {
            Some(StatusCode::OK) => &self.customers,
            Some(StatusCode::NOT_FOUND) => &self.wrong_404,
            _ => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.recent.lock().record(time);
    }

    pub fn totals(&self) -> Totals {
        // Relaxed ordering is enough, because the numbers are only displayed.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // The database counters are read before the request counters. The totals therefore never
        // show more queries than sent requests.
        Totals {
            queries: self.database.queries(),
            absent_queries: self.database.absent_queries(),
            attack: read(&self.attack),
            customers: read(&self.customers),
            wrong_404: read(&self.wrong_404),
            failed: read(&self.failed),
        }
    }

    /// Returns the latencies of customers since the last call of this method.
    pub fn take_latencies(&self) -> Latencies {
        std::mem::take(&mut *self.recent.lock())
    }
}
