//! A Redis server in a folder of its own.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use tamis_redis::{Patience, SingleNode};
use tamis_testing::{CommandExt as _, Process, try_connect, wait_until};

use crate::checker::Dir;
use crate::client::Client;

/// A server that ends with the test.
pub struct Server {
    process: Option<Process>,
    dir: Dir,
    port: u16,
}

impl Server {
    pub fn start() -> Self {
        let port = tamis_testing::free_port();
        let mut server = Self { process: None, dir: Dir::new(), port };
        server.run();
        server
    }

    /// Starts the process with the files that it has, and waits until it answers.
    pub fn run(&mut self) {
        // The server ends with its standard input, so also with the process of the tests.
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & cat; kill -9 $!; wait", "sh", "redis-server"])
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arg(self.dir.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start();
        self.process = Some(process);
        wait_until("the server answers", || self.is_ready());
    }

    /// Tests whether the server has loaded its files.
    fn is_ready(&self) -> bool {
        let Ok(mut stream) = try_connect(self.address()) else { return false };
        let mut reply = [0; 7];
        stream.write_all(b"PING\r\n").is_ok()
            && stream.read_exact(&mut reply).is_ok()
            && reply == *b"+PONG\r\n"
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.wait();
        }
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn url(&self, key: &str) -> String {
        format!("redis://{}/{key}", self.address())
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    pub fn node(&self) -> SingleNode {
        let url = format!("redis://{}", self.address());
        SingleNode::new(&url, Patience::default()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
