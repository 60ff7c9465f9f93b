//! Starts programs for a case, each program on its own cores.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running program. Dropping this value ends the process.
pub struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a program on some cores. Its standard streams are `/dev/null`.
    pub fn on(cores: &str, wanted: &Command) -> Result<Self, String> {
        let name = wanted.get_program().to_string_lossy().into_owned();
        let mut command = Command::new("taskset");
        command.args(["-c", cores, &name]).args(wanted.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("taskset: {error}"))?;
        Ok(Self { child, name })
    }

    /// Waits until the program is ready. Checks the program again after each `pause`.
    pub fn wait_until(
        &mut self,
        limit: Duration,
        pause: Duration,
        is_ready: impl Fn() -> bool,
    ) -> Result<(), String> {
        let begun = Instant::now();
        while !is_ready() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} did not start: {status}", self.name));
            }
            if begun.elapsed() > limit {
                return Err(format!("{} was not ready within {limit:?}", self.name));
            }
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Sends the TERM signal to the program, and waits until the program has ended.
    pub fn terminate(mut self) -> Result<(), String> {
        let fail = |error: std::io::Error| error.to_string();
        Command::new("kill").arg(self.child.id().to_string()).status().map_err(fail)?;
        self.child.wait().map(drop).map_err(fail)
    }

    /// Kills the program, and waits until the program has ended.
    pub fn kill(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }

    /// Returns the resident memory, in bytes.
    pub fn resident_bytes(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let kib = text.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        kib.map(|kib| kib * 1024).ok_or_else(|| "no VmRSS".to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Tests whether a program is installed.
pub fn is_here(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Returns a port that no program listens on.
pub fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(|e| e.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// Returns the root folder of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench lies in the root")
}

/// Returns the path of the program `tamis`.
pub fn tamis() -> PathBuf {
    root().join("target/release/tamis")
}
