//! The guard as a layer of an axum router, also of a nested router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Method, Request, StatusCode};
use tamis_guard::source::{FileFormat, FileOptions, Source, SourceOptions};
use tamis_guard::{
    GuardLayer, IdSet, IdType, PassReason, RefuseReason, Route, RouteError, SyncState,
};
use tower_service::Service as _;
use tracing::Level;

use crate::recorder::Recorder;

/// Returns a guard that knows the products 1 to 99.
fn guard(path: &str) -> GuardLayer {
    let products = IdSet::from_ids(IdType::integer(), 1..100).unwrap();
    GuardLayer::new([Route::new(path, "path:id", products).unwrap()])
}

fn products() -> Router {
    Router::new().route("/products/{id}", get(|| async { "a product" }))
}

async fn status(router: &mut Router, path: &str) -> StatusCode {
    router.call(Request::get(path).body(Body::empty()).unwrap()).await.unwrap().status()
}

/// Tests that a router passes the known products and refuses the absent products.
async fn is_guarded(mut router: Router, prefix: &str) {
    assert_eq!(status(&mut router, &format!("{prefix}/products/7")).await, 200);
    assert_eq!(status(&mut router, &format!("{prefix}/products/777")).await, 404);
}

#[tokio::test]
async fn a_route_checks_only_its_methods() -> Result<(), RouteError> {
    let products = IdSet::from_ids(IdType::integer(), 1..100).unwrap();
    let mut route = Route::new("/products/{id}", "path:id", products)?;
    route.methods = vec![Method::GET];
    let guard = GuardLayer::new([route]);
    let product = get(|| async { "a product" }).post(|| async { "a new product" });
    let mut app = Router::new().route("/products/{id}", product).layer(guard);
    assert_eq!(status(&mut app, "/products/777").await, 404);
    let post = Request::post("/products/777").body(Body::empty()).unwrap();
    assert_eq!(app.call(post).await.unwrap().status(), 200);
    Ok(())
}

/// Returns the lines of a text without their indentation.
fn lines(text: &str) -> String {
    text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_pages_show_code_that_is_compiled() {
    let sources = [
        include_str!("../../examples/products.rs"),
        include_str!("axum_router.rs"),
        include_str!("nested_router.rs"),
    ];
    for page in
        [include_str!("../../../../docs/guard.md"), include_str!("../../../../docs/guard.zh-CN.md")]
    {
        let blocks: Vec<&str> = page.split("```rust\n").skip(1).collect();
        assert_eq!(blocks.len(), 3);
        for block in blocks {
            let (block, _) = block.split_once("\n```").expect("a block ends");
            let is_compiled = sources.iter().any(|source| lines(source).contains(&lines(block)));
            assert!(is_compiled, "a page of the guard shows code that is not compiled:\n{block}");
        }
    }
}

#[tokio::test]
async fn a_layer_of_the_outer_router_sees_the_whole_path() {
    let whole = guard("/api/products/{id}");
    is_guarded(Router::new().nest("/api", products()).layer(whole.clone()), "/api").await;
    is_guarded(Router::new().nest("/api", products()).route_layer(whole.clone()), "/api").await;
    is_guarded(Router::new().nest_service("/api", products()).layer(whole.clone()), "/api").await;
    is_guarded(products().layer(guard("/products/{id}")), "").await;
    assert!(whole.routes()[0].matches_path("/api/products/7"));
    assert_eq!(whole.idle_routes().count(), 0);
    assert_eq!(whole.routes()[0].counters.checked(), 6);
    assert_eq!(whole.routes()[0].counters.refused(RefuseReason::Absent), 3);
}

#[tokio::test]
async fn a_layer_of_the_inner_router_sees_the_path_without_the_prefix() {
    let inner = guard("/products/{id}");
    is_guarded(Router::new().nest("/api", products().layer(inner.clone())), "/api").await;
    is_guarded(Router::new().nest("/api", products().route_layer(inner.clone())), "/api").await;
    is_guarded(Router::new().nest_service("/api", products().layer(inner.clone())), "/api").await;
    // The inner path may also begin with a name: axum removes the whole prefix.
    is_guarded(Router::new().nest("/shops/{shop}", products().layer(inner)), "/shops/9").await;
}

#[tokio::test]
async fn a_layer_guards_only_the_routes_that_were_added_before_the_layer() {
    let layer = guard("/products/{id}");
    let product = get(|| async { "a product" });
    let mut early = Router::new().layer(layer.clone()).route("/products/{id}", product);
    assert_eq!(status(&mut early, "/products/777").await, 200);
    assert_eq!(layer.idle_routes().count(), 1);
    is_guarded(products().layer(layer.clone()), "").await;
    assert_eq!(layer.idle_routes().count(), 0);
}

#[tokio::test]
async fn a_route_that_never_matches_is_idle_and_is_logged_once() {
    let recorder = Recorder::new(Level::WARN);
    let _default = tracing::subscriber::set_default(recorder.clone());
    let whole = guard("/api/products/{id}");
    let mut router = Router::new().nest("/api", products().layer(whole.clone()));
    for _ in 0..9999 {
        assert_eq!(status(&mut router, "/api/products/777").await, 200);
    }
    let idle: Vec<_> = whole.idle_routes().map(|route| &*route.name).collect();
    assert_eq!(idle, ["/api/products/{id}"]);
    assert_eq!(recorder.lines.lock().unwrap().len(), 0);
    for _ in 0..3 {
        status(&mut router, "/api/products/777").await;
    }
    let lines = recorder.lines.lock().unwrap();
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in ["checked no id", "path=/api/products/{id}", "path:id", "removes the prefix"] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
}

#[tokio::test]
async fn a_route_whose_set_never_syncs_is_idle_and_is_logged() {
    let recorder = Recorder::new(Level::WARN);
    let _default = tracing::subscriber::set_default(recorder.clone());
    let ids = Arc::new(IdSet::new(IdType::integer()).unwrap());
    let file = FileOptions::new("no such file", FileFormat::Lines);
    let _source = Source::start(Arc::clone(&ids), file, SourceOptions::default());
    let layer =
        GuardLayer::new([Route::new("/products/{id}", "path:id", Arc::clone(&ids)).unwrap()]);
    let mut router = products().layer(layer.clone());
    for _ in 0..9999 {
        assert_eq!(status(&mut router, "/products/777").await, 200);
    }
    // The type of the ids is enough to refuse this text.
    assert_eq!(status(&mut router, "/products/x").await, 404);
    assert_eq!(layer.routes()[0].counters.unsure(), 9999);
    assert_eq!(layer.idle_routes().count(), 1);
    {
        let lines = recorder.lines.lock().unwrap();
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in ["checked no id", "states=[\"warming\"]", "unsure=9999", "not synced"] {
            assert!(lines[0].contains(part), "{}", lines[0]);
        }
    }
    ids.set_state(SyncState::Synced);
    assert_eq!(status(&mut router, "/products/777").await, 404);
    assert_eq!(layer.idle_routes().count(), 0);
}

#[tokio::test]
async fn a_route_whose_place_is_in_no_request_is_idle() {
    let products_of_query = IdSet::from_ids(IdType::integer(), 1..100).unwrap();
    let route = Route::new("/products/{id}", "query:idd", products_of_query).unwrap();
    let layer = GuardLayer::new([route]);
    let mut router = products().layer(layer.clone());
    assert_eq!(status(&mut router, "/products/7?id=777").await, 200);
    assert_eq!(layer.routes()[0].counters.passed(PassReason::NoId), 1);
    assert_eq!(layer.idle_routes().count(), 1);
    assert_eq!(status(&mut router, "/products/7?idd=777").await, 404);
    assert_eq!(layer.idle_routes().count(), 0);
}
