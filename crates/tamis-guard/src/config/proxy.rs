//! Parses the table `[proxy]`.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use crate::config::file;
use crate::config::setting::{InvalidValue, bytes, invalid, set_to, set_to_text};
use crate::config::units::OneOrMany;
use crate::http::proxy::{ProxyOptions, TlsFiles};

/// Returns the settings of the proxy.
pub(super) fn proxy(table: &file::Proxy, folder: &Path) -> Result<ProxyOptions, InvalidValue> {
    let upstream = table.upstream.parse();
    let upstream = upstream.map_err(|error| invalid("proxy.upstream", error))?;
    let mut options = ProxyOptions::new(upstream);
    options.listen = addresses("proxy.listen", table.listen.as_ref(), 8080)?;
    let path = |path: &PathBuf| folder.join(path);
    options.tls = table
        .tls
        .as_ref()
        .map(|tls| TlsFiles { certificate: path(&tls.certificate), key: path(&tls.key) });
    options.upstream_ca = table.upstream_ca.as_ref().map(path);
    set_to_text(&mut options.connect_timeout, table.connect_timeout);
    set_to_text(&mut options.response_timeout, table.response_timeout);
    set_to_text(&mut options.header_timeout, table.header_timeout);
    set_to_text(&mut options.body_timeout, table.body_timeout);
    set_to_text(&mut options.idle_timeout, table.idle_timeout);
    set_to_text(&mut options.upstream_idle_timeout, table.upstream_idle_timeout);
    set_to_text(&mut options.shutdown_timeout, table.shutdown_timeout);
    set_to(&mut options.max_connections, table.max_connections);
    set_to(&mut options.max_head_bytes, table.max_head.map(bytes));
    options.trust_forwarded = table.trust_forwarded;
    options.logs_requests = table.log_requests;
    options.gives_request_ids = table.request_ids;
    options.check().map_err(|error| invalid("proxy", error))?;
    Ok(options)
}

/// Parses the addresses of a field. Without the field, returns the port `port` of 127.0.0.1.
pub(super) fn addresses(
    field: &str,
    texts: Option<&OneOrMany<String>>,
    port: u16,
) -> Result<Vec<SocketAddr>, InvalidValue> {
    let Some(texts) = texts else { return Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) };
    let texts = texts.clone().into_vec();
    if texts.is_empty() {
        return Err(invalid(field, "write at least one address"));
    }
    texts.iter().map(|text| address(field, text)).collect()
}

/// Parses an address such as `0.0.0.0:8080` or `localhost:8080`.
pub(super) fn address(field: &str, text: &str) -> Result<SocketAddr, InvalidValue> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    let message = || format!("{text:?} is not an address; write HOST:PORT such as 0.0.0.0:8080");
    found.ok_or_else(|| invalid(field, message()))
}
