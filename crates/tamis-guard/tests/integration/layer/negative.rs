//! Which answers 404 the negative cache keeps.

use http::header::PRAGMA;

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
