//! A MariaDB server in a folder of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts};
use tamis_sources::MysqlOptions;
use tamis_testing::{CommandExt as _, Process, free_port, wait_until};

use crate::checker::{Dir, limited};

/// Settings of a server that keeps each commit when it is killed.
pub const DURABLE: &[&str] = &["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];

/// Makes a statement fail that waits for a lock of the guard.
pub const LIMIT_LOCKS: &str = "SET lock_wait_timeout = 20, innodb_lock_wait_timeout = 20";

/// Creates an empty table `replacement`, which is like `products`.
pub const CREATE_REPLACEMENT: &str = "CREATE TABLE replacement LIKE products";

/// Replaces the products by that table in one step.
pub const REPLACE_PRODUCTS: &str =
    "RENAME TABLE products TO old, replacement TO products; DROP TABLE old";

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
        let copied = Command::new("cp").arg("-r").arg(empty_data()).arg(dir.path("data")).run();
        assert!(copied.status.success(), "{copied:?}");
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Self { process: None, dir, port: free_port(), settings };
        server.run();
        server
    }

    /// Starts the process and waits until it answers.
    pub fn run(&mut self) {
        let folder = |name: &str| self.dir.path(name).display().to_string();
        // A server that starts deletes the temporary tables in its folder. In a folder that servers share,
        // these may be those of another one, which then crashes.
        std::fs::create_dir_all(self.dir.path("tmp")).unwrap();
        // The server ends with its standard input, so also with the process of the tests.
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & trap '' HUP INT TERM; cat; kill -9 $!; wait", "sh"])
            .arg(mariadbd())
            .arg("--no-defaults")
            .arg(format!("--datadir={}", folder("data")))
            .arg(format!("--tmpdir={}", folder("tmp")))
            .arg(format!("--socket={}", folder("socket")))
            .arg(format!("--pid-file={}", folder("pid")))
            .arg(format!("--log-error={}", folder("error.log")))
            .arg(format!("--port={}", self.port))
            .arg(format!("--user={}", user()))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--log-bin=binlog"])
            .args(["--server-id=1", "--binlog-format=ROW", "--innodb-buffer-pool-size=32M"])
            .args(["--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=2"])
            .args(&self.settings)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start();
        self.process = Some(process);
        let log = self.dir.path("error.log");
        let what = std::fmt::from_fn(|f| {
            write!(f, "the server answers: {}", std::fs::read_to_string(&log).unwrap_or_default())
        });
        wait_until(what, || block_on(Conn::new(Opts::from_url(&self.url("")).unwrap())).is_ok());
    }

    /// Kills the process, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.wait();
        }
    }

    /// Returns the folder of the databases.
    pub fn data(&self) -> PathBuf {
        self.dir.path("data")
    }

    /// Returns the processes of the running server.
    #[allow(dead_code, reason = "not every test that includes this uses it")]
    pub fn processes(&self) -> Vec<u32> {
        let file = std::fs::read_to_string(self.dir.path("pid")).unwrap();
        vec![file.trim().parse().unwrap()]
    }

    pub fn socket(&self) -> String {
        self.dir.path("socket").display().to_string()
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub fn url(&self, database: &str) -> String {
        format!("mysql://root@{}/{database}", self.address())
    }

    /// Opens a session without a database.
    pub fn session(&self) -> Session {
        Session::open(&self.url(""))
    }

    /// Creates a database with a table of products. Returns a session in it.
    pub fn shop(&self) -> Shop {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("shop{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut session = self.session();
        session.run(&format!("CREATE DATABASE {name}"));
        session.run(&format!("USE {name}"));
        session
            .run("CREATE TABLE products (name VARCHAR(50), id BIGINT PRIMARY KEY) ENGINE=InnoDB");
        let options = MysqlOptions::new(&self.url(&name), "products", "id");
        Shop { session, options, name }
    }
}

/// Returns a data folder without databases. It is made once, and one folder at a time: two
/// installations at once disturb each other.
fn empty_data() -> PathBuf {
    static DATA: Mutex<Option<Dir>> = Mutex::new(None);
    let mut data = DATA.lock().unwrap();
    let dir = data.get_or_insert_with(|| {
        Dir::remove_old();
        let dir = Dir::new();
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(format!("--datadir={}", dir.path("data").display()))
            .arg(format!("--user={}", user()))
            .run();
        assert!(installed.status.success(), "{installed:?}");
        dir
    });
    dir.path("data")
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A database with a table of products.
pub struct Shop {
    pub session: Session,
    pub options: MysqlOptions,
    pub name: String,
}

/// A connection for statements of a test.
pub struct Session {
    connection: Conn,
    runtime: tokio::runtime::Runtime,
}

impl Session {
    pub fn open(url: &str) -> Self {
        let runtime = runtime();
        let connection = limited(&runtime, Conn::new(Opts::from_url(url).unwrap())).unwrap();
        Self { connection, runtime }
    }

    pub fn run(&mut self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Returns the first column of a query as bytes.
    pub fn texts(&mut self, sql: &str) -> Vec<Vec<u8>> {
        limited(&self.runtime, self.connection.query(sql)).unwrap()
    }

    /// Deletes all files of the binary log but the last. The server keeps a file for a while that is
    /// still being sent, or that InnoDB may need.
    pub fn purge_logs(&mut self) {
        let sql = "SELECT CAST(ID AS CHAR) FROM information_schema.PROCESSLIST
            WHERE COMMAND LIKE 'Binlog Dump%'";
        wait_until("the logs are deleted", || {
            for id in self.texts(sql) {
                // It may have ended meanwhile.
                _ = self.try_run(&format!("KILL {}", String::from_utf8(id).unwrap()));
            }
            let logs = self.logs();
            self.run(&format!("PURGE BINARY LOGS TO '{}'", logs[logs.len() - 1]));
            logs.len() < 2
        });
    }

    /// Returns the files of the binary log.
    pub fn logs(&mut self) -> Vec<String> {
        let rows = self.connection.query::<mysql_async::Row, _>("SHOW BINARY LOGS");
        let rows = limited(&self.runtime, rows).unwrap();
        rows.iter().map(|row| row.get(0).unwrap()).collect()
    }

    /// Creates a user who may follow the log and read some tables.
    pub fn create_follower(&mut self, user: &str, tables: &str) {
        self.run(&format!(
            "CREATE USER {user} IDENTIFIED BY 'geheim'; GRANT SELECT ON {tables} TO {user};
            GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO {user}"
        ));
    }

    pub fn try_run(&mut self, sql: &str) -> Result<(), mysql_async::Error> {
        limited(&self.runtime, self.connection.query_drop(sql))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    limited(&runtime(), future)
}

fn mariadbd() -> PathBuf {
    // It is not in the path of every user.
    let system = PathBuf::from("/usr/sbin/mariadbd");
    if system.exists() { system } else { "mariadbd".into() }
}

fn user() -> String {
    let output = Command::new("id").arg("-un").run().stdout;
    String::from_utf8(output).unwrap().trim().to_owned()
}
