//! A web service whose handlers share one filter. The page `docs/redis-bitmaps.md` shows this file.
//!
//! ```text
//! cargo run -p tamis-redis --features async --example web_service
//! curl -X PUT localhost:3000/users/alice
//! curl localhost:3000/users/alice
//! ```

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use tamis_redis::{AsyncRedisFilter, AsyncSingleNode, Patience, RedisItemError, RedisPlan};

type Users = AsyncRedisFilter<AsyncSingleNode>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = AsyncSingleNode::new("redis://localhost:6379", Patience::default())?;
    let plan = RedisPlan::new(1_000_000, 0.01)?;
    let users = AsyncRedisFilter::open_or_create(node, "users", &plan).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app(users)).await?;
    Ok(())
}

/// Returns the routes of the service.
pub fn app(users: Users) -> Router {
    Router::new().route("/users/{name}", get(contains).put(insert)).with_state(users)
}

/// Answers `true` if the user may exist, and `false` if the user certainly does not exist.
async fn contains(State(users): State<Users>, Path(name): Path<String>) -> (StatusCode, String) {
    answer(users.contains(&name).await)
}

/// Answers `true` if the user is new.
async fn insert(State(users): State<Users>, Path(name): Path<String>) -> (StatusCode, String) {
    answer(users.insert(&name).await)
}

/// An error is neither `true` nor `false`: the client tries again, or asks the database.
fn answer(result: Result<bool, RedisItemError>) -> (StatusCode, String) {
    match result {
        Ok(answer) => (StatusCode::OK, answer.to_string()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}
