//! Starts the programs that respond to requests: the guard and its rivals.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::shop;
use crate::process::{Process, free_port, tamis};

/// The token of the guard's admin address.
const TOKEN: &str = "bench";

/// A program that listens on a port.
pub struct Service {
    pub process: Process,
    pub port: u16,
}

impl Service {
    /// Starts nginx with one worker and a fixed response.
    pub fn nginx(folder: &Folder, core: &str, answer: &str) -> Result<Self, String> {
        Self::nginx_with(folder, core, &format!("location / {{ {answer}; }}"), "")
    }

    /// Starts nginx on core 0 in front of a shop. With `guard`, nginx asks the guard on this port about each request,
    /// as the page `docs/guard-beside.md` shows.
    pub fn nginx_site(folder: &Folder, shop: u16, guard: Option<u16>) -> Result<Self, String> {
        let upstreams = format!(
            "upstream shop {{ server 127.0.0.1:{shop}; keepalive 64; }}\n\
             upstream guard {{ server 127.0.0.1:{}; keepalive 64; }}",
            guard.unwrap_or(shop)
        );
        let ask =
            if guard.is_some() { "auth_request /_guard; error_page 403 = @refused;" } else { "" };
        let locations = format!(
            "location / {{ {ask} proxy_pass http://shop; proxy_http_version 1.1; \
               proxy_set_header Connection \"\"; }}\n\
             location = /_guard {{ internal; proxy_pass http://guard; proxy_http_version 1.1; \
               proxy_set_header Connection \"\"; proxy_set_header X-Original-URI $request_uri; \
               proxy_set_header X-Original-Method $request_method; proxy_pass_request_body off; \
               proxy_set_header Content-Length \"\"; }}\n\
             location @refused {{ internal; return 404 '{{\"code\":404,\"message\":\"absent\"}}'; }}"
        );
        Self::nginx_with(folder, "0", &locations, &upstreams)
    }

    fn nginx_with(
        folder: &Folder,
        core: &str,
        locations: &str,
        upstreams: &str,
    ) -> Result<Self, String> {
        let port = free_port()?;
        let path = folder.path(&format!("nginx-{port}.conf"));
        let base = folder.path("");
        let base = base.display();
        let config = format!(
            "daemon off; master_process off; pid {base}/nginx-{port}.pid; error_log stderr crit;\n\
             events {{ worker_connections 1024; }}\n\
             http {{\n  \
               access_log off; keepalive_requests 1000000000; default_type application/json;\n\
               {upstreams}\n  server {{ listen 127.0.0.1:{port}; {locations} }}\n\
             }}\n"
        );
        fs::write(&path, config).map_err(|error| error.to_string())?;
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&path);
        Self::start(core, &command, port, |_| true)
    }

    /// Starts a shop on core 0, which reads each product from MariaDB.
    pub fn shop(database: &str) -> Result<Self, String> {
        let port = free_port()?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args([shop::ARGUMENT, &port.to_string(), database]);
        Self::start("0", &command, port, |answer| answer.contains(" 404 "))
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

    /// Starts the guard with a configuration for a set `products`, and waits until the set is
    /// synced. `source` is the table of the set in TOML.
    pub fn tamis(folder: &Folder, upstream: u16, source: &str) -> Result<Guard, String> {
        let (port, authorize, admin) = (free_port()?, free_port()?, free_port()?);
        let config = format!(
            "[authorize]\nlisten = \"127.0.0.1:{authorize}\"\nproxy = \"nginx\"\n\
             [proxy]\nlisten = \"127.0.0.1:{port}\"\nupstream = \"http://127.0.0.1:{upstream}\"\n\
             [admin]\nlisten = \"127.0.0.1:{admin}\"\ntoken = \"{TOKEN}\"\n\
             [[route]]\npath = \"/products/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n\
             [ids.products]\n{source}\n"
        );
        let path = folder.write(&format!("guard-{port}.toml"), &config)?;
        let mut command = Command::new(tamis());
        command.args(["guard", "--threads", "1", "--config"]).arg(path);
        // The guard lets all requests pass until it has read the ids.
        let service = Self::start("0", &command, port, |answer| answer.contains(" 404 "))?;
        Ok(Guard { service, authorize, admin })
    }

    /// Starts a program on a core. Waits until `is_ready` accepts the response to a request for an
    /// absent id.
    fn start(
        core: &str,
        wanted: &Command,
        port: u16,
        is_ready: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut process = Process::on(core, wanted)?;
        process.wait_until(Duration::from_secs(120), Duration::from_millis(5), || {
            // The ids of all services are even, so the id 1 is absent.
            ask(port, 1).is_ok_and(|answer| is_ready(&answer))
        })?;
        Ok(Self { process, port })
    }

    /// Sends a request for an id. Returns the whole response.
    pub fn ask(&self, id: u64) -> std::io::Result<String> {
        ask(self.port, id)
    }
}

/// Sends a request for an id to a port.
fn ask(port: u16, id: u64) -> std::io::Result<String> {
    send(port, &format!("GET /products/{id} HTTP/1.1"))
}

/// The guard with its admin address, and the address for the questions of nginx.
pub struct Guard {
    pub service: Service,
    pub authorize: u16,
    admin: u16,
}

impl Guard {
    /// Requests a new generation.
    pub fn rebuild(&self) -> Result<(), String> {
        let head = format!("POST /rebuild/products HTTP/1.1\r\nauthorization: Bearer {TOKEN}");
        let answer = send(self.admin, &head).map_err(|error| error.to_string())?;
        if answer.contains(" 202 ") { Ok(()) } else { Err(format!("no rebuild: {answer}")) }
    }

    /// Returns the number of generations that were built.
    pub fn generations(&self) -> Result<u64, String> {
        self.metric("tamis_guard_generations_total")
    }

    /// Waits until more than `before` generations were built. Returns the number of generations.
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

    /// Returns the number of ids that were read from the source.
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

/// Sends a request without a body. Returns the whole response.
fn send(port: u16, head: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(format!("{head}\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
