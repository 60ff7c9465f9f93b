//! A server and its clients without sockets, for unit tests.

use std::net::SocketAddr;
use std::sync::Arc;

use tamis_commands::Argv;
use tamis_testing::DEADLINE;

use crate::config::Config;
use crate::server::Server;
use crate::session::Session;
use crate::shared_state::SharedState;
use crate::system::runtime::runtime;

/// Returns the options of a server with one thread and without a log.
pub(crate) fn config() -> Config {
    Config { port: 0, threads: 1, append_only: false, ..Config::default() }
}

/// Starts a server with one thread and without a log.
pub(crate) fn start() -> Server {
    Server::start(config()).unwrap()
}

/// Returns the state of a new client.
pub(crate) fn session(shared: &Arc<SharedState>) -> Session {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let client = shared.clients.add(address, address, 0).client.clone();
    Session::new(shared.clone(), client)
}

/// Runs commands and returns the bytes of their replies.
pub(crate) fn run(session: &mut Session, commands: &[Argv<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    block_on(session.run(commands, &mut out));
    out
}

/// Runs a future. The test fails if the future does not end before the deadline.
#[track_caller]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let limited = runtime().block_on(async { tokio::time::timeout(DEADLINE, future).await });
    limited.expect("the future ends")
}
