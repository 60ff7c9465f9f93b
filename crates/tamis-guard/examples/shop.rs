//! The product service of the articles on cache penetration, in Rust: requests for products that do not
//! exist never reach the database.
//!
//! ```text
//! cargo run --release -p tamis-guard --features sources --example shop -- mysql://root@127.0.0.1:3306/shop
//! curl -i http://127.0.0.1:8080/pms/productInfo/1
//! curl -i http://127.0.0.1:8080/pms/product -H 'content-type: application/json' -d '{"name":"tea"}'
//! ```
//!
//! The server is MySQL or MariaDB with `log_bin`, `binlog_format = ROW` and `binlog_row_image = FULL`.
//!
//! | in the article, with Spring | here |
//! | --- | --- |
//! | `@PostConstruct` loads all ids into the filter | [`Source::mysql`] reads all ids, in [`start`] |
//! | nothing: a new product is unknown until a restart, or each writer must call the filter | the same source follows the binary log, and [`LearnRule`] reads the id in the service's own answer |
//! | `BloomFilterInterceptor.preHandle` asks the filter | [`GuardLayer`] |
//! | `addInterceptors(...).addPathPatterns("/pms/productInfo/**")` | [`Route`] |
//! | `CommonResult.failed("产品不存在!")` | [`Refusal`] |
//! | `PmsProductController` | [`product`] and [`create`] |

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Pool, params};
use serde_json::{Value, json};
use tamis_guard::source::{MysqlOptions, Source, SourceOptions};
use tamis_guard::{GuardLayer, IdSet, IdType, LearnRule, Refusal, Route};
use tokio::net::TcpListener;

/// The answer of the article for a product that does not exist.
const NO_PRODUCT: &str = r#"{"code":404,"message":"产品不存在!"}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url =
        std::env::args().nth(1).ok_or("give the URL of a database: mysql://USER@HOST/NAME")?;
    let shop = start(&url, SocketAddr::from(([127, 0, 0, 1], 8080))).await?;
    println!("the shop listens at http://{}", shop.address);
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// A running service. The source ends when it is dropped.
pub struct Shop {
    /// Where it listens.
    pub address: SocketAddr,
    /// The ids of all products.
    pub ids: Arc<IdSet>,
    /// Keeps the ids up to date.
    pub source: Source,
    /// The number of questions to the database.
    pub queries: Arc<AtomicU64>,
}

/// What the handlers share: the `JdbcTemplate` of the article.
#[derive(Clone)]
struct Database {
    pool: Pool,
    queries: Arc<AtomicU64>,
}

/// Starts the service.
///
/// # Errors
///
/// Those of the database, and of a listening address that is in use.
pub async fn start(url: &str, listen: SocketAddr) -> Result<Shop, Box<dyn Error>> {
    let database = Database { pool: Pool::from_url(url)?, queries: Arc::default() };
    let table = "CREATE TABLE IF NOT EXISTS product \
                 (id BIGINT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100) NOT NULL)";
    database.pool.get_conn().await?.query_drop(table).await?;

    // `@PostConstruct`: the source reads all ids on a thread of its own, and then follows the binary
    // log. Until it has all ids, requests pass, so the service answers at once.
    let ids = Arc::new(IdSet::new(IdType::integer())?);
    let rows = MysqlOptions::new(url, "product", "id");
    let source = Source::start(Arc::clone(&ids), rows, SourceOptions::default());

    let router = Router::new()
        .route("/pms/productInfo/{id}", get(product))
        .route("/pms/product", post(create))
        .layer(guard(&ids)?)
        .with_state(database.clone());
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Shop { address, ids, source, queries: database.queries })
}

/// The interceptor: which requests have an id, and what the client gets if it does not exist.
fn guard(ids: &Arc<IdSet>) -> Result<GuardLayer, Box<dyn Error>> {
    let mut route = Route::new("/pms/productInfo/{id}", "path:id", Arc::clone(ids))?;
    route.methods = vec![Method::GET];
    route.refusal = Refusal::json(NO_PRODUCT);
    // The service's own answer to a POST has the new id. So it passes before the binary log shows it.
    let places = vec!["answer json:/data/id".parse()?];
    let rule = LearnRule::new("/pms/product".parse()?, places, Arc::clone(ids));
    Ok(GuardLayer::new([route]).with_learn(vec![rule]))
}

/// `GET /pms/productInfo/{id}`
async fn product(State(database): State<Database>, Path(id): Path<u64>) -> Response {
    match database.product(id).await {
        Ok(Some(name)) => success(StatusCode::OK, &json!({ "id": id, "name": name })),
        // A false positive, or a product that was just deleted: the same answer as the guard's.
        Ok(None) => (StatusCode::NOT_FOUND, [JSON], NO_PRODUCT).into_response(),
        Err(error) => failure(&error),
    }
}

/// `POST /pms/product`
async fn create(State(database): State<Database>, Json(product): Json<Value>) -> Response {
    let Some(name) = product["name"].as_str() else {
        return (StatusCode::BAD_REQUEST, "the product has no name").into_response();
    };
    match database.create(name).await {
        Ok(id) => success(StatusCode::CREATED, &json!({ "id": id })),
        Err(error) => failure(&error),
    }
}

impl Database {
    async fn product(&self, id: u64) -> Result<Option<String>, mysql_async::Error> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        let query = "SELECT name FROM product WHERE id = :id";
        self.pool.get_conn().await?.exec_first(query, params! { id }).await
    }

    async fn create(&self, name: &str) -> Result<u64, mysql_async::Error> {
        let mut connection = self.pool.get_conn().await?;
        connection.exec_drop("INSERT INTO product (name) VALUES (:name)", params! { name }).await?;
        Ok(connection.last_insert_id().unwrap_or_default())
    }
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

fn success(status: StatusCode, data: &Value) -> Response {
    (status, Json(json!({ "code": 200, "data": data }))).into_response()
}

fn failure(error: &mysql_async::Error) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}
