//! A server that accepts connections and never answers.

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::channel;
use std::time::Duration;

use tamis_guard::source::{Source, SourceOptions};

/// Starts a source that follows such a server, and stops it. The source would wait for an answer for
/// minutes, and must not.
pub fn stop_while_it_waits(start: impl FnOnce(SocketAddr, SourceOptions) -> Source) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options =
        SourceOptions { stale_after: Duration::from_secs(600), ..SourceOptions::default() };
    let source = start(listener.local_addr().unwrap(), options);
    let _connection = listener.accept().unwrap();
    let (end, ended) = channel();
    std::thread::spawn(move || {
        source.stop();
        _ = end.send(());
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("the source stops");
}
