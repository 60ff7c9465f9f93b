//! Checks the promise with requests, while a story changes the ids and attacks the guard.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tamis_testing::join;

use crate::client::{Answer, Client};
use crate::guard::{Addresses, Life, STALE_AFTER, status};

/// Beyond the delay of a thread on a busy machine.
pub const MARGIN: Duration = Duration::from_millis(700);

/// The longest pause between two rounds of requests.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// The ids above this one never exist.
pub const NEVER: u64 = 1 << 40;

type Ids = Arc<Mutex<BTreeMap<u64, Instant>>>;

/// A thread that sends requests all the time. It ends with the test.
pub struct Checker {
    thread: Option<JoinHandle<Result<Counts, String>>>,
    is_done: Arc<AtomicBool>,
}

/// What a checker has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answers to requests for ids that must not be refused.
    pub checks: u64,
    /// Those of them that were sent while the guard refused absent ids.
    pub checks_in_use: u64,
    /// Requests without an answer.
    pub errors: u64,
}

impl Checker {
    /// Starts a thread that sends requests for the committed ids.
    pub fn start(addresses: Addresses, life: Life, committed: Ids) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let mut work = Work {
            client: Client::new(addresses.proxy),
            admin: Client::new(addresses.admin),
            life,
            committed,
            never: NEVER,
            counts: Counts::default(),
        };
        let check = move || {
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                work.check_once()?;
                // Without a pause, the checkers take the processors from the guards and the databases. A
                // longer pause, after a request without an answer, would miss the end of a fault.
                std::thread::sleep(start.elapsed().min(MAX_PAUSE));
            }
            Ok(work.counts)
        };
        let thread = std::thread::spawn(move || {
            catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                Err(text.unwrap_or_else(|| "the checker panicked".to_owned()))
            })
        });
        Self { thread: Some(thread), is_done }
    }

    /// Tests whether the checker has found a broken promise.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends the checker. Returns an error if the promise was broken.
    pub fn end(mut self) -> Result<Counts, String> {
        self.is_done.store(true, Ordering::Relaxed);
        join("the checker", self.thread.take().unwrap())
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
    }
}

struct Work {
    client: Client,
    admin: Client,
    life: Life,
    committed: Ids,
    /// An id that never exists. The next one is asked for once.
    never: u64,
    counts: Counts,
}

impl Work {
    /// Sends a request for each committed id.
    fn check_once(&mut self) -> Result<(), String> {
        let life = self.life.number();
        let claim = life.and_then(|_| self.claim());
        self.never += 1;
        let absent = self.ask(self.never).is_some_and(|answer| answer.status == 404);
        let ids: Vec<_> = self.committed.lock().iter().map(|(&id, &at)| (id, at)).collect();
        for (id, at) in ids {
            let start = Instant::now();
            let is_old = start - at > STALE_AFTER + MARGIN;
            let is_claimed = claim.is_some_and(|claim| at < claim);
            if !is_old && !is_claimed {
                continue;
            }
            let Some(answer) = self.ask(id) else { continue };
            self.counts.checks += 1;
            self.counts.checks_in_use += u64::from(absent);
            if answer.status == 200 {
                continue;
            }
            if answer.status == 404 {
                // The story removes an id before it deletes it.
                let is_same = self.committed.lock().get(&id) == Some(&at);
                // Another process, and another set, claims less at first.
                let holds = is_old || life == self.life.number();
                if !is_same || !holds {
                    continue;
                }
            }
            let age = start - at;
            let status = status(&mut self.admin);
            let claimed = if is_claimed { ", which the guard claimed to have" } else { "" };
            return Err(format!(
                "a request for id {id}, {age:?} after its commit{claimed}, got {}\nstatus: {status:?}",
                answer.text
            ));
        }
        Ok(())
    }

    /// Returns a moment before which the guard says that it has all ids.
    fn claim(&mut self) -> Option<Instant> {
        let before = Instant::now();
        let lag = status(&mut self.admin).ok()?["lag_seconds"].as_f64()?;
        before.checked_sub(Duration::from_secs_f64(lag))
    }

    /// Asks for an id. The guard may be down.
    fn ask(&mut self, id: u64) -> Option<Answer> {
        let answer = self.client.get(&format!("/products/{id}"));
        if answer.is_err() {
            self.counts.errors += 1;
            std::thread::sleep(Duration::from_millis(2));
        }
        answer.ok()
    }
}
