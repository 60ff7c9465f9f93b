//! `tamis health`: tests whether a server is healthy, for the probes of containers and scripts.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use http::{HeaderMap, Uri};
use redis::{ConnectionAddr, IntoConnectionInfo as _};
use tamis::Span;
use tamis_guard::{HttpClient, HttpClientError};

use crate::arguments::redact::redact;
use crate::arguments::window_span::{WindowSpan, duration};
use crate::exit::{CommandResult, Exit, Failure, plain};
use crate::filters::redis_url::password_of_environment;
use crate::io::messages;

/// The path that the command requests if the URL has no path.
const DEFAULT_PATH: &str = "/healthz";

/// The maximum number of bytes that the command reads from a body or from the replies of a Redis server.
const MAX_BYTES: u64 = 4096;

/// The maximum number of characters of a response in a message.
const MAX_SHOWN: usize = 200;

/// Test whether a server is healthy, for the probes of containers and scripts
///
/// The command sends one request. Over HTTP, a server is healthy if the status of the response is
/// 200 to 299. Over the protocol of Redis, the command sends PING. The replies PONG, NOAUTH and
/// NOPERM are healthy. All other replies, such as LOADING and MISCONF, are not healthy. The password
/// is in the URL or in the environment variable REDISCLI_AUTH.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis health
  tamis health http://127.0.0.1:9091/readyz
  tamis health redis://127.0.0.1:6379 --timeout 1s
  until tamis health --quiet 2>&-; do sleep 1; done

Exit status: 0 healthy, 1 not healthy, 2 wrong call.")]
pub struct Args {
    /// Server to test: http://HOST:PORT/PATH, the same with https, or redis://HOST:PORT. The
    /// default path is /healthz
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:8379/healthz")]
    url: String,

    /// Set the maximum time for the name lookup, the connection and the response together
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    timeout: Duration,
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    let target = Target::parse(&args.url)?;
    let (sender, result) = mpsc::channel();
    // The probe has its own thread, because a name lookup has no time limit, and a server that sends
    // one byte a second exceeds no time limit of a socket. The end of the process ends the thread.
    let probe = std::thread::Builder::new().spawn(move || sender.send(target.probe()));
    probe.map_err(|error| Failure::io("cannot start a thread", &error))?;
    let reason = match result.recv_timeout(args.timeout) {
        Ok(Ok(())) => return report_healthy(&args.url),
        Ok(Err(reason)) => reason,
        Err(RecvTimeoutError::Timeout) => {
            let timeout = WindowSpan(Span::Millis(args.timeout.as_millis() as u64));
            format!("no response within {timeout}")
        }
        Err(RecvTimeoutError::Disconnected) => "the probe failed".to_owned(),
    };
    messages::error(format_args!("{}: {reason}", args.url));
    Ok(Exit::No)
}

fn report_healthy(url: &str) -> CommandResult {
    if !messages::is_quiet() {
        let written = writeln!(io::stdout(), "healthy: {}", redact(url));
        written.map_err(|error| Failure::io("standard output", &error))?;
    }
    Ok(Exit::Yes)
}

/// The server of a URL.
enum Target {
    Http { client: HttpClient, path: String },
    Redis { address: (String, u16), request: Request },
}

/// The commands for a Redis server, which the probe sends together.
struct Request {
    bytes: Vec<u8>,
    commands: usize,
}

impl Target {
    fn parse(url: &str) -> Result<Self, Failure> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => Self::parse_http(url),
            Some("redis" | "valkey") => Self::parse_redis(url),
            Some("rediss" | "valkeys") => Err(Failure::new(format!(
                "{}: this command has no TLS for Redis: test the console of the server, http://HOST:8379",
                without_password(url)
            ))),
            _ => Err(wrong_url(url)),
        }
    }

    fn parse_http(url: &str) -> Result<Self, Failure> {
        let uri: Uri = url.parse().map_err(|_| wrong_url(url))?;
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            let why = "has a user name: this command sends no password over HTTP";
            return Err(Failure::new(format!("{}: the URL {why}", without_password(url))));
        }
        let has_path = url.splitn(4, '/').count() == 4;
        let path = uri.path_and_query().filter(|_| has_path);
        let path = path.map_or(DEFAULT_PATH, |path| path.as_str()).to_owned();
        let client = HttpClient::new(&uri, None).map_err(|error| match error {
            HttpClientError::Url(why) => {
                Failure::new(format!("{}: the URL {why}", without_password(url)))
            }
            error => Failure::new(format!("{}: {error}", without_password(url))),
        })?;
        Ok(Self::Http { client, path })
    }

    fn parse_redis(url: &str) -> Result<Self, Failure> {
        let info = url.into_connection_info().map_err(|_| wrong_url(url))?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else { return Err(wrong_url(url)) };
        let settings = info.redis_settings();
        let password = settings.password().map(str::to_owned).or_else(password_of_environment);
        let mut request = Request { bytes: Vec::new(), commands: 0 };
        if let Some(password) = password {
            let mut command = redis::cmd("AUTH");
            request.push(command.arg(settings.username()).arg(password));
        }
        request.push(&redis::cmd("PING"));
        // The brackets of an IPv6 address are not a part of the host.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self::Redis { address: (host, *port), request })
    }

    /// Tests the server. Returns the reason if the server is not healthy.
    fn probe(self) -> Result<(), String> {
        match self {
            Self::Http { client, path } => get(client, &path),
            Self::Redis { address, request } => ping(&address, &request),
        }
    }
}

impl Request {
    fn push(&mut self, command: &redis::Cmd) {
        self.bytes.extend(command.get_packed_command());
        self.commands += 1;
    }
}

fn wrong_url(url: &str) -> Failure {
    let url = without_password(url);
    Failure::new(format!("{url}: is not a URL: write http://HOST:PORT/PATH or redis://HOST:PORT"))
}

/// Returns the end of a wrong URL, without the user and the password. A wrong URL may contain white space, or may have no
/// scheme.
fn without_password(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, host)| host)
}

/// Tests whether the status of a response over HTTP is 2xx. Returns the reason otherwise.
fn get(mut client: HttpClient, path: &str) -> Result<(), String> {
    let response = client.get(path, &HeaderMap::new(), Duration::MAX);
    let response = response.map_err(|error| error.to_string())?;
    let status = response.head().status;
    if status.is_success() {
        return Ok(());
    }
    let mut body = Vec::new();
    // The status alone is a sufficient reason, so an error of the body is ignored.
    _ = response.take(MAX_BYTES).read_to_end(&mut body);
    let line = first_line(&body);
    Err(if line.is_empty() {
        format!("status {status}")
    } else {
        format!("status {status}: {line}")
    })
}

/// Tests whether a Redis server replies to PING. Returns the reason otherwise.
fn ping(address: &(String, u16), request: &Request) -> Result<(), String> {
    let stream = TcpStream::connect((address.0.as_str(), address.1));
    let mut stream = stream.map_err(|error| format!("cannot connect: {}", plain(&error)))?;
    let broken = |error: io::Error| format!("the connection failed: {}", plain(&error));
    stream.write_all(&request.bytes).map_err(broken)?;
    let mut replies = BufReader::new(stream).take(MAX_BYTES);
    let mut line = Vec::new();
    for _ in 0..request.commands {
        line.clear();
        replies.read_until(b'\n', &mut line).map_err(broken)?;
        if line.starts_with(b"-WRONGPASS") {
            // The server replies NOAUTH to the PING that follows, and NOAUTH is healthy.
            break;
        }
    }
    let line = first_line(&line);
    match line.split(' ').next().unwrap_or_default() {
        "+PONG" | "-NOAUTH" | "-NOPERM" => Ok(()),
        "" => Err("the server closed the connection without a reply".to_owned()),
        _ => Err(match line.strip_prefix('-') {
            Some(error) => format!("the server replies {error}"),
            None => format!("the reply is not of a Redis server: {line}"),
        }),
    }
}

/// Returns the first line of a response, shortened for a message.
fn first_line(response: &[u8]) -> String {
    let text = String::from_utf8_lossy(response);
    text.lines().next().unwrap_or_default().chars().take(MAX_SHOWN).collect()
}
