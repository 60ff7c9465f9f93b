//! A server on core 0. Dropping it ends the process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::load::ask;

pub struct Program {
    child: Child,
    pub port: u16,
    dir: PathBuf,
}

/// Tests whether a program is installed.
pub fn is_here(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
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

    /// Starts our server with these options and one command thread.
    pub fn tamis(options: &[&str]) -> Result<Self, String> {
        Self::tamis_on("0", &[&["--io-threads", "1"], options].concat())
    }

    /// Starts our server on these cores.
    pub fn tamis_on(cores: &str, options: &[&str]) -> Result<Self, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench lies in the root");
        Self::start(cores, |port, dir| {
            let mut command = Command::new(root.join("target/release/tamis"));
            command.args(["serve", "--port", &port.to_string(), "--dir"]).arg(dir).args(options);
            command
        })
    }

    fn start(cores: &str, command: impl Fn(u16, &Path) -> Command) -> Result<Self, String> {
        let port = free_port()?;
        let dir = std::env::temp_dir().join(format!("tamis-bench-{port}"));
        std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
        let wanted = command(port, &dir);
        let child = Command::new("taskset")
            .args(["-c", cores])
            .arg(wanted.get_program())
            .args(wanted.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("taskset: {error}"))?;
        let mut program = Self { child, port, dir };
        let begun = Instant::now();
        while ask(port, &["PING"]).is_err() {
            if let Ok(Some(status)) = program.child.try_wait() {
                let name = wanted.get_program().to_string_lossy().into_owned();
                return Err(format!("{name} did not start: {status}"));
            }
            if begun.elapsed() > Duration::from_secs(60) {
                return Err("a server did not start within a minute".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(program)
    }

    /// Kills the server, as a crash would, and starts it again with these options. Returns how long
    /// it took to answer.
    pub fn restart(&mut self, options: &[&str]) -> Result<Duration, String> {
        _ = self.child.kill();
        _ = self.child.wait();
        let begun = Instant::now();
        let dir = std::mem::take(&mut self.dir);
        let dir_text = dir.to_string_lossy().into_owned();
        let options = [options, &["--io-threads", "1", "--dir", &dir_text]].concat();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench lies in the root");
        self.child = Command::new("taskset")
            .args(["-c", "0"])
            .arg(root.join("target/release/tamis"))
            .args(["serve", "--port", &self.port.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        self.dir = dir;
        while ask(self.port, &["PING"]).is_err() {
            if begun.elapsed() > Duration::from_secs(120) {
                return Err("the server did not recover within two minutes".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(begun.elapsed())
    }

    /// Returns the resident memory of the process, in bytes.
    pub fn resident_bytes(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let kib = text.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS".to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn redis(port: u16, dir: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no", "--dir"]);
    command.arg(dir);
    command
}

/// Returns a port that no program listens on.
pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
