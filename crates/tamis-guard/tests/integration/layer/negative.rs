//! Which answers 404 the negative cache keeps.

use http::header::PRAGMA;

use tamis_guard::ChangeKind;

use super::*;

/// Asks twice for a product that the shop does not have.
async fn twice(guarded: &mut Guarded, uri: &str) {
    for _ in 0..2 {
        assert_eq!(guarded.get(uri).await, StatusCode::NOT_FOUND, "{uri}");
    }
}

/// The program reads from a replica, which lags behind the source of the guard.
#[tokio::test]
async fn a_404_for_an_id_that_is_new_in_the_guard_is_not_kept() {
    let recent_for = Duration::from_millis(200);
    let ids = products_with(IdSetOptions { recent_for, ..IdSetOptions::new(integers()) });
    let mut guarded = Guarded::new(vec![route("/products/{id}", &["path:id"], &ids)]);
    // All ids of a generation may be new. A source reports one id, and an answer or a push another.
    ids.insert(b"501").unwrap();
    ids.insert_recent(b"502").unwrap();
    for uri in ["/products/500", "/products/501", "/products/502"] {
        twice(&mut guarded, uri).await;
        assert_eq!(guarded.reached(), 2, "{uri}");
    }
    std::thread::sleep(recent_for);
    for uri in ["/products/500", "/products/501"] {
        twice(&mut guarded, uri).await;
        assert_eq!(guarded.reached(), 1, "{uri}");
    }
    let again = ids.start_generation(10).unwrap();
    again.insert_key(b"500", Some(500)).unwrap();
    ids.publish_generation();
    twice(&mut guarded, "/products/500").await;
    assert_eq!(guarded.reached(), 2);
}

/// Returns `count` ids that the set contains only as false positives.
fn misjudged(ids: &IdSet, count: usize) -> Vec<u64> {
    let absent = 2_000_000..3_000_000_u64;
    let ids: Vec<_> =
        absent.filter(|id| ids.decide(id.to_string().as_bytes()).passes()).take(count).collect();
    assert_eq!(ids.len(), count);
    ids
}

/// An attacker has found many ids that the filter misjudges, and repeats all of them.
#[tokio::test]
async fn each_misjudged_id_passes_once_until_a_row_of_the_id_changes() {
    const COUNT: usize = 5000;

    let options =
        IdSetOptions { rate: 0.1, recent_for: Duration::ZERO, ..IdSetOptions::new(integers()) };
    // The smallest filter has room for 10,000 ids, and fewer ids have fewer false positives.
    let ids = known(options, (1..100).chain(1_000_000..1_009_900));
    let misjudged = misjudged(&ids, COUNT);
    let mut guarded = Guarded::new(vec![route("/products/{id}", &["path:id"], &ids)]);
    for (round, reached) in [(0, COUNT), (1, 0), (2, 0)] {
        for id in &misjudged {
            let status = guarded.get(&format!("/products/{id}")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{id}");
        }
        assert_eq!(guarded.reached(), reached, "{round}");
        let refused = guarded.layer.routes()[0].counters.refused(RefuseReason::Negative);
        assert_eq!(refused, round * COUNT as u64);
    }
    assert_eq!(guarded.get("/products/7").await, StatusCode::OK);
    assert_eq!(guarded.reached(), 1);
    // Each event of one id lets this id pass once. The service responds with 404 again.
    let changed = misjudged[COUNT / 2].to_string();
    let events: [&dyn Fn(); 3] = [
        &|| ids.insert(changed.as_str()).unwrap(),
        &|| ids.insert_recent(changed.as_str()).unwrap(),
        &|| ids.apply_change(ChangeKind::DeleteRow, changed.as_bytes()).unwrap(),
    ];
    for (number, event) in events.into_iter().enumerate() {
        event();
        for reached in [1, 0] {
            guarded.get(&format!("/products/{changed}")).await;
            assert_eq!(guarded.reached(), reached, "event {number}");
        }
        for id in misjudged.iter().filter(|id| id.to_string() != changed).step_by(100) {
            guarded.get(&format!("/products/{id}")).await;
        }
        assert_eq!(guarded.reached(), 0, "event {number}");
    }
}

/// A 404 may depend on a date. The first client with another response shows that the id exists.
#[tokio::test]
async fn a_success_for_an_id_ends_its_refusals() {
    let mut guarded = Guarded::of_products(|_| {});
    guarded.shop.is_strict.store(true, Ordering::Relaxed);
    twice(&mut guarded, "/products/7").await;
    assert_eq!(guarded.reached(), 1);
    let request = Request::get("/products/7").header("token", "a").body(Full::default()).unwrap();
    assert_eq!(guarded.answer(request).await.status(), StatusCode::OK);
    guarded.shop.is_strict.store(false, Ordering::Relaxed);
    assert_eq!(guarded.get("/products/7").await, StatusCode::OK);
}

/// The upstream service may respond with 404 because of the body.
#[tokio::test]
async fn a_404_for_a_request_with_a_body_is_not_kept() {
    let mut guarded = Guarded::of_products(|_| {});
    for _ in 0..2 {
        let request = Request::get("/products/500").body(Full::from("a body")).unwrap();
        assert_eq!(guarded.answer(request).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(guarded.reached(), 1);
    }
    twice(&mut guarded, "/products/500").await;
    assert_eq!(guarded.reached(), 1);
}

#[tokio::test]
async fn a_stale_set_refuses_no_request_because_of_a_404() {
    let ids = products();
    let mut guarded = Guarded::new(vec![route("/products/{id}", &["path:id"], &ids)]);
    for (state, reached) in [(SyncState::Synced, 1), (SyncState::Stale, 2), (SyncState::Synced, 0)]
    {
        ids.set_state(state);
        twice(&mut guarded, "/products/500").await;
        assert_eq!(guarded.reached(), reached, "{state:?}");
    }
}

#[tokio::test]
async fn the_negative_cache_obeys_cache_control() {
    let mut guarded = Guarded::of_products(|_| {});
    for (value, is_kept) in [
        ("no-store", false),
        ("private, No-Cache", false),
        ("no-cache=\"set-cookie\"", false),
        ("max-age=0, must-revalidate", false),
        ("public, s-maxage = 0", false),
        ("max-age=60", true),
        ("private", true),
        ("x-no-store", true),
    ] {
        *guarded.shop.caching.lock().unwrap() = Some(value);
        let uri = format!("/products/500?{}", value.replace([' ', '"'], ""));
        twice(&mut guarded, &uri).await;
        assert_eq!(guarded.reached(), if is_kept { 1 } else { 2 }, "{value}");
    }
    *guarded.shop.caching.lock().unwrap() = None;
    guarded.get("/products/500").await;
    assert_eq!(guarded.reached(), 1);
    for (name, value) in
        [(CACHE_CONTROL, "no-cache"), (CACHE_CONTROL, "max-age=0"), (PRAGMA, "no-cache")]
    {
        let request = Request::get("/products/500").header(&name, value);
        let request = request.body(Full::default()).unwrap();
        assert_eq!(guarded.answer(request).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(guarded.reached(), 1, "{name}: {value}");
    }
    guarded.get("/products/500").await;
    assert_eq!(guarded.reached(), 0);
    for _ in 0..2 {
        let request = Request::get("/products/500?2").header(CACHE_CONTROL, "no-store");
        guarded.answer(request.body(Full::default()).unwrap()).await;
    }
    guarded.get("/products/500?2").await;
    assert_eq!(guarded.reached(), 3);
}
