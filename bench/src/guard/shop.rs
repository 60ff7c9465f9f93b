//! A shop without a guard: a service that reads each product from MariaDB. The bench runs itself with [`ARGUMENT`] as
//! this service, because a case needs the shop as a separate process on its own core.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Pool, params};
use tokio::net::TcpListener;

/// The first argument of the program that starts the shop. The port and the URL of the database follow.
pub const ARGUMENT: &str = "shop";

/// Serves `GET /products/{id}` until the process is killed.
pub fn serve(port: &str, url: &str) -> Result<(), String> {
    let port: u16 = port.parse().map_err(|error| format!("{port}: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let pool = Pool::from_url(url).map_err(|error| error.to_string())?;
    let router = Router::new().route("/products/{id}", get(product)).with_state(pool);
    let serve = async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        axum::serve(listener, router).await
    };
    runtime.and_then(|runtime| runtime.block_on(serve)).map_err(|error| error.to_string())
}

async fn product(State(pool): State<Pool>, Path(id): Path<u64>) -> (StatusCode, String) {
    let query = async {
        let sql = "SELECT name FROM products WHERE id = :id";
        pool.get_conn().await?.exec_first::<String, _, _>(sql, params! { id }).await
    };
    match query.await {
        Ok(Some(name)) => {
            (StatusCode::OK, format!(r#"{{"code":200,"data":{{"id":{id},"name":"{name}"}}}}"#))
        }
        Ok(None) => (StatusCode::NOT_FOUND, r#"{"code":404,"message":"absent"}"#.to_owned()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
