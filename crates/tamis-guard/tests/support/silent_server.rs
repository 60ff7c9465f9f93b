//! A server that accepts connections and never answers.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tamis_guard::source::{Source, SourceOptions};
use tamis_testing::{accept, in_time};

/// Starts a source that follows such a server, and stops it. The source would wait for an answer for
/// minutes, and must not.
pub fn stop_while_it_waits(start: impl FnOnce(SocketAddr, SourceOptions) -> Source) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options =
        SourceOptions { stale_after: Duration::from_secs(600), ..SourceOptions::default() };
    let source = start(listener.local_addr().unwrap(), options);
    let _connection = accept("the source", &listener);
    in_time("the source", move || source.stop());
}
