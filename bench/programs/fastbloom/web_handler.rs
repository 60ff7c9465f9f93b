use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Router, routing::post};
use fastbloom::AtomicBloomFilter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seen = Arc::new(AtomicBloomFilter::with_false_pos(0.01).expected_items(1_000_000));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app(seen)).await?)
}

fn app(seen: Arc<AtomicBloomFilter>) -> Router {
    Router::new().route("/seen/{id}", post(is_new)).with_state(seen)
}

/// Inserts an id, and answers whether the id is new.
async fn is_new(State(seen): State<Arc<AtomicBloomFilter>>, Path(id): Path<u64>) -> String {
    (!seen.insert(&id)).to_string()
}
