//! Runs `wrk`, which sends requests on core 1.

use std::process::{Child, Command, Stdio};

use super::folder::Folder;

/// The requests of `wrk`. Even ids exist, and odd ids do not exist.
#[derive(Clone, Copy)]
pub struct Load {
    /// The number of ids that exist: the even numbers from 2.
    pub ids: u64,
    /// True if the requested ids are absent. `wrk` requests absent ids in order, so each request
    /// has a new id.
    pub is_absent: bool,
    pub connections: u32,
    /// The pause of a connection between two requests, in milliseconds.
    pub pause_millis: u32,
    pub seconds: u32,
    /// True if the requests are the questions of nginx (`auth_request`).
    pub is_question: bool,
}

impl Load {
    /// Returns a load of 64 connections without pauses.
    pub fn full(ids: u64, is_absent: bool, seconds: u32) -> Self {
        Self { ids, is_absent, connections: 64, pause_millis: 0, seconds, is_question: false }
    }

    fn script(&self) -> String {
        let ids = self.ids;
        let next = match self.is_absent {
            true => "n = n + 1; local id = n * 2 - 1".to_owned(),
            false => format!("local id = math.random({ids}) * 2"),
        };
        let delay = match self.pause_millis {
            0 => String::new(),
            millis => format!("function delay() return math.random(0, {}) end\n", 2 * millis),
        };
        let format = match self.is_question {
            false => "wrk.format('GET', '/products/' .. id)",
            true => {
                "wrk.format('GET', '/_guard', \
                 { ['X-Original-URI'] = '/products/' .. id, ['X-Original-Method'] = 'GET' })"
            }
        };
        format!(
            "math.randomseed(7)\nlocal n = 0\n{delay}\
             function request()\n  {next}\n  return {format}\nend\n"
        )
    }
}

/// The measurements of `wrk`.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub requests: u64,
    /// The number of requests that were refused.
    pub refused: u64,
    /// The total time divided by the number of requests.
    pub nanos: f64,
    pub p99_nanos: f64,
}

/// A run of `wrk`. Dropping this value ends the process.
pub struct Wrk {
    child: Option<Child>,
    is_absent: bool,
}

impl Wrk {
    pub fn start(folder: &Folder, port: u16, load: &Load) -> Result<Self, String> {
        let name = if load.is_absent { "absent.lua" } else { "present.lua" };
        let script = folder.write(name, &load.script())?;
        let child = Command::new("taskset")
            .args(["-c", "1", "wrk", "--threads", "1", "--latency"])
            .args(["--connections", &load.connections.to_string()])
            .args(["--duration", &format!("{}s", load.seconds), "--script"])
            .arg(&script)
            .arg(format!("http://127.0.0.1:{port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("wrk: {error}"))?;
        Ok(Self { child: Some(child), is_absent: load.is_absent })
    }

    /// Waits for the end of the run. Checks that the guard decided correctly.
    pub fn end(mut self) -> Result<Measured, String> {
        let child = self.child.take().expect("ended once");
        let output = child.wait_with_output().map_err(|error| format!("wrk: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let measured = parse(&text).ok_or_else(|| format!("wrk printed {text}"))?;
        let Measured { requests, refused, .. } = measured;
        // A false positive passes: one absent id in a thousand.
        let is_right = if self.is_absent { refused > requests / 1000 * 990 } else { refused == 0 };
        if !is_right || text.contains("Socket errors") {
            return Err(format!("{refused} of {requests} requests were refused: {text}"));
        }
        Ok(measured)
    }
}

impl Drop for Wrk {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// Sends requests and waits for the end of the run.
pub fn run(folder: &Folder, port: u16, load: &Load) -> Result<Measured, String> {
    Wrk::start(folder, port, load)?.end()
}

fn parse(text: &str) -> Option<Measured> {
    let word = |line: &str, i: usize| line.split_whitespace().nth(i).map(str::to_owned);
    let find = |part: &str| text.lines().find(|line| line.contains(part));
    let requests = word(find("requests in")?, 0)?.parse().ok()?;
    let rate: f64 = word(find("Requests/sec")?, 1)?.parse().ok()?;
    let p99_nanos = nanos(&word(find("99%")?, 1)?)?;
    let refused = find("Non-2xx").and_then(|line| line.rsplit(' ').next()?.parse().ok());
    Some(Measured { requests, refused: refused.unwrap_or(0), nanos: 1e9 / rate, p99_nanos })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_wrk_are_parsed() {
        assert_eq!(nanos("562.00us"), Some(562_000.0));
        assert_eq!(nanos("1.5ms"), Some(1_500_000.0));
        assert_eq!(nanos("2s"), Some(2e9));
        assert_eq!(nanos("2h"), None);
    }

    #[test]
    fn the_report_of_wrk_is_parsed() {
        let text = "  Latency Distribution\n     50%  401.00us\n     99%    1.50ms\n  \
            1000 requests in 1.00s, 200.00KB read\n  Non-2xx or 3xx responses: 999\n\
            Requests/sec:   1000.00\nTransfer/sec:    200.00KB\n";
        let measured = parse(text).unwrap();
        assert_eq!((measured.requests, measured.refused), (1000, 999));
        assert_eq!((measured.nanos, measured.p99_nanos), (1e6, 1.5e6));
    }
}
