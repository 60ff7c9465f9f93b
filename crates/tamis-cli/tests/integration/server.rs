//! `tamis serve` as a child process that is killed on drop.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tamis_testing::{CommandExt as _, Lines, Process};

use crate::client::Client;
use crate::program::tamis;

pub struct Program {
    pub process: Process,
    pub stderr: Lines,
    pub address: SocketAddr,
}

impl Program {
    pub fn start(dir: &Path, arguments: &[&str]) -> Self {
        Self::start_with(dir, arguments, &[])
    }

    /// Starts the server with other environment variables.
    pub fn start_with(dir: &Path, arguments: &[&str], environment: &[(&str, &Path)]) -> Self {
        let mut command = tamis("serve --port 0 --http-port no --dir");
        command.arg(dir).args(arguments).envs(environment.iter().copied());
        Self::start_command(command)
    }

    /// Starts the server with a command that has all arguments.
    pub fn start_command(mut command: Command) -> Self {
        let mut process = command.stderr(Stdio::piped()).start();
        let mut stderr = process.stderr_lines();
        let line = stderr.line_with("ready");
        let address = line.split("address=").nth(1).unwrap().split(' ').next().unwrap();
        Self { address: address.parse().unwrap(), process, stderr }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }
}
