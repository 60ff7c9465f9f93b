use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::{Router, routing::post};
use bloomfilter::Bloom;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seen = Arc::new(Mutex::new(Bloom::new_for_fp_rate(1_000_000, 0.01)?));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app(seen)).await?)
}

fn app(seen: Arc<Mutex<Bloom<u64>>>) -> Router {
    Router::new().route("/seen/{id}", post(is_new)).with_state(seen)
}

/// Inserts an id, and answers whether the id is new.
async fn is_new(State(seen): State<Arc<Mutex<Bloom<u64>>>>, Path(id): Path<u64>) -> String {
    (!seen.lock().unwrap().check_and_set(&id)).to_string()
}
