//! Tunnels: connections that switch to another protocol, such as WebSocket.

use std::sync::Arc;

use http::header::{HeaderValue, UPGRADE};
use http::{HeaderMap, Response};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::http::proxy::context::{ConnectionContext, Phase};

/// Tests whether a client may request a protocol. The protocol HTTP is not allowed, because the guard would not see the
/// HTTP requests in the tunnel.
pub(super) fn is_allowed(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default().trim();
    !["", "h2c", "h2", "http", "tls"].iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Returns the protocols in the `Upgrade` headers. Returns `None` if a header is not text.
pub(super) fn protocols(headers: &HeaderMap) -> Option<Vec<String>> {
    let mut protocols = Vec::new();
    for value in headers.get_all(UPGRADE) {
        let names = value.to_str().ok()?.split(',').map(|name| name.trim().to_ascii_lowercase());
        protocols.extend(names);
    }
    Some(protocols)
}

/// Tests whether a response with status 101 switches to a protocol that the request contains.
pub(super) fn is_expected<B>(requested: &HeaderValue, response: &Response<B>) -> bool {
    let Ok(requested) = requested.to_str() else { return false };
    let Some(protocols) = protocols(response.headers()) else { return false };
    let is_requested =
        |name: &String| requested.split(',').any(|other| other.trim().eq_ignore_ascii_case(name));
    !protocols.is_empty() && protocols.iter().all(|name| is_allowed(name) && is_requested(name))
}

/// Copies bytes in both directions until both ends close, one end breaks, or the proxy closes.
pub(super) async fn run(client: OnUpgrade, upstream: OnUpgrade, context: Arc<ConnectionContext>) {
    let mut phase = context.phase.clone();
    let copy = async {
        let mut client = TokioIo::new(client.await?);
        let mut upstream = TokioIo::new(upstream.await?);
        _ = copy_bidirectional(&mut client, &mut upstream).await;
        Ok::<(), hyper::Error>(())
    };
    tokio::select! {
        result = copy => if let Err(error) = result {
            tracing::debug!(remote = %context.remote, %error, "no tunnel");
        },
        // An error means that the proxy was dropped.
        _ = phase.wait_for(|&phase| phase == Phase::Closed) => {}
    }
}
