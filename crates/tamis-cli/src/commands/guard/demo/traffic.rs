//! The clients of the demo: customers, who request products that exist, and an attacker, who
//! requests products that do not exist.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::commands::guard::demo::client::Client;
use crate::commands::guard::demo::product_service::PATH;
use crate::commands::guard::demo::shop::{PRODUCTS, mixed};
use crate::commands::guard::demo::side::Side;

/// The number of attack requests per second. Each attack request is for a product that does not
/// exist.
pub const ATTACK: u32 = 1000;

/// The number of customer requests per second.
pub const CUSTOMERS: u32 = 200;

/// The maximum number of customer requests, or of attack requests, that wait for a response of one
/// copy of the shop. If this copy responds too slowly, its clients send fewer requests than
/// planned.
const IN_FLIGHT: u32 = 64;

/// The maximum delay of requests. After a delay that exceeds this maximum, the clients skip some
/// requests.
const MOST_LATE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
enum Kind {
    Customer,
    Attacker,
}

/// Starts the clients of one copy of the shop. When `stop` becomes true, the clients finish their
/// last requests and end.
pub fn start(side: &Arc<Side>, clients: &mut JoinSet<()>, stop: &watch::Receiver<bool>) {
    for (kind, per_second) in [(Kind::Customer, CUSTOMERS), (Kind::Attacker, ATTACK)] {
        let pace = Arc::new(Pace::new(per_second));
        for _ in 0..IN_FLIGHT {
            let (side, pace, stop) = (Arc::clone(side), Arc::clone(&pace), stop.clone());
            clients.spawn(run(kind, side, pace, stop));
        }
    }
}

async fn run(kind: Kind, side: Arc<Side>, pace: Arc<Pace>, mut stop: watch::Receiver<bool>) {
    let mut client = Client::new(side.address);
    loop {
        let number = tokio::select! {
            biased;
            _ = stop.wait_for(|&is_stopped| is_stopped) => return,
            number = pace.wait() => number,
        };
        let id = match kind {
            Kind::Customer => existing_id(number),
            Kind::Attacker => {
                side.count_attack();
                absent_id(number)
            }
        };
        let start = Instant::now();
        let status = client.get(&format!("{PATH}/{id}")).await;
        match kind {
            Kind::Customer => side.count_customer(status, start.elapsed()),
            Kind::Attacker => side.count_attack_answer(status),
        }
    }
}

/// Schedules the requests at a fixed rate.
struct Pace {
    start: Instant,
    per_second: u32,
    next: AtomicU64,
}

impl Pace {
    fn new(per_second: u32) -> Self {
        Self { start: Instant::now(), per_second, next: AtomicU64::new(0) }
    }

    /// Waits until the next request is due. Returns the number of the request that is due.
    async fn wait(&self) -> u64 {
        let (number, due) = self.take();
        sleep_until(due).await;
        self.skip_missed(due, Instant::now());
        number
    }

    /// Returns the number of the next request, and the time when the request is due.
    fn take(&self) -> (u64, Instant) {
        // Relaxed ordering is enough, because the only requirement is that the numbers differ.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let seconds = number as f64 / f64::from(self.per_second);
        (number, self.start + Duration::from_secs_f64(seconds))
    }

    /// Leaves out the requests for which no connection was free, so that these requests do not
    /// follow as a burst.
    fn skip_missed(&self, due: Instant, now: Instant) {
        if now > due + MOST_LATE {
            let present = (now - self.start).as_secs_f64() * f64::from(self.per_second);
            self.next.fetch_max(present as u64, Ordering::Relaxed);
        }
    }
}

/// Returns the id of a product that exists. The probability of the product of rank `r` is
/// proportional to `1/r`, as in Zipf's law.
fn existing_id(number: u64) -> u64 {
    let uniform = (mixed(number) >> 11) as f64 / (1_u64 << 53) as f64;
    let rank = (PRODUCTS as f64).powf(uniform) as u64;
    // The multiplication spreads popular products over all ids. The factor and the number of
    // products have no common divisor.
    rank * 61_803 % PRODUCTS + 1
}

/// Returns an id that no product has. Different values of `number` give different ids.
fn absent_id(number: u64) -> u64 {
    // The factor is odd, so different numbers give different ids.
    const RANGE: u64 = 1 << 40;
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % RANGE) + 10 * PRODUCTS
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn customers_ask_for_products_that_exist_and_some_are_popular() {
        let mut asked = HashMap::new();
        for number in 0..20_000 {
            let id = existing_id(number);
            assert!((1..=PRODUCTS).contains(&id));
            *asked.entry(id).or_insert(0) += 1;
        }
        let most = asked.values().max().unwrap();
        assert!((600..2400).contains(most), "{most}");
        assert!(asked.len() > 5000, "{}", asked.len());
    }

    #[test]
    fn the_attacker_asks_for_each_id_once_and_none_exists() {
        let ids: HashSet<u64> = (0..100_000).map(absent_id).collect();
        assert_eq!(ids.len(), 100_000);
        assert!(ids.iter().all(|&id| id > 2 * PRODUCTS));
    }

    #[test]
    fn late_requests_do_not_come_as_a_burst() {
        let pace = Pace::new(100);
        let (first, due) = pace.take();
        assert_eq!((first, due), (0, pace.start));
        pace.skip_missed(due, due + MOST_LATE);
        assert_eq!(pace.take(), (1, pace.start + Duration::from_millis(10)));
        pace.skip_missed(due, due + Duration::from_secs(10));
        assert_eq!(pace.take().0, 1000);
    }
}
