//! Runs MariaDB and PostgreSQL, with a table of even ids.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::Folder;
use crate::process::{free_port, is_here};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    MariaDb,
    Postgres,
}

/// A server with a table `products`. Dropping this value ends the process.
pub struct Database {
    child: Child,
    pub kind: Kind,
    port: u16,
}

impl Database {
    /// Starts a server on a core if it is installed. Fills the table with the first `ids` even ids.
    pub fn start(
        kind: Kind,
        core: &str,
        folder: &Folder,
        ids: u64,
    ) -> Result<Option<Self>, String> {
        let is_installed = match kind {
            Kind::MariaDb => Path::new("/usr/sbin/mariadbd").exists() && is_here("mariadb"),
            Kind::Postgres => postgres_bin().is_some() && is_here("psql"),
        };
        if !is_installed {
            println!("  {} is not installed: its rows are left out", kind.name());
            return Ok(None);
        }
        let port = free_port()?;
        let data = folder.path(kind.name());
        let mut server = match kind {
            Kind::MariaDb => mariadb(core, &data, port)?,
            Kind::Postgres => postgres(core, &data, port)?,
        };
        let child = server
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", kind.name()))?;
        let database = Self { child, kind, port };
        let begun = Instant::now();
        while database.sql("SELECT 1").is_err() {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(format!("{} does not answer", kind.name()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        database.fill(ids)?;
        Ok(Some(database))
    }

    fn fill(&self, ids: u64) -> Result<(), String> {
        let rows = match self.kind {
            Kind::MariaDb => format!("SELECT 'a product', 2 * seq FROM seq_1_to_{ids}"),
            Kind::Postgres => format!("SELECT 'a product', 2 * i FROM generate_series(1, {ids}) i"),
        };
        let publish = match self.kind {
            Kind::MariaDb => "",
            Kind::Postgres => {
                "CREATE PUBLICATION tamis_guard FOR TABLE products (id);\nVACUUM products;"
            }
        };
        self.sql(&format!(
            "CREATE TABLE products (name VARCHAR(50), id BIGINT PRIMARY KEY);\n\
             INSERT INTO products {rows};\n{publish}"
        ))
    }

    /// Runs SQL statements.
    pub fn sql(&self, text: &str) -> Result<(), String> {
        let fail = |error: std::io::Error| error.to_string();
        let mut command = self.client();
        let mut client = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        client.stdin.take().expect("piped").write_all(text.as_bytes()).map_err(fail)?;
        let output = client.wait_with_output().map_err(fail)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Returns the command of the client program of the database.
    fn client(&self) -> Command {
        let port = self.port.to_string();
        match self.kind {
            Kind::MariaDb => {
                let mut client = Command::new("mariadb");
                client.args(["--no-defaults", "-h127.0.0.1", "-uroot", "-P", &port, "test"]);
                client
            }
            Kind::Postgres => {
                let mut client = Command::new("psql");
                client.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
                client.args(["-U", "postgres", "-p", &port, "postgres"]);
                client
            }
        }
    }

    /// Returns the command of the database client for single statements. The client prints each
    /// result immediately.
    pub fn session(&self) -> Command {
        let mut client = self.client();
        match self.kind {
            Kind::MariaDb => client.args(["-N", "-B", "--unbuffered"]),
            Kind::Postgres => client.arg("-At"),
        };
        client
    }

    /// Returns the command that reads all ids as fast as the client program can.
    pub fn read_ids(&self) -> Command {
        let mut client = self.client();
        match self.kind {
            Kind::MariaDb => client.args(["--quick", "-N", "-e", "SELECT id FROM products"]),
            Kind::Postgres => client.args(["-c", "COPY (SELECT id FROM products) TO STDOUT"]),
        };
        client
    }

    /// Returns the source of the guard in TOML.
    pub fn source(&self) -> String {
        self.source_with("")
    }

    /// Returns the source of a guard that continues from a snapshot after a restart.
    pub fn source_with_snapshots(&self) -> String {
        match self.kind {
            Kind::MariaDb => self.source(),
            Kind::Postgres => self.source_with(", slot = \"tamis_guard\""),
        }
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        let port = self.port;
        match self.kind {
            Kind::MariaDb => format!("mysql://root@127.0.0.1:{port}/test"),
            Kind::Postgres => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
        }
    }

    fn source_with(&self, fields: &str) -> String {
        let kind = match self.kind {
            Kind::MariaDb => "mysql",
            Kind::Postgres => "postgres",
        };
        format!(
            "source = {{ kind = \"{kind}\", url = \"{}\", \
             table = \"products\", column = \"id\"{fields} }}",
            self.url()
        )
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The shell around the server kills the server when the input of the shell ends.
        drop(self.child.stdin.take());
        _ = self.child.wait();
    }
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::Postgres => "PostgreSQL",
        }
    }

    /// Returns the name of the row for the client program of the database.
    pub fn client_name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb --quick",
            Self::Postgres => "psql COPY",
        }
    }
}

/// Runs a server that ends with its standard input. So the server also ends when the bench ends.
fn on_core(core: &str, program: &[String]) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core, "sh", "-c", "\"$@\" & cat; kill -9 $!; wait", "sh"]).args(program);
    command
}

fn mariadb(core: &str, data: &Path, port: u16) -> Result<Command, String> {
    let user = "--user=root".to_owned();
    let data_option = format!("--datadir={}", data.display());
    let mut install = Command::new("mariadb-install-db");
    install.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
    finish(install.args([&data_option, &user]))?;
    let socket = format!("--socket={}/socket", data.display());
    let pid = format!("--pid-file={}/pid", data.display());
    let log = format!("--log-error={}/error.log", data.display());
    let port = format!("--port={port}");
    // Two servers with the same folder for temporary tables delete the tables of each other.
    let temporary = data.with_file_name("MariaDB-temporary");
    fs::create_dir_all(&temporary).map_err(|error| error.to_string())?;
    let temporary = format!("--tmpdir={}", temporary.display());
    let mut words = vec!["/usr/sbin/mariadbd".to_owned(), "--no-defaults".to_owned()];
    words.extend([data_option, temporary, socket, pid, log, port, user]);
    words.extend(
        [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--log-bin=binlog",
            "--server-id=1",
            "--binlog-format=ROW",
            "--innodb-buffer-pool-size=512M",
            "--innodb-flush-log-at-trx-commit=2",
        ]
        .map(str::to_owned),
    );
    Ok(on_core(core, &words))
}

fn postgres(core: &str, data: &Path, port: u16) -> Result<Command, String> {
    let bin = postgres_bin().ok_or("PostgreSQL is not installed")?;
    fs::create_dir_all(data).map_err(|error| error.to_string())?;
    // The server refuses to run as root.
    let mut words: Vec<String> = Vec::new();
    if Command::new("chown").arg("postgres").arg(data).status().is_ok_and(|it| it.success()) {
        words.extend(
            ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
                .map(str::to_owned),
        );
    }
    let data = data.join("data").display().to_string();
    let program = |name: &str| bin.join(name).display().to_string();
    let initdb = [&words[..], &[program("initdb"), "-D".to_owned(), data.clone()]].concat();
    let mut init = Command::new(&initdb[0]);
    init.args(&initdb[1..]).current_dir("/");
    init.args(["-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-A", "trust"]);
    finish(&mut init)?;
    words.extend([program("postgres"), "-D".to_owned(), data, "-p".to_owned(), port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "wal_level=logical",
        "shared_buffers=512MB",
        "max_slot_wal_keep_size=10GB",
        // A commit does not wait for the disk. With `synchronous_commit=off`, the changes would reach
        // the guard only with the next write of the log, up to 0.2 s later.
        "fsync=off",
    ] {
        words.extend(["-c".to_owned(), setting.to_owned()]);
    }
    Ok(on_core(core, &words))
}

/// Returns the program folder of the newest PostgreSQL version.
fn postgres_bin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok()).max()?;
    Some(format!("/usr/lib/postgresql/{newest}/bin").into())
}

/// Runs a command and waits for its end.
fn finish(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
