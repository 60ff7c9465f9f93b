//! The proxies: how each proxy starts with its files of the page.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::page::{file, replaced};

/// The ports of a site.
#[derive(Clone, Copy)]
pub struct Ports {
    pub proxy: u16,
    pub guard: u16,
    pub shop: u16,
}

/// What the proxy does with requests while the guard is down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhileDown {
    Pass,
    Refuse,
}

/// A proxy of the page.
pub trait OtherProxy {
    /// The value of `authorize.proxy`.
    const NAME: &'static str;

    /// Writes the files of the page with other ports into `folder`, and returns the command that starts the proxy.
    fn command(folder: &Path, ports: Ports, while_down: WhileDown) -> Command;
}

/// Returns a folder with the installed proxies.
fn installed(path: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tests/proxies");
    let path = folder.join(path);
    path.canonicalize().unwrap_or_else(|_| panic!("{}: run cargo xtask setup", path.display()))
}

/// The time limit for a question. On a busy machine, a question may take longer than the limit of the page.
const QUESTION_LIMIT: &str = "2s";

/// Replaces the ports and the time limits of the page.
fn with_ports(file: &str, ports: Ports) -> String {
    let file = &replaced(file, "100ms", QUESTION_LIMIT);
    let file = replaced(file, "127.0.0.1:9000", &format!("127.0.0.1:{}", ports.shop));
    replaced(&file, "127.0.0.1:8081", &format!("127.0.0.1:{}", ports.guard))
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

pub struct Nginx;

impl OtherProxy for Nginx {
    const NAME: &'static str = "nginx";

    fn command(folder: &Path, ports: Ports, while_down: WhileDown) -> Command {
        let mut server = with_ports(&file("nginx.conf"), ports);
        server = replaced(&server, "listen 8080;", &format!("listen 127.0.0.1:{};", ports.proxy));
        if while_down == WhileDown::Refuse {
            server = replaced(&server, "error_page 502 504 = @guard_is_down;", "");
        }
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let folders =
            folders.map(|name| format!("{name}_temp_path {};\n", folder.join(name).display()));
        let whole = format!(
            "daemon off; master_process off; pid {}; events {{}}\nhttp {{ access_log off;\n{}{server}}}\n",
            folder.join("nginx.pid").display(),
            folders.concat(),
        );
        let mut command = Command::new(installed("debian/usr/sbin/nginx"));
        command.arg("-c").arg(write(folder, "nginx.conf", &whole));
        command.arg("-e").arg(folder.join("error.log"));
        command
    }
}

pub struct Haproxy;

impl OtherProxy for Haproxy {
    const NAME: &'static str = "haproxy";

    fn command(folder: &Path, ports: Ports, while_down: WhileDown) -> Command {
        let socket = format!("abns@tamis-guard-{}", ports.proxy);
        let mut script = replaced(&file("tamis-guard.lua"), "abns@tamis-guard", &socket);
        if while_down == WhileDown::Refuse {
            script = replaced(&script, "FAIL_OPEN = true", "FAIL_OPEN = false");
        }
        let script = write(folder, "tamis-guard.lua", &script);
        let mut text = with_ports(&file("haproxy.cfg"), ports);
        text = replaced(&text, "bind :8080", &format!("bind 127.0.0.1:{}", ports.proxy));
        text = replaced(&text, "abns@tamis-guard", &socket);
        text = replaced(&text, "/etc/haproxy/tamis-guard.lua", &script.display().to_string());
        let mut command = Command::new(installed("debian/usr/sbin/haproxy"));
        command.arg("-db").arg("-f").arg(write(folder, "haproxy.cfg", &text));
        let libraries =
            installed("debian/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
        command.env("LD_LIBRARY_PATH", libraries);
        command
    }
}

pub struct Caddy;

impl OtherProxy for Caddy {
    const NAME: &'static str = "caddy";

    fn command(folder: &Path, ports: Ports, while_down: WhileDown) -> Command {
        let mut text = with_ports(&file("Caddyfile"), ports);
        text = replaced(&text, ":8080 {", &format!(":{} {{\n\tbind 127.0.0.1", ports.proxy));
        if while_down == WhileDown::Refuse {
            let (before, block) = text.split_once("\thandle_errors {").expect("the block");
            let (_, after) = block.split_once("\n\t}\n").expect("the end of the block");
            text = format!("{before}{after}");
        }
        text = replaced(&text, "\tservers {", "\tadmin off\n\tservers {");
        let mut command = Command::new(installed("debian/usr/bin/caddy"));
        command.args(["run", "--adapter", "caddyfile", "--config"]);
        command.arg(write(folder, "Caddyfile", &text));
        command.env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
        command
    }
}

pub struct Envoy;

impl OtherProxy for Envoy {
    const NAME: &'static str = "envoy";

    fn command(folder: &Path, ports: Ports, while_down: WhileDown) -> Command {
        let mut text = file("envoy.yaml");
        for (from, to) in [
            (
                "address: 0.0.0.0, port_value: 8080",
                format!("address: 127.0.0.1, port_value: {}", ports.proxy),
            ),
            ("port_value: 8081", format!("port_value: {}", ports.guard)),
            ("port_value: 9000", format!("port_value: {}", ports.shop)),
            ("0.1s", QUESTION_LIMIT.to_owned()),
        ] {
            text = replaced(&text, from, &to);
        }
        if while_down == WhileDown::Refuse {
            text = replaced(&text, "failure_mode_allow: true", "failure_mode_allow: false");
        }
        let mut command = Command::new(installed("python/bin/envoy"));
        command.arg("-c").arg(write(folder, "envoy.yaml", &text));
        // Without the number, two instances of Envoy would use the same shared memory.
        command.args(["--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"]);
        command
    }
}
