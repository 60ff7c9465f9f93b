use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Router, routing::post};
use tamis::SharedBloom;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seen = Arc::new(SharedBloom::for_items(1_000_000, 0.01)?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app(seen)).await?)
}

fn app(seen: Arc<SharedBloom>) -> Router {
    Router::new().route("/seen/{id}", post(is_new)).with_state(seen)
}

/// Inserts an id, and answers whether the id is new.
async fn is_new(State(seen): State<Arc<SharedBloom>>, Path(id): Path<u64>) -> String {
    seen.insert(&id).to_string()
}
