//! A client of a server. An error reply ends the test.

#[path = "../../../../../tests/exchanges/client.rs"]
mod exchanges;

use std::net::SocketAddr;

use tamis_resp::Reply;

pub struct Client(exchanges::Client);

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self(exchanges::Client::connect(address))
    }

    /// Runs a command, whose words have spaces between them.
    pub fn run(&mut self, command: &str) -> Reply {
        self.call(&command.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    pub fn call(&mut self, argv: &[&[u8]]) -> Reply {
        let reply = self.0.say(argv);
        let is_error = matches!(reply, Reply::Error(_));
        assert!(!is_error, "{reply:?} to {:?}", argv[0].escape_ascii());
        reply
    }
}
