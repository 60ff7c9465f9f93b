//! `tamis serve` as a child process that is killed on drop.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::client::Client;

pub struct Program {
    pub child: Child,
    pub stderr: BufReader<ChildStderr>,
    pub address: SocketAddr,
}

impl Program {
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, &[])
    }

    /// Starts the server with other environment variables.
    pub fn start_with(dir: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tamis"))
            .args(["serve", "--port", "0", "--http-port", "no", "--dir"])
            .arg(dir)
            .args(arguments)
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "the server did not start");
        }
        let address = line.split("address=").nth(1).unwrap().split(' ').next().unwrap();
        Self { child, stderr, address: address.trim().parse().unwrap() }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
