//! The product service of the demo: the program behind the guard. The service has a cache. The
//! cache does not help against requests for products that do not exist.
//!
//! | request | response |
//! | --- | --- |
//! | `GET /pms/productInfo/ID` | 200 with the product, or 404 `产品不存在!` |
//! | `POST /pms/productInfo` | 201 with the id of a new product |

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use moka::sync::Cache;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::commands::guard::demo::database::Database;
use crate::commands::guard::demo::shop;

/// The path of a product, without its id.
pub const PATH: &str = "/pms/productInfo";

/// The number of products that the cache holds. Most customers request the same few products, so
/// the cache serves two thirds of the requests of customers.
const CACHED: u64 = 2000;

/// A running product service. Dropping the value stops the service.
#[derive(Debug)]
pub struct ProductService {
    pub address: SocketAddr,
    pub database: Arc<Database>,
    _acceptor: JoinSet<()>,
}

impl ProductService {
    /// Starts a service on a free port of 127.0.0.1.
    pub async fn start(database: Database) -> std::io::Result<Self> {
        let database = Arc::new(database);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let handler = Handler { database: Arc::clone(&database), cache: Cache::new(CACHED) };
        let mut acceptor = JoinSet::new();
        acceptor.spawn(accept(listener, handler));
        Ok(Self { address, database, _acceptor: acceptor })
    }
}

async fn accept(listener: TcpListener, handler: Handler) {
    // When this task ends, the connections are closed.
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        _ = stream.set_nodelay(true);
        while connections.try_join_next().is_some() {}
        let handler = handler.clone();
        connections.spawn(async move {
            let service = service_fn(|request| {
                let handler = handler.clone();
                async move { Ok::<_, Infallible>(handler.answer(&request).await) }
            });
            // A client that closes the connection is not an error.
            _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[derive(Clone)]
struct Handler {
    database: Arc<Database>,
    cache: Cache<u64, Bytes>,
}

impl Handler {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let id = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('/'));
        match (request.method(), id) {
            (&Method::GET, Some(id)) => self.find(id).await,
            (&Method::POST, None) if path == PATH => self.create().await,
            _ => not_found(),
        }
    }

    async fn find(&self, id: &str) -> Response<Full<Bytes>> {
        let Ok(id) = id.parse() else { return not_found() };
        if let Some(body) = self.cache.get(&id) {
            return respond(StatusCode::OK, body);
        }
        match self.database.find(id).await {
            Ok(Some(product)) => {
                let data = json!({
                    "id": id,
                    "name": product.chinese,
                    "nameEn": product.english,
                    "priceCents": product.price_cents,
                    "stock": product.stock,
                });
                let body = Bytes::from(body(200, "success", &data));
                self.cache.insert(id, body.clone());
                respond(StatusCode::OK, body)
            }
            Ok(None) => not_found(),
            Err(error) => failed(&error),
        }
    }

    async fn create(&self) -> Response<Full<Bytes>> {
        let product = shop::product(self.database.queries());
        match self.database.create(product).await {
            Ok(id) => respond(StatusCode::CREATED, body(201, "success", &json!({ "id": id }))),
            Err(error) => failed(&error),
        }
    }
}

fn body(code: u16, message: &str, data: &Value) -> String {
    json!({ "code": code, "message": message, "data": data }).to_string()
}

fn not_found() -> Response<Full<Bytes>> {
    respond(StatusCode::NOT_FOUND, body(404, "产品不存在!", &Value::Null))
}

fn failed(error: &rusqlite::Error) -> Response<Full<Bytes>> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    respond(status, body(status.as_u16(), &error.to_string(), &Value::Null))
}

fn respond(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
