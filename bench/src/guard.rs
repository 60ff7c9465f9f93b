//! `tamis guard` beside nginx and HAProxy: each alone on core 0, `wrk` and the upstream on core 1,
//! 64 connections.
//!
//! All know the even ones of the ids up to twenty million. nginx only answers `return 404`, which is
//! the floor of a refusal; HAProxy has the ids in a list (`-f FILE`).

use std::fs;
use std::io::{BufWriter, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::run::{Bench, Row};
use crate::server::program::{free_port, is_here};

pub const ABSENT: &str = "guard, one core, absent ids, 10 M known";
pub const PRESENT: &str = "guard, one core, present ids, 10 M known";
pub const ABSENT_P99: &str = "guard, one core, absent ids, 99th percentile";
pub const PRESENT_P99: &str = "guard, one core, present ids, 99th percentile";

pub const TAMIS: &str = "tamis guard";
pub const NGINX: &str = "nginx, return 404";
pub const HAPROXY: &str = "haproxy, list of ids";

const CASES: [&str; 4] = [ABSENT, PRESENT, ABSENT_P99, PRESENT_P99];
const IDS: u64 = 10_000_000;

/// Runs the cases.
pub fn run(bench: &mut Bench) {
    if !CASES.iter().any(|case| bench.wants(case)) {
        return;
    }
    for name in ["wrk", "nginx", "taskset"] {
        if !is_here(name) {
            println!("  {name} is not installed: the cases of the guard are left out");
            return;
        }
    }
    if let Err(why) = measure(bench) {
        bench.wrong.push(format!("guard: {why}"));
    }
}

fn measure(bench: &mut Bench) -> Result<(), String> {
    let folder = Folder::new()?;
    let ids = if bench.quick { IDS / 100 } else { IDS };
    folder.write_ids(ids)?;
    let upstream = Service::nginx(&folder, "1", "return 200 '{\"code\":200,\"data\":{\"id\":1}}'")?;
    let floor = Service::nginx(&folder, "0", "return 404 '{\"code\":404,\"message\":\"absent\"}'")?;
    let guard = Service::tamis(&folder, upstream.port)?;
    let mut contenders = vec![(TAMIS, &guard)];
    let haproxy =
        is_here("haproxy").then(|| Service::haproxy(&folder, upstream.port)).transpose()?;
    match &haproxy {
        Some(haproxy) => contenders.push((HAPROXY, haproxy)),
        None => println!("  haproxy is not installed: its rows are left out"),
    }
    let seconds = if bench.quick { 1 } else { 5 };
    let absent = [&[(NGINX, &floor)][..], &contenders].concat();
    race(bench, &folder, [ABSENT, ABSENT_P99], &absent, &Load { ids, offset: 1, seconds })?;
    race(bench, &folder, [PRESENT, PRESENT_P99], &contenders, &Load { ids, offset: 0, seconds })
}

/// What `wrk` asks for.
struct Load {
    ids: u64,
    /// 1 for absent ids, which are odd.
    offset: u64,
    seconds: u32,
}

/// Lets the contenders take turns, round after round. `cases` are those of the times and of the
/// latencies.
fn race(
    bench: &mut Bench,
    folder: &Folder,
    cases: [&str; 2],
    contenders: &[(&str, &Service)],
    load: &Load,
) -> Result<(), String> {
    println!("\n{}\n{}", cases[0], cases[1]);
    let rows = |case| contenders.iter().map(move |(name, _)| Row::new(case, name));
    let (mut times, mut latencies): (Vec<_>, Vec<_>) =
        (rows(cases[0]).collect(), rows(cases[1]).collect());
    for (row, (_, service)) in times.iter_mut().zip(contenders) {
        row.peak_mib = Some(service.resident_mib()?);
    }
    for _ in 0..bench.rounds {
        for (i, (name, service)) in contenders.iter().enumerate() {
            let measured =
                wrk(folder, service.port, load).map_err(|why| format!("{name}: {why}"))?;
            times[i].rounds.push(measured.nanos);
            latencies[i].rounds.push(measured.p99_nanos);
        }
    }
    for row in times.into_iter().chain(latencies) {
        println!("{row}");
        bench.rows.push(row);
    }
    Ok(())
}

struct Measured {
    nanos: f64,
    p99_nanos: f64,
}

/// Sends requests for random ids.
fn wrk(folder: &Folder, port: u16, load: &Load) -> Result<Measured, String> {
    let script = folder.path("wrk.lua");
    let (ids, offset) = (load.ids, load.offset);
    let text = format!(
        "math.randomseed(7)\n\
         function request()\n  \
           return wrk.format('GET', '/products/' .. math.random({ids}) * 2 - {offset})\n\
         end\n"
    );
    fs::write(&script, text).map_err(|error| error.to_string())?;
    let output = Command::new("taskset")
        .args(["-c", "1", "wrk", "--threads", "1", "--connections", "64", "--latency"])
        .args(["--duration", &format!("{}s", load.seconds), "--script"])
        .arg(&script)
        .arg(format!("http://127.0.0.1:{port}"))
        .output()
        .map_err(|error| format!("wrk: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = || format!("wrk printed {text}");
    let word = |line: &str, i: usize| line.split_whitespace().nth(i).map(str::to_owned);
    let find = |part: &str| text.lines().find(|line| line.contains(part));
    let requests = find("requests in").and_then(|line| word(line, 0)).ok_or_else(wrong)?;
    let requests: u64 = requests.parse().map_err(|_| wrong())?;
    let rate = find("Requests/sec").and_then(|line| word(line, 1)).ok_or_else(wrong)?;
    let rate: f64 = rate.parse().map_err(|_| wrong())?;
    let p99 = find("99%").and_then(|line| word(line, 1)).ok_or_else(wrong)?;
    let refused = find("Non-2xx").and_then(|line| line.rsplit(' ').next()?.parse().ok());
    // A false positive passes: one id of a thousand.
    let refused: u64 = refused.unwrap_or(0);
    let is_right = if offset == 1 { refused > requests / 100 * 99 } else { refused == 0 };
    if !is_right || text.contains("Socket errors") {
        return Err(format!("{refused} of {requests} requests were refused: {text}"));
    }
    Ok(Measured { nanos: 1e9 / rate, p99_nanos: nanos(&p99).ok_or_else(wrong)? })
}

/// Parses a time of `wrk`, such as `1.25ms`.
fn nanos(time: &str) -> Option<f64> {
    let digits = time.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &time[digits.len()..] {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * unit)
}

/// A folder for configurations and the list of ids.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("tamis-bench-guard-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write_ids(&self, ids: u64) -> Result<(), String> {
        let write = || {
            let mut file = BufWriter::new(fs::File::create(self.path("ids.txt"))?);
            (1..=ids).try_for_each(|id| writeln!(file, "{}", 2 * id))?;
            file.flush()
        };
        write().map_err(|error: std::io::Error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that listens. Dropping it ends the process.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    /// Starts nginx with one worker that gives one answer.
    fn nginx(folder: &Folder, core: &str, answer: &str) -> Result<Self, String> {
        let port = free_port()?;
        let path = folder.path(&format!("nginx-{port}.conf"));
        let base = folder.0.display();
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

    fn haproxy(folder: &Folder, upstream: u16) -> Result<Self, String> {
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

    fn tamis(folder: &Folder, upstream: u16) -> Result<Self, String> {
        let port = free_port()?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("bench lies in the root");
        let mut command = Command::new(root.join("target/release/tamis"));
        command
            .args(["guard", "--threads", "1", "--path", "/products/{id}"])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--upstream", &format!("http://127.0.0.1:{upstream}")])
            .arg("--ids")
            .arg(folder.path("ids.txt"));
        // Requests pass until the ids are read.
        Self::start("0", &command, port, |answer| answer.contains(" 404 "))
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
        while !ask(port).is_ok_and(|answer| is_ready(&answer)) {
            let name = wanted.get_program().to_string_lossy();
            if let Ok(Some(status)) = service.child.try_wait() {
                return Err(format!("{name} did not start: {status}"));
            }
            if begun.elapsed() > Duration::from_secs(120) {
                return Err(format!("{name} was not ready within two minutes"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(service)
    }

    fn resident_mib(&self) -> Result<f64, String> {
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

/// Asks for an absent id.
fn ask(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /products/1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_of_wrk_are_parsed() {
        assert_eq!(super::nanos("562.00us"), Some(562_000.0));
        assert_eq!(super::nanos("1.5ms"), Some(1_500_000.0));
        assert_eq!(super::nanos("2s"), Some(2e9));
        assert_eq!(super::nanos("2h"), None);
    }
}
