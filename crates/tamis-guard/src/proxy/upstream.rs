//! The pool of connections to the upstream.

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::body::GuardedBody;
use crate::proxy::error::ProxyError;
use crate::proxy::options::{KEEPALIVE, ProxyOptions};
use crate::proxy::request_body::RequestBody;
use crate::proxy::tls;

/// The pool of connections to the upstream.
pub(super) type Client = legacy::Client<HttpsConnector<HttpConnector>, GuardedBody<RequestBody>>;

/// Creates the pool.
pub(super) fn client(options: &ProxyOptions) -> Result<Client, ProxyError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(KEEPALIVE));
    http.set_connect_timeout(Some(options.connect_timeout));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls::client_config(options)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(options.upstream_idle_timeout)
        .http1_max_buf_size(options.max_head_bytes)
        .build(connector))
}
