//! Programs that answer requests: the guard, and those beside it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::Folder;
use crate::server::program::free_port;

/// The token of the guard's admin address.
const TOKEN: &str = "bench";

/// A program that listens. Dropping it ends the process.
pub struct Service {
    child: Child,
    pub port: u16,
}

impl Service {
    /// Starts nginx with one worker that gives one answer.
    pub fn nginx(folder: &Folder, core: &str, answer: &str) -> Result<Self, String> {
        let port = free_port()?;
        let path = folder.path(&format!("nginx-{port}.conf"));
        let base = folder.path("");
        let base = base.display();
        let config = format!(
            "daemon off; master_process off; pid {base}/nginx-{port}.pid; error_log stderr crit;\n\
             events {{ worker_connections 1024; }}\n\
             http {{\n  \
               access_log off; keepalive_requests 1000000000; default_type application/json;\n  \
               server {{ listen 127.0.0.1:{port}; location / {{ {answer}; }} }}\n\
             }}\n"
        );
        fs::write(&path, config).map_err(|error| error.to_string())?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&path);
        Self::start(core, &command, port, |_| true)
    }

    pub fn haproxy(folder: &Folder, upstream: u16) -> Result<Self, String> {
        let port = free_port()?;
        let path = folder.path("haproxy.cfg");
        let ids = folder.path("ids.txt");
        let config = format!(
            "global\n  nbthread 1\n  maxconn 5000\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  \
               timeout server 60s\n  http-reuse always\n\
             frontend guard\n  bind 127.0.0.1:{port}\n  \
               http-request set-var(txn.id) path,regsub(^/products/,)\n  \
               http-request return status 404 content-type application/json \
                 string '{{\"code\":404}}' unless {{ var(txn.id) -m str -f {} }}\n  \
               default_backend upstream\n\
             backend upstream\n  server one 127.0.0.1:{upstream}\n",
            ids.display()
        );
        fs::write(&path, config).map_err(|error| error.to_string())?;
        let mut command = Command::new("haproxy");
        command.arg("-f").arg(&path);
        Self::start("0", &command, port, |answer| answer.contains(" 404 "))
    }

    /// Starts the guard with a configuration for a set `products`, and waits until it is synced.
    /// `source` is the table of the set in TOML.
    pub fn tamis(folder: &Folder, upstream: u16, source: &str) -> Result<Guard, String> {
        let (port, admin) = (free_port()?, free_port()?);
        let config = format!(
            "[proxy]\nlisten = \"127.0.0.1:{port}\"\nupstream = \"http://127.0.0.1:{upstream}\"\n\
             [admin]\nlisten = \"127.0.0.1:{admin}\"\ntoken = \"{TOKEN}\"\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n\
             [ids.products]\n{source}\n"
        );
        let path = folder.write(&format!("guard-{port}.toml"), &config)?;
        let mut command = Command::new(program());
        command.args(["guard", "--threads", "1", "--config"]).arg(path);
        // Requests pass until the ids are read.
        let service = Self::start("0", &command, port, |answer| answer.contains(" 404 "))?;
        Ok(Guard { service, admin })
    }

    /// Starts a program on a core, and waits until it answers a request for an absent id.
    fn start(
        core: &str,
        wanted: &Command,
        port: u16,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let child = Command::new("taskset")
            .args(["-c", core])
            .arg(wanted.get_program())
            .args(wanted.get_args())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("taskset: {error}"))?;
        let mut service = Self { child, port };
        let begun = Instant::now();
        // The ids of all services are even.
        while !service.ask(1).is_ok_and(|answer| is_ready(&answer)) {
            let name = wanted.get_program().to_string_lossy();
            if let Ok(Some(status)) = service.child.try_wait() {
                return Err(format!("{name} did not start: {status}"));
            }
            if begun.elapsed() > Duration::from_secs(120) {
                return Err(format!("{name} was not ready within two minutes"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(service)
    }

    /// Ends the program with a TERM signal, and waits for the end.
    pub fn terminate(mut self) -> Result<(), String> {
        let fail = |error: std::io::Error| error.to_string();
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().map_err(fail)?;
        self.child.wait().map_err(fail)?;
        Ok(())
    }

    /// Asks for an id, and returns the whole answer.
    pub fn ask(&self, id: u64) -> std::io::Result<String> {
        send(self.port, &format!("GET /products/{id} HTTP/1.1"))
    }

    pub fn resident_mib(&self) -> Result<f64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let kib = text.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok()
        });
        kib.map(|kib| kib / 1024.0).ok_or_else(|| "no VmRSS".to_owned())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns the path of the program.
pub fn program() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench lies in the root");
    root.join("target/release/tamis")
}

/// The guard with its admin address.
pub struct Guard {
    pub service: Service,
    admin: u16,
}

impl Guard {
    /// Asks for a new generation.
    pub fn rebuild(&self) -> Result<(), String> {
        let head = format!("POST /rebuild/products HTTP/1.1\r\nauthorization: Bearer {TOKEN}");
        let answer = send(self.admin, &head).map_err(|error| error.to_string())?;
        if answer.contains(" 202 ") { Ok(()) } else { Err(format!("no rebuild: {answer}")) }
    }

    /// Returns how many generations were built.
    pub fn generations(&self) -> Result<u64, String> {
        self.metric("tamis_guard_generations_total")
    }

    /// Waits until more than `before` generations were built, and returns how many.
    pub fn built_after(&self, before: u64) -> Result<u64, String> {
        let begun = Instant::now();
        loop {
            match self.generations()? {
                built if built > before => return Ok(built),
                _ if begun.elapsed() > Duration::from_secs(60) => {
                    return Err("no generation was built".to_owned());
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Returns how many ids were read from the source.
    pub fn items_read(&self) -> Result<u64, String> {
        self.metric("tamis_guard_items_read_total")
    }

    fn metric(&self, name: &str) -> Result<u64, String> {
        let answer =
            send(self.admin, "GET /metrics HTTP/1.1").map_err(|error| error.to_string())?;
        let line = answer.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        number.ok_or_else(|| format!("the guard has no metric {name}"))
    }
}

/// Sends a request without a body, and returns the whole answer.
fn send(port: u16, head: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(format!("{head}\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
