//! The shortest guarded service: requests for products that do not exist get 404 from the guard.
//!
//! ```text
//! cargo run -p tamis-guard --example products
//! curl -i http://127.0.0.1:8080/products/7
//! curl -i http://127.0.0.1:8080/products/7777
//! ```

use axum::{Router, routing::get};
use tamis_guard::{GuardLayer, IdSet, IdType, Route};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let products = IdSet::from_ids(IdType::integer(), 1..=1000)?;
    let guard = GuardLayer::new([Route::new("/products/{id}", "path:id", products)?]);
    let app = Router::new().route("/products/{id}", get(|| async { "a product" })).layer(guard);
    Ok(axum::serve(TcpListener::bind("127.0.0.1:8080").await?, app).await?)
}
