//! A PostgreSQL server in a folder of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tamis_sources::PostgresOptions;
use tamis_testing::{CommandExt as _, Process, free_port, wait_until};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::checker::{Dir, limited};

/// Makes a statement fail that waits for a lock of the guard. Beside two compilers, `TRUNCATE` once
/// waited for more than 20 seconds; which session had the lock is not known.
pub const LIMIT_LOCKS: &str = "SET lock_timeout = '60s'";

/// Creates an empty table `replacement`, which is like `products`.
pub const CREATE_REPLACEMENT: &str = "CREATE TABLE replacement (LIKE products INCLUDING ALL);
    ALTER PUBLICATION tamis_guard ADD TABLE replacement (id, name)";

/// Replaces the products by that table in one step.
pub const REPLACE_PRODUCTS: &str = "BEGIN; ALTER TABLE products RENAME TO old;
    ALTER TABLE replacement RENAME TO products; COMMIT; DROP TABLE old";

/// A server that ends with the test.
pub struct Server {
    process: Option<Process>,
    dir: Dir,
    port: u16,
    settings: Vec<String>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(settings: &[&str]) -> Self {
        let dir = Dir::new();
        give_away(&dir.path(""));
        let data = dir.path("data");
        let copied = Command::new("cp").arg("-a").arg(empty_data()).arg(data).run();
        assert!(copied.status.success(), "{copied:?}");
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Self { process: None, dir, port: free_port(), settings };
        server.run();
        server
    }

    /// Starts the process and waits until it answers.
    pub fn run(&mut self) {
        let log = self.dir.path("log");
        let what = std::fmt::from_fn(|f| {
            write!(f, "the server answers: {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        // The processes of a killed server need a moment to end.
        wait_until(what, || self.try_run());
    }

    fn try_run(&mut self) -> bool {
        let log = std::fs::File::create(self.dir.path("log")).unwrap();
        // The server ends with its standard input, so also with the process of the tests.
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "\"$@\" & trap '' HUP INT TERM; cat; kill -QUIT $! 2>/dev/null; wait",
            "sh",
        ]);
        let process = command
            .args(as_user(&bin("postgres")))
            .args(["-D", &self.dir.path("data").display().to_string()])
            .args(["-p", &self.port.to_string()])
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
            .args(["-c", "wal_level=logical", "-c", "shared_buffers=16MB", "-c", "fsync=off"])
            .args(["-c", "max_replication_slots=30", "-c", "max_wal_senders=30"])
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .start();
        self.process = Some(process);
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if Session::try_open(&self.url("postgres")).is_ok() {
                return true;
            }
            let log = std::fs::read_to_string(self.dir.path("log")).unwrap_or_default();
            if log.contains("FATAL:  lock file") || log.contains("FATAL:  pre-existing") {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.end();
        false
    }

    /// Starts a standby of this server.
    pub fn standby(&self) -> Self {
        let dir = Dir::new();
        give_away(&dir.path(""));
        let data = dir.path("data");
        let url = format!("postgres://postgres@{}/postgres", self.address());
        let made = Command::new("sh")
            .args(["-c", "\"$@\"", "sh"])
            .args(as_user(&bin("pg_basebackup")))
            .args(["-D", &data.display().to_string(), "-R", "-c", "fast", "--no-sync", "-d", &url])
            .current_dir("/")
            .run();
        assert!(made.status.success(), "{made:?}");
        let mut server =
            Self { process: None, dir, port: free_port(), settings: self.settings.clone() };
        server.run();
        server
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        let process = self.postmaster().to_string();
        assert!(Command::new("kill").args(["-9", &process]).run().status.success());
        self.end();
    }

    /// Shuts the server down, as its operator would, and waits until its processes have ended.
    pub fn shut_down(&mut self) {
        let process = self.postmaster().to_string();
        assert!(Command::new("kill").args(["-INT", &process]).run().status.success());
        let file = self.dir.path("data/postmaster.pid");
        wait_until("the server ends", || !file.exists());
        self.end();
    }

    fn postmaster(&self) -> u32 {
        let file = std::fs::read_to_string(self.dir.path("data/postmaster.pid")).unwrap();
        file.lines().next().unwrap().parse().unwrap()
    }

    /// Returns the processes of the running server.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn processes(&self) -> Vec<u32> {
        let postmaster = self.postmaster();
        let parent = format!("PPid:\t{postmaster}\n");
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|it| it.file_name().to_str()?.parse().ok());
        let is_child = |process: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status"));
            status.is_ok_and(|status| status.contains(&parent))
        };
        [postmaster].into_iter().chain(numbers.filter(is_child)).collect()
    }

    /// Ends the process at once.
    fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.wait();
        }
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address())
    }

    /// Creates a database with a table of products and its publication.
    pub fn shop(&self) -> Shop {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shop{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut admin = Session::open(&self.url("postgres"));
        admin.run(&format!("CREATE DATABASE {name}"));
        let url = self.url(&name);
        let mut session = Session::open(&url);
        session.run("CREATE TABLE products (name text, id bigint PRIMARY KEY)");
        session.run("CREATE PUBLICATION tamis_guard FOR TABLE products (id)");
        Shop { session, options: PostgresOptions::new(&url, "products", "id"), name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
        // A server that was killed has not removed this file and its shared memory.
        let file = std::fs::read_to_string(self.dir.path("data/postmaster.pid"));
        if let Some(memory) = file.ok().as_deref().and_then(shared_memory) {
            _ = Command::new("ipcrm").args(["-m", memory]).run();
        }
    }
}

/// Returns the number of the shared memory that a server has written into `postmaster.pid`: the last
/// word of the seventh line.
fn shared_memory(file: &str) -> Option<&str> {
    file.lines().nth(6)?.split_whitespace().nth(1)
}

/// Returns a data folder without databases. It is made once.
fn empty_data() -> PathBuf {
    static DATA: Mutex<Option<Dir>> = Mutex::new(None);
    let mut data = DATA.lock().unwrap();
    let dir = data.get_or_insert_with(|| {
        Dir::remove_old();
        let dir = Dir::new();
        give_away(&dir.path(""));
        let made = Command::new("sh")
            .args(["-c", "\"$@\"", "sh"])
            .args(as_user(&bin("initdb")))
            .args(["-D", &dir.path("data").display().to_string()])
            .args(["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-A", "trust"])
            .current_dir("/")
            .run();
        assert!(made.status.success(), "{made:?}");
        // All users but one need a password.
        let rules = "host all postgres 127.0.0.1/32 trust\n\
            host replication postgres 127.0.0.1/32 trust\n\
            host all old 127.0.0.1/32 md5\nhost all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(dir.path("data/pg_hba.conf"), rules).unwrap();
        dir
    });
    dir.path("data")
}

/// Returns the newest version of a program of the server.
fn bin(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok()).max();
    match newest {
        Some(version) => format!("/usr/lib/postgresql/{version}/bin/{name}").into(),
        None => name.into(),
    }
}

fn is_root() -> bool {
    id(&["-u"]) == Some(0)
}

fn id(words: &[&str]) -> Option<u32> {
    let Output { status, stdout, .. } = Command::new("id").args(words).run();
    let text = String::from_utf8(stdout).unwrap();
    status.success().then(|| text.trim().parse().unwrap())
}

/// Returns the numbers of a user and its group: the server refuses to run as root.
fn server_user() -> (u32, u32) {
    let user = if id(&["-u", "postgres"]).is_some() { "postgres" } else { "nobody" };
    (id(&["-u", user]).unwrap(), id(&["-g", user]).unwrap())
}

fn as_user(program: &Path) -> Vec<String> {
    let program = program.display().to_string();
    if !is_root() {
        return vec![program];
    }
    let (user, group) = server_user();
    let words = ["setpriv", "--reuid", &user.to_string(), "--regid", &group.to_string()];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend(["--clear-groups".to_owned(), program]);
    words
}

/// Makes a folder one of the server.
pub fn give_away(folder: &Path) {
    if is_root() {
        let (user, group) = server_user();
        std::os::unix::fs::chown(folder, Some(user), Some(group)).unwrap();
    }
}

/// A database with a table of products.
pub struct Shop {
    pub session: Session,
    pub options: PostgresOptions,
    pub name: String,
}

/// A connection for statements of a test.
pub struct Session {
    client: Client,
    runtime: tokio::runtime::Runtime,
}

impl Session {
    pub fn open(url: &str) -> Self {
        Self::try_open(url).unwrap()
    }

    pub fn try_open(url: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let config: tokio_postgres::Config = url.parse().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], config.get_ports()[0]));
        let client = limited(&runtime, async {
            let stream = tokio::net::TcpStream::connect(address).await;
            let stream = stream.map_err(|error| error.to_string())?;
            let connected = config.connect_raw(stream, NoTls).await;
            let (client, connection) = connected.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            Ok::<_, String>(client)
        })?;
        Ok(Self { client, runtime })
    }

    pub fn run(&mut self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {:?}", error.as_db_error()));
    }

    pub fn try_run(&mut self, sql: &str) -> Result<(), tokio_postgres::Error> {
        limited(&self.runtime, self.client.batch_execute(sql))
    }

    /// Waits until a query returns a value.
    pub fn wait_for(&mut self, sql: &str, expected: &str) {
        wait_until(format_args!("{sql} gives {expected}"), || self.value(sql) == expected);
    }

    /// Returns the first value of the first row.
    pub fn value(&mut self, sql: &str) -> String {
        let messages = limited(&self.runtime, self.client.simple_query(sql)).unwrap();
        let value = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        value.unwrap_or_default()
    }
}
