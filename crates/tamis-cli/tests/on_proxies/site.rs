//! A site: a proxy, a guard and a shop, each on its own port.

use std::io::{BufRead as _, BufReader, Write as _};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use tamis_testing::{CommandExt as _, Process, free_port, read_to_end, try_connect, wait_until};

use crate::http2;
use crate::page::{file, replaced};
use crate::proxies::{OtherProxy, Ports, WhileDown};

/// A running site. Dropping the site ends its processes.
pub struct Site<P> {
    folder: tempfile::TempDir,
    ports: Ports,
    guard: Option<Process>,
    proxy: Process,
    /// The targets of the requests that reached the shop.
    seen: Arc<Mutex<Vec<String>>>,
    kind: PhantomData<P>,
}

/// A response: its status, its head and its body.
#[derive(Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl<P: OtherProxy> Site<P> {
    /// Starts a shop, a guard and a proxy with the files of the page.
    pub fn start(while_down: WhileDown) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let seen = Arc::default();
        let shop = shop(Arc::clone(&seen));
        let ports = Ports { proxy: free_port(), guard: free_port(), shop: shop.port() };
        let command = &mut P::command(folder.path(), ports, while_down);
        let proxy = command.stdout(Stdio::null()).stderr(Stdio::null()).start();
        let mut site = Self { folder, ports, guard: None, proxy, seen, kind: PhantomData };
        site.start_guard("");
        wait_until(format_args!("{} serves", P::NAME), || {
            site.proxy
                .try_wait()
                .unwrap()
                .is_none_or(|status| panic!("{} ended: {status}", P::NAME))
        });
        wait_until(format_args!("{} forwards requests", P::NAME), || {
            site.try_send("GET", "/", "", "").is_some_and(|response| response.body == "GET / ")
        });
        site
    }

    /// Starts the guard with the file of the page and more settings of the route. Waits until the guard is ready.
    pub fn start_guard(&mut self, of_route: &str) {
        let mut config = file("guard.toml");
        for (from, to) in [
            ("proxy = \"nginx\"", format!("proxy = \"{}\"", P::NAME)),
            ("127.0.0.1:8081", format!("127.0.0.1:{}", self.ports.guard)),
            ("127.0.0.1:9091", "127.0.0.1:0".to_owned()),
        ] {
            config = replaced(&config, from, &to);
        }
        let ids: Vec<String> = (1..=100).map(|id| format!("{id}\n")).collect();
        std::fs::write(self.folder.path().join("ids.txt"), ids.concat()).unwrap();
        std::fs::write(self.folder.path().join("guard.toml"), config + of_route).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tamis"));
        command.args(["guard", "--config", "guard.toml"]).current_dir(self.folder.path());
        let mut guard = command.stderr(Stdio::piped()).start();
        let mut log = guard.stderr_lines();
        log.line_with("ready");
        log.line_with("synced");
        self.guard = Some(guard);
    }

    /// Kills the guard.
    pub fn kill_guard(&mut self) {
        self.guard.take().expect("the guard runs").kill();
    }

    /// Stops the process of the guard, which then accepts connections and answers no question.
    pub fn freeze_guard(&self) {
        self.guard.as_ref().expect("the guard runs").send("STOP");
    }

    /// Replaces the guard by a server that answers each question with these bytes, and then closes the connection.
    pub fn answer_questions_with(&mut self, bytes: &'static str) {
        self.kill_guard();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.ports.guard)).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if read_head(&stream).is_some() {
                    _ = (&stream).write_all(bytes.as_bytes());
                }
            }
        });
    }

    /// Returns the response to a GET request.
    #[track_caller]
    pub fn get(&self, target: &str) -> Response {
        self.send("GET", target, "", "")
    }

    /// Returns the response to a request. `headers` are lines that end with `\r\n`.
    #[track_caller]
    pub fn send(&self, method: &str, target: &str, headers: &str, body: &str) -> Response {
        let response = self.try_send(method, target, headers, body);
        response.unwrap_or_else(|| panic!("{} did not respond to {method} {target}", P::NAME))
    }

    /// Sends a request over HTTP/2 without TLS. Returns true if the response has the status 200.
    pub fn passes_http2(&self, fields: &[(&str, &str)]) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.proxy));
        http2::is_answered_with_200(try_connect(address).unwrap(), fields)
    }

    fn try_send(&self, method: &str, target: &str, headers: &str, body: &str) -> Option<Response> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.proxy));
        let mut stream = try_connect(address).ok()?;
        let length = match body {
            "" => String::new(),
            body => format!("content-length: {}\r\n", body.len()),
        };
        let head =
            format!("{method} {target} HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n");
        stream.write_all(format!("{head}{headers}{length}\r\n{body}").as_bytes()).ok()?;
        let text = String::from_utf8(read_to_end(&mut stream)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Response { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
    }

    /// Tests whether a request for this target has reached the shop.
    pub fn has_reached_shop_exactly(&self, target: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|seen| seen == target)
    }

    /// Returns the targets of the requests that reached the shop.
    pub fn targets(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Tests whether a request for a target with this text has reached the shop.
    pub fn has_reached_shop(&self, text: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|target| target.contains(text))
    }
}

/// Starts a shop. The response of the shop has the method, the target and the body of the request. The status is 403 for
/// `/forbidden`.
fn shop(seen: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || while serve(&stream, &seen).is_some() {});
        }
    });
    address
}

/// Serves a request of the proxy. Returns `None` at the end of the connection.
fn serve(mut stream: &TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let (head, mut reader) = read_head(stream)?;
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    seen.lock().unwrap().push(target.to_owned());
    let length = head.to_ascii_lowercase().split("\r\ncontent-length: ").nth(1).map(|rest| {
        rest.split('\r').next().unwrap_or_default().parse::<usize>().expect("a length")
    });
    let mut body = vec![0; length.unwrap_or_default()];
    std::io::Read::read_exact(&mut reader, &mut body).ok()?;
    let status = if target == "/forbidden" { "403 Forbidden" } else { "200 OK" };
    let text = format!("{method} {target} {}", String::from_utf8(body).unwrap());
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
    stream.write_all(answer.as_bytes()).ok()
}

/// Reads the head of a request. Returns `None` at the end of the connection.
fn read_head(stream: &TcpStream) -> Option<(String, BufReader<&TcpStream>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    Some((head, reader))
}
