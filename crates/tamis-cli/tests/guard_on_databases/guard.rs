//! A process of `tamis guard` that is killed and started again.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tamis_testing::{CommandExt as _, Process, wait_until};

use crate::checker::Dir;
use crate::client::Client;
use crate::upstream::upstream;

/// The sync delay of the configuration. The guard connects to a database within half of this time. With
/// one second, it did not always connect on a machine whose processors had other work.
pub const STALE_AFTER: Duration = Duration::from_secs(2);

/// A guard with a folder of its own. It ends with the test.
pub struct Guard {
    dir: Dir,
    /// The `source` of the configuration.
    source: String,
    upstream: SocketAddr,
    addresses: Addresses,
    /// The shell that runs the guard, and the guard.
    process: Option<(Process, Pid)>,
    /// The number of reloads.
    reloads: u64,
    life: Life,
}

#[derive(Clone, Copy)]
pub struct Addresses {
    pub proxy: SocketAddr,
    pub admin: SocketAddr,
}

/// Shows whether two moments are in the same life of a guard: the same process and the same set of
/// ids.
#[derive(Clone, Default)]
pub struct Life(Arc<AtomicU64>);

impl Life {
    /// Returns the number of the life; `None` while a life ends and another one starts.
    pub fn number(&self) -> Option<u64> {
        let number = self.0.load(Ordering::SeqCst);
        number.is_multiple_of(2).then_some(number)
    }

    fn end(&self) {
        self.0.fetch_or(1, Ordering::SeqCst);
    }

    fn start(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Guard {
    /// Starts a guard with the `source` of a configuration.
    pub fn start(source: String) -> Self {
        let dir = Dir::new();
        fs::create_dir(dir.path("state")).unwrap();
        let addresses = Addresses { proxy: free_address(), admin: free_address() };
        let upstream = upstream();
        let life = Life::default();
        life.end();
        let mut guard = Self { dir, source, upstream, addresses, process: None, reloads: 0, life };
        guard.run();
        guard
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    pub fn life(&self) -> Life {
        self.life.clone()
    }

    /// Starts the process on the same addresses, and waits until it takes requests.
    pub fn run(&mut self) {
        self.write_config();
        let before = self.log().len();
        let log = OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        // The shell kills the guard at the end of its standard input, so also at the end of the tests.
        let script = r#""$@" >&2 & trap "" HUP INT TERM; echo $!; read signal
            kill -${signal:-KILL} $!; wait $!"#;
        let mut shell = Command::new("sh")
            .args(["-c", script, "sh", env!("CARGO_BIN_EXE_tamis"), "guard", "--config"])
            .arg(self.path("guard.toml"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .start();
        let line = shell.stdout_lines().next().expect("a line");
        let process = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        self.process = Some((shell, process));
        self.wait_for_log(before, "the console and the metrics are available");
        self.life.start();
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        self.life.end();
        if let Some((mut shell, _)) = self.process.take() {
            shell.wait();
        }
    }

    /// Stops the process with a TERM signal, and waits until it ends.
    pub fn stop(&mut self) {
        self.life.end();
        let (mut shell, _) = self.process.take().unwrap();
        shell.stdin.as_mut().unwrap().write_all(b"TERM\n").unwrap();
        let status = shell.wait();
        assert!(status.success(), "{status}: {}", self.log_end());
    }

    /// Reloads another configuration. Each second one has another set of ids.
    pub fn reload(&mut self) {
        self.life.end();
        self.reloads += 1;
        self.write_config();
        let before = self.log().len();
        kill_process(self.pid(), Signal::HUP).unwrap();
        self.wait_for_log(before, "the configuration is reloaded");
        self.life.start();
    }

    /// Returns the process.
    pub fn pid(&self) -> Pid {
        self.process.as_ref().unwrap().1
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Returns the last lines of the log.
    pub fn log_end(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn wait_for_log(&self, before: usize, text: &str) {
        let what = fmt::from_fn(|f| write!(f, "a line has {text:?}:\n{}", self.log_end()));
        wait_until(what, || self.log()[before..].contains(text));
    }

    fn write_config(&self) {
        let Self { source, upstream, addresses: Addresses { proxy, admin }, reloads, .. } = self;
        let items = 1000 + reloads / 2;
        let text = format!(
            "proxy = {{ listen = \"{proxy}\", upstream = \"http://{upstream}\" }}\n\
             admin = {{ listen = \"{admin}\" }}\n\
             snapshots = {{ folder = \"state\", every = \"1s\" }}\n\
             [ids.products]\nsource = {source}\ninterval = \"50ms\"\n\
             stale_after = \"{}ms\"\nitems = {items}\nrate = 1e-7\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n\
             refusal = {{ message = \"reload {reloads}\" }}\n",
            STALE_AFTER.as_millis()
        );
        File::create(self.path("guard.toml")).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads the status of the set of ids.
pub fn status(admin: &mut Client) -> std::io::Result<Value> {
    let answer = admin.get("/api/status")?;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let mut status: Value = serde_json::from_str(&answer.body).unwrap();
    Ok(status["ids"]["products"].take())
}

/// Returns an address on which no other process will listen. Connections to 127.0.0.1 take their own
/// ports of that address.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap()
}
