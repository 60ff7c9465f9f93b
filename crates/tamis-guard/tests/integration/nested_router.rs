//! The test of a nested router that the page of the guard shows.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use tamis_guard::{GuardLayer, IdSet, IdType, Route};
use tower_service::Service as _;

#[tokio::test]
async fn the_guard_refuses_an_absent_product() {
    let products = IdSet::from_ids(IdType::integer(), 1..=1000).unwrap();
    let guard = GuardLayer::new([Route::new("/products/{id}", "path:id", products).unwrap()]);
    let inner = Router::new().route("/products/{id}", get(|| async { "a product" }));
    let mut app = Router::new().nest("/api", inner.layer(guard.clone()));
    let request = Request::get("/api/products/7777").body(Body::empty()).unwrap();
    let response = app.call(request).await.unwrap();
    assert_eq!(response.headers()["x-tamis-guard"], "absent");
    assert_eq!(guard.idle_routes().count(), 0);
}
