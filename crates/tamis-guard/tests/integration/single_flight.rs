//! One request at a time for the same id reaches the service, until the service has answered.

mod guarded;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use tamis_guard::{RefuseReason, Route, SingleFlight};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::checker::Random;
use crate::proxy::support::{in_time, wait_until};
use guarded::Guarded;

async fn statuses(tasks: Vec<JoinHandle<StatusCode>>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for task in tasks {
        statuses.push(in_time("an answer", task).await.unwrap().as_u16());
    }
    statuses
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns a service that answers with a status after a second.
fn slow(status: u16) -> impl Fn(usize) -> Pin<Box<dyn Future<Output = u16> + Send>> {
    slow_after(status, status)
}

/// Returns such a service whose first answer has another status.
fn slow_after(
    first: u16,
    others: u16,
) -> impl Fn(usize) -> Pin<Box<dyn Future<Output = u16> + Send>> {
    move |number| {
        Box::pin(async move {
            sleep(SECOND).await;
            if number == 0 { first } else { others }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_requests_at_once_for_a_false_positive_cost_one() {
    for _ in 0..20 {
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let guarded = Guarded::new(SingleFlight::default(), move |_| {
            let gate = Arc::clone(&gate);
            async move {
                drop(gate.acquire().await.unwrap());
                404
            }
        });
        let tasks: Vec<_> = (0..1000).map(|_| guarded.get(7)).collect();
        // Some requests arrive before the answer, others while it is given, and others after it.
        wait_until("requests wait", async || guarded.single().waited() >= 300).await;
        opened.add_permits(1);
        assert_eq!(statuses(tasks).await, [404; 1000]);
        assert_eq!(guarded.reached(), 1);
        assert_eq!(guarded.refused(RefuseReason::Negative), 999);
        assert_eq!(guarded.single().gave_up(), 0);
        guarded.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_success_all_requests_go_at_once_and_later_ones_do_not_wait() {
    let guarded = Guarded::new(SingleFlight::default(), slow(200));
    let start = Instant::now();
    let tasks = guarded.get_many(7, 500).await;
    assert_eq!(guarded.reached(), 1);
    assert_eq!(statuses(tasks).await, [200; 500]);
    // One second for the first request, and one for all others.
    assert_eq!((guarded.reached(), start.elapsed()), (500, 2 * SECOND));
    let tasks = guarded.get_many(7, 500).await;
    assert_eq!(guarded.reached(), 1000);
    assert_eq!(statuses(tasks).await, [200; 500]);
    assert_eq!(start.elapsed(), 3 * SECOND);
    // Other ids wait for their own answers.
    guarded.get_many(8, 10).await;
    assert_eq!((guarded.reached(), guarded.single().waited()), (1001, 499 + 9));
    sleep(5 * SECOND).await;
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_service_releases_the_requests_and_proves_nothing() {
    for status in [401, 429, 500, 503] {
        let guarded = Guarded::new(SingleFlight::default(), slow_after(status, 200));
        let first = guarded.get(7);
        let others = guarded.get_many(7, 50).await;
        assert_eq!(in_time("the first answer", first).await.unwrap(), status);
        guarded.get_many(7, 3).await;
        // The first one, those that waited for it, and one of the new ones.
        assert_eq!(guarded.reached(), 1 + 50 + 1, "{status}");
        assert_eq!(statuses(others).await, [200; 50]);
        sleep(5 * SECOND).await;
        guarded.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_product_that_has_gone_is_not_proven_any_more() {
    let guarded = Guarded::with(SingleFlight::default(), 0, |_| {}, slow_after(200, 404));
    assert_eq!(guarded.get(7).await.unwrap(), 200);
    assert_eq!(guarded.get(7).await.unwrap(), 404);
    let tasks = guarded.get_many(7, 5).await;
    assert_eq!(guarded.reached(), 3);
    // Without the negative cache, each request needs an answer of its own.
    assert_eq!(statuses(tasks).await, [404; 5]);
    assert_eq!(guarded.reached(), 7);
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn the_next_request_has_the_turn_if_the_first_one_is_cancelled_or_panics() {
    let guarded = Guarded::new(SingleFlight::default(), |number| async move {
        assert_ne!(number, 1, "the service panics");
        sleep(SECOND).await;
        404
    });
    let mut tasks = guarded.get_many(7, 10).await;
    assert_eq!(guarded.reached(), 1);
    // A request that waits goes away too.
    tasks.remove(3).abort();
    tasks.remove(0).abort();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(guarded.reached(), 3);
    assert!(in_time("an answer", tasks.remove(0)).await.unwrap_err().is_panic());
    assert_eq!(statuses(tasks).await, [404; 7]);
    assert_eq!(guarded.reached(), 3);
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_limited_time() {
    let guarded = Guarded::new(SingleFlight::new(5 * SECOND, 100), |number| async move {
        sleep(if number == 0 { 60 * SECOND } else { SECOND }).await;
        200
    });
    let start = Instant::now();
    let first = guarded.get(7);
    let tasks = guarded.get_many(7, 20).await;
    assert_eq!(guarded.reached(), 1);
    assert_eq!(statuses(tasks).await, [200; 20]);
    assert_eq!((guarded.reached(), start.elapsed()), (21, 6 * SECOND));
    assert_eq!(guarded.single().gave_up(), 20);
    // Their answers have proven the id.
    assert_eq!(guarded.get(7).await.unwrap(), 200);
    assert_eq!(start.elapsed(), 7 * SECOND);
    assert_eq!(in_time("the first answer", first).await.unwrap(), 200);
    assert_eq!(start.elapsed(), 60 * SECOND);
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_limited_number_of_requests_waits() {
    let guarded = Guarded::new(SingleFlight::new(5 * SECOND, 10), slow(404));
    let tasks = guarded.get_many(7, 30).await;
    // One has the turn, ten wait, and the others go.
    assert_eq!(guarded.reached(), 20);
    assert_eq!((guarded.single().waited(), guarded.single().gave_up()), (10, 19));
    assert_eq!(statuses(tasks).await, [404; 30]);
    assert_eq!(guarded.reached(), 20);
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn other_requests_do_not_wait() {
    let shadow = |route: &mut Route| route.is_shadow = true;
    for (set, method, uri) in [
        (&(|_: &mut Route| {}) as &dyn Fn(&mut Route), Method::POST, "/products/7"),
        (&|_| {}, Method::GET, "/products/7?id=8"),
        (&|_| {}, Method::GET, "/other/7"),
        (&shadow, Method::GET, "/products/7"),
    ] {
        let guarded = Guarded::with(SingleFlight::default(), 1000, set, slow(404));
        for _ in 0..10 {
            tokio::spawn(guarded.send(method.clone(), uri));
        }
        tokio::task::yield_now().await;
        assert_eq!(guarded.reached(), 10, "{method} {uri}");
    }
    let guarded = Guarded::new(SingleFlight::default(), slow(404));
    for method in [Method::HEAD, Method::GET] {
        tokio::spawn(guarded.send(method, "/products/7"));
    }
    tokio::task::yield_now().await;
    assert_eq!(guarded.reached(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_created_while_requests_wait_passes() {
    let guarded = Guarded::new(SingleFlight::default(), slow_after(404, 200));
    let tasks = guarded.get_many(7, 10).await;
    guarded.layer.routes()[0].ids()[0].ids.insert_recent(b"7").unwrap();
    let mut statuses = statuses(tasks).await;
    // The first answer is older than the insert, so it is not in the negative cache.
    assert_eq!(statuses.remove(0), 404);
    assert_eq!(statuses, [200; 9]);
    guarded.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn random_cancellations_leave_nothing_behind() {
    let mut random = Random(17);
    let mut below = |end: u64| random.below(end);
    for round in 0..100 {
        let kind = below(3);
        let guarded = Guarded::new(SingleFlight::new(3 * SECOND, 8), move |number| async move {
            sleep(Duration::from_millis(100 * (number as u64 * 7 % 50))).await;
            match kind {
                0 => 404,
                1 => 200,
                _ => [404, 200, 500][number % 3],
            }
        });
        let mut tasks = Vec::new();
        for _ in 0..200 {
            let request = guarded.get(1 + below(4) as u32);
            if below(3) == 0 {
                let pause = Duration::from_millis(below(4000));
                tokio::spawn(async move {
                    sleep(pause).await;
                    request.abort();
                });
            } else {
                tasks.push(request);
            }
            sleep(Duration::from_millis(below(50))).await;
        }
        let answered = timeout(60 * SECOND, statuses(tasks)).await;
        assert!(answered.is_ok(), "{round}: a request waits for ever");
        sleep(60 * SECOND).await;
        guarded.assert_empty();
    }
}
