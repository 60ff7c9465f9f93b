//! Runs a server on core 0. Dropping the server ends the process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::load::ask;
use crate::process::{Process, free_port, tamis};

pub struct Program {
    process: Process,
    pub port: u16,
    dir: PathBuf,
}

impl Program {
    /// Starts Debian's Redis without persistence.
    pub fn redis() -> Result<Self, String> {
        Self::start("0", redis)
    }

    /// Starts Debian's Redis with a module.
    pub fn redis_with(module: &Path) -> Result<Self, String> {
        Self::start("0", |port, dir| {
            let mut command = redis(port, dir);
            command.arg("--loadmodule").arg(module);
            command
        })
    }

    /// Starts `tamis serve` with these options and one command thread.
    pub fn tamis(options: &[&str]) -> Result<Self, String> {
        Self::tamis_on("0", &[&["--io-threads", "1"], options].concat())
    }

    /// Starts `tamis serve` on these cores.
    pub fn tamis_on(cores: &str, options: &[&str]) -> Result<Self, String> {
        Self::start(cores, |port, dir| serve(port, dir, options))
    }

    fn start(cores: &str, command: impl Fn(u16, &Path) -> Command) -> Result<Self, String> {
        let port = free_port()?;
        let dir = std::env::temp_dir().join(format!("tamis-bench-{port}"));
        std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        let process = Process::on(cores, &command(port, &dir))?;
        let mut program = Self { process, port, dir };
        program.process.wait_until(Duration::from_secs(60), Duration::from_millis(20), || {
            ask(port, &["PING"]).is_ok()
        })?;
        Ok(program)
    }

    /// Kills the server, as a crash would. Starts the server again with these options. Returns the
    /// time until the server replies.
    pub fn restart(&mut self, options: &[&str]) -> Result<Duration, String> {
        self.process.kill();
        let begun = Instant::now();
        let options = [&["--io-threads", "1"], options].concat();
        self.process = Process::on("0", &serve(self.port, &self.dir, &options))?;
        self.process.wait_until(Duration::from_secs(120), Duration::from_millis(1), || {
            ask(self.port, &["PING"]).is_ok()
        })?;
        Ok(begun.elapsed())
    }

    /// Returns the resident memory of the process, in bytes.
    pub fn resident_bytes(&self) -> Result<u64, String> {
        self.process.resident_bytes()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.process.kill();
        _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn serve(port: u16, dir: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(tamis());
    command.args(["serve", "--port", &port.to_string(), "--dir"]).arg(dir).args(options);
    command
}

fn redis(port: u16, dir: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(dir);
    command
}
