//! `tamis publish` and `tamis pull` as programs.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc;

use rustix::fs::{CWD, FileType, Mode};
use tamis_testing::{CommandExt as _, Process, connect, read_to_end, receive, wait_until};

use crate::program::{Folder, lines};

/// A server that runs.
struct Publisher {
    process: Process,
    address: SocketAddr,
}

impl Publisher {
    fn start(folder: &Folder, line: &str) -> Self {
        let mut command = folder.command(&format!("publish --listen 127.0.0.1:0 {line}"));
        let mut process = command.stderr(Stdio::piped()).start();
        let text = process.stderr_lines().line_with("address=");
        let address = text.split("address=").nth(1).unwrap().split(' ').next().unwrap();
        Self { process, address: address.parse().unwrap() }
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/filters/{name}", self.address)
    }

    fn get(&self, path: &str, more: &str) -> (u16, String, Vec<u8>) {
        let mut stream = connect(self.address);
        let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = read_to_end(&mut stream);
        let end = bytes.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).unwrap();
        (head[9..12].parse().unwrap(), head, body)
    }

    fn stop(mut self) -> i32 {
        self.process.signal("TERM");
        self.process.wait().code().unwrap()
    }
}

/// Builds a filter of numbers.
fn build(folder: &Folder, name: &str, numbers: std::ops::Range<u64>) {
    folder.feed(format!("build -o {name} --rate 1e-6 --force"), lines(numbers));
    assert!(folder.names().contains(&name.to_owned()));
}

#[test]
fn a_copy_follows_its_filter() {
    let folder = Folder::new();
    build(&folder, "new.tamis", 0..1000);
    std::fs::rename(folder.path("new.tamis"), folder.path("a.tamis")).unwrap();
    let server = Publisher::start(&folder, "a.tamis");
    let pull = format!("pull {} -o copy.tamis", server.url("a.tamis"));
    let first = folder.run(&pull);
    first.warns(0, "tamis: copy.tamis: a new filter of ");
    first.prints("");
    assert_eq!(folder.read("copy.tamis"), folder.read("a.tamis"));
    folder.run(&pull).says(0, "tamis: copy.tamis: is up to date\n");
    folder.run(format!("{pull} --exit-code --quiet")).has_status(1);
    // A filter that was renamed into place is served at once.
    build(&folder, "new.tamis", 500..2000);
    std::fs::rename(folder.path("new.tamis"), folder.path("a.tamis")).unwrap();
    let third = folder.ok(format!("{pull} --json --exit-code"));
    let line: serde_json::Value = serde_json::from_str(&third).unwrap();
    assert_eq!((&line["changed"], &line["file"]), (&true.into(), &"copy.tamis".into()));
    assert_eq!(folder.read("copy.tamis"), folder.read("a.tamis"));
    assert!(line["etag"].as_str().unwrap().starts_with("xxh3-"));
    // A damaged copy is replaced.
    folder.write("copy.tamis", "damaged");
    folder.run(&pull).has_status(0);
    assert_eq!(folder.read("copy.tamis"), folder.read("a.tamis"));
    assert_eq!(folder.names(), ["a.tamis", "copy.tamis"]);
    assert_eq!(server.stop(), 0);
}

/// *Summary Cache* (Fan, Cao, Almeida, Broder, 2000): each proxy publishes a filter of its cache, and
/// asks a neighbour only for URLs that its copy of the neighbour's filter has.
#[test]
fn proxies_exchange_digests_of_their_caches() {
    let url = |number: usize| format!("http://origin.example/{number}");
    let caches = [0..600, 400..1000];
    let proxies = caches.clone().map(|cache| {
        let folder = Folder::new();
        folder.write("cache.txt", cache.map(|it| url(it) + "\n").collect::<String>());
        folder.ok("build --kind counting --rate 1% --items 1000 cache.txt -o own.tamis");
        let publisher = Publisher::start(&folder, "own.tamis");
        (folder, publisher)
    });
    let pull = |one: usize| {
        let (folder, _) = &proxies[one];
        let (_, neighbour) = &proxies[1 - one];
        folder.ok(format!("pull {} -o neighbour.tamis --quiet", neighbour.url("own.tamis")));
    };
    // Returns the URLs for which a proxy asks its neighbour.
    let asked = |one: usize, numbers: std::ops::Range<usize>| {
        let (folder, _) = &proxies[one];
        folder.write("urls.txt", numbers.map(|it| url(it) + "\n").collect::<String>());
        let found = folder.run("check neighbour.tamis urls.txt").stdout;
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (one, cache) in [(0, caches[1].clone()), (1, caches[0].clone())] {
        pull(one);
        // No request for a URL of the neighbour's cache goes to the origin.
        assert_eq!(asked(one, cache.clone()), cache.map(url).collect::<Vec<_>>());
        assert!(asked(one, 10_000..20_000).len() < 200);
    }
    // The second proxy removes URLs from its cache and from its digest.
    let (second, _) = &proxies[1];
    second.write("removed.txt", (400..700).map(|it| url(it) + "\n").collect::<String>());
    second.ok("remove own.tamis removed.txt");
    wait_until("the first proxy has the new digest", || {
        pull(0);
        asked(0, 400..700).len() < 30
    });
    assert_eq!(asked(0, 700..1000).len(), 300);
    for (_, publisher) in proxies {
        assert_eq!(publisher.stop(), 0);
    }
}

#[test]
fn the_list_and_the_etag_are_those_of_the_files() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..1000);
    folder.copy_golden("../../fuzz/seeds/format/guava/0", "b.guava");
    let server = Publisher::start(&folder, "a.tamis b.guava");
    let (status, _, body) = server.get("/index.json", "");
    assert_eq!(status, 200);
    let list: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(list[0]["name"], "a.tamis");
    assert_eq!(list[0]["kind"], "classic");
    let items = list[0]["items"].as_f64().unwrap();
    assert!((items - 1000.0).abs() < 20.0, "{items}");
    assert_eq!(list[1]["format"], "guava");
    let (status, _, page) = server.get("/", "");
    assert_eq!(status, 200);
    assert!(String::from_utf8(page).unwrap().contains("href=\"/filters/b.guava\""));
    let tag = list[0]["etag"].as_str().unwrap();
    let (status, head, body) =
        server.get("/filters/a.tamis", &format!("if-none-match: \"{tag}\"\r\n"));
    assert_eq!((status, body.len()), (304, 0));
    assert!(head.contains(&format!("etag: \"{tag}\"")), "{head}");
    for (path, status) in
        [("/filters/c", 404), ("/filters/", 404), ("/x", 404), ("/filters/..%2Fa.tamis", 404)]
    {
        assert_eq!(server.get(path, "").0, status, "{path}");
    }
    let huge = format!("x: {}\r\n", "y".repeat(60_000));
    assert_eq!(server.get("/filters/a.tamis", &huge).0, 431);
}

#[test]
fn only_clients_with_the_token_get_a_filter() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..10);
    folder.write("token", "a secret\n");
    folder.write("wrong", "another\n");
    folder.write("empty", "\n");
    let server = Publisher::start(&folder, "a.tamis --token-file token");
    let url = server.url("a.tamis");
    folder.refused(format!("pull {url} -o copy"), "401 Unauthorized: give the token");
    folder.refused(format!("pull {url} -o copy --token-file wrong"), "401 Unauthorized");
    folder.refused(format!("pull {url} -o copy --token-file empty"), "empty: the token must");
    assert_eq!(server.get("/", "").0, 401);
    folder.run(format!("pull {url} -o copy --token-file token")).has_status(0);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = folder.path("copy").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "what needs a token is private");
}

#[test]
fn wrong_files_and_arguments_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("text", "no filter");
    build(&folder, "a.tamis", 0..10);
    std::fs::create_dir(folder.path("sub")).unwrap();
    std::fs::copy(folder.path("a.tamis"), folder.path("sub/a.tamis")).unwrap();
    folder.refused("publish missing", "missing: no such file");
    folder.refused("publish text", "text: not a Tamis filter");
    folder.refused("publish sub", "sub: is not a regular file");
    folder.refused("publish a.tamis sub/a.tamis", "another file has the name a.tamis");
    folder.refused("publish a.tamis --listen x", "'x' is not an address");
    folder.refused("publish a.tamis --listen 203.0.113.1:80", "cannot listen on 203.0.113.1:80");
    folder.refused("pull nothing -o x", "begins with neither http:// nor https://");
    folder.refused("pull http://127.0.0.1:99999/a -o x", "has a port that is not a number");
    folder.refused("pull http://127.0.0.1:1/x -o x", "cannot connect: ");
    folder.refused("pull http://u:p@127.0.0.1:1/x -o x", "has a user name");
    folder.refused("pull http://127.0.0.1:1/x -o -", "name one with -o");
    folder.refused("pull http://127.0.0.1:1/x -o /dev/stdout", "name one with -o");
    folder.refused("pull http://127.0.0.1:1/x -o sub", "sub: is not a regular file");
    folder.refused("pull http://127.0.0.1:1/x -o /dev/null", "/dev/null: is not a regular file");
    let other = Folder::new();
    let pipe = other.path("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let line = format!("pull http://127.0.0.1:1/x -o {}", pipe.display());
    // A program that opens the pipe waits for a writer. It is there, so that the test ends.
    std::thread::spawn(move || std::fs::File::options().write(true).open(pipe));
    folder.refused(&line, "pipe: is not a regular file");
    folder.refused("pull http://127.0.0.1:1/x -o x --every 1", "'1' is not a time");
    folder.refused("pull https://127.0.0.1:1/x -o x --ca text", "text: ");
}

/// Starts a server that sends one answer to each request.
fn server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/filters/a.tamis", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            _ = stream.read(&mut request);
            _ = stream.write_all(&answer);
        }
    });
    url
}

#[test]
fn no_damaged_or_strange_body_replaces_a_copy() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..1000);
    folder.write("copy", "the old copy");
    let good = folder.read("a.tamis");
    let mut damaged = good.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let answer = |head: &str, body: &[u8]| {
        let len = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {len}\r\n{head}\r\n");
        [head.as_bytes(), body].concat()
    };
    let cut = answer("", &good)[..good.len() / 2].to_vec();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (answer("", b""), "is empty"),
        (answer("", b"<html>"), "not a Tamis filter"),
        (answer("", &damaged), "checksum"),
        (
            answer("etag: \"xxh3-00000000000000000000000000000000\"\r\n", &good),
            "damaged or changed",
        ),
        (answer("", b"\x89TGUARD\nxxxxxxxxxxxxxxx"), "is the set of a guard"),
        (cut, "the exchange failed"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\n".to_vec(), "--max-size"),
        (b"HTTP/1.1 301 Moved\r\nlocation: http://b/c\r\n\r\n".to_vec(), "use the URL http://b/c"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(), "lists its filters"),
        (b"hello\r\n\r\n".to_vec(), "the exchange failed"),
    ];
    for (bytes, words) in cases {
        let url = server(bytes);
        folder.refused(format!("pull {url} -o copy"), words);
    }
    // Any server of files will do.
    let url = server(answer("", &good));
    folder.run(format!("pull {url} -o copy")).has_status(0);
    assert_eq!(folder.read("copy"), good);
    folder.run(format!("pull {url} -o copy --exit-code")).has_status(1);
}

#[test]
fn a_client_never_gets_a_mix_of_two_files() {
    let folder = Folder::new();
    // Larger than the buffers of a connection.
    folder.feed("build -o a.tamis --items 40M --rate 1e-3", lines(0..10));
    folder.feed("build -o b.tamis --items 40M --rate 1e-3", lines(10..20));
    let (old, new) = (folder.read("a.tamis"), folder.read("b.tamis"));
    assert!(old.len() > 16 << 20 && old.len() == new.len() && old != new);
    let server = Publisher::start(&folder, "a.tamis");
    let begin = || {
        let mut stream = connect(server.address);
        let head = "GET /filters/a.tamis HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 1000];
        stream.read_exact(&mut first).unwrap();
        let end = first.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        (stream, first[end + 4..].to_vec())
    };
    // Renamed into place: who has begun gets the old one, and others the new one.
    let (mut stream, mut body) = begin();
    std::fs::rename(folder.path("b.tamis"), folder.path("a.tamis")).unwrap();
    body.extend(read_to_end(&mut stream));
    assert!(body == old);
    assert!(server.get("/filters/a.tamis", "").2 == new);
    // Written in place: who has begun gets an incomplete answer.
    let (mut stream, mut body) = begin();
    std::fs::write(folder.path("a.tamis"), &old).unwrap();
    body.extend(read_to_end(&mut stream));
    assert!(body.len() < old.len(), "the answer is incomplete");
    assert!(new.starts_with(&body), "{}", body.len());
    // It is served again when it has stayed the same for a while. The write may have taken longer.
    let (status, _, body) = server.get("/filters/a.tamis", "");
    assert!(status == 503 || body == old, "{status}");
    wait_until("the old file is served", || server.get("/filters/a.tamis", "").2 == old);
    // What is no filter is not served.
    folder.write("c", "no filter");
    std::fs::rename(folder.path("c"), folder.path("a.tamis")).unwrap();
    assert!(server.get("/filters/a.tamis", "").2 == old, "the last filter is still there");
    std::fs::remove_file(folder.path("a.tamis")).unwrap();
    assert_eq!(server.get("/filters/a.tamis", "").0, 404);
}

#[test]
fn a_client_that_takes_nothing_hinders_nobody_else() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..100_000);
    let server = Publisher::start(&folder, "a.tamis");
    let request = "GET /filters/a.tamis HTTP/1.1\r\nhost: a\r\n\r\n".repeat(50);
    let _slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect(server.address);
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert!(server.get("/filters/a.tamis", "").2 == folder.read("a.tamis"));
    assert_eq!(server.stop(), 0);
}

#[test]
fn every_follows_until_a_signal_and_survives_the_loss_of_the_server() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..100);
    let server = Publisher::start(&folder, "a.tamis");
    let pull = format!("pull {} -o copy --every 50ms --json", server.url("a.tamis"));
    let mut follower = folder.piped(&pull).stdout(Stdio::null()).start();
    let is_same = || {
        folder.names().contains(&"copy".to_owned()) && folder.read("copy") == folder.read("a.tamis")
    };
    wait_until("the first copy is written", is_same);
    build(&folder, "b.tamis", 100..300);
    std::fs::rename(folder.path("b.tamis"), folder.path("a.tamis")).unwrap();
    wait_until("the second copy is written", is_same);
    let address = server.address;
    drop(server);
    let line = follower.stderr_lines().next().expect("a line");
    assert!(line.contains(&format!("http://{address}/filters/a.tamis: ")), "{line}");
    assert!(follower.try_wait().unwrap().is_none(), "it goes on");
    follower.signal("TERM");
    follower.wait();
    assert_eq!(folder.names(), ["a.tamis", "copy"]);
}

/// Starts a server with a tag of its own for one content. It answers 304 to a client that knows the
/// tag, and sends each request to `requests`.
fn tagging_server(content: Vec<u8>, requests: mpsc::Sender<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/filters/a.tamis", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while stream.read_line(&mut head).is_ok_and(|read| read > 0) {
                if !head.ends_with("\r\n\r\n") {
                    continue;
                }
                let is_known = head.contains("\"67-5\"");
                let (status, body) =
                    if is_known { ("304 ", &[][..]) } else { ("200 ", &content[..]) };
                let len = if is_known {
                    String::new()
                } else {
                    format!("content-length: {}\r\n", body.len())
                };
                let answer = format!("HTTP/1.1 {status}\r\netag: \"67-5\"\r\n{len}\r\n");
                let answer = [answer.as_bytes(), body].concat();
                if stream.get_mut().write_all(&answer).is_err()
                    || requests.send(std::mem::take(&mut head)).is_err()
                {
                    return;
                }
            }
        }
    });
    url
}

#[test]
fn a_damaged_copy_of_a_server_with_other_tags_is_repaired() {
    let folder = Folder::new();
    build(&folder, "a.tamis", 0..100);
    let (sender, requests) = mpsc::channel();
    let url = tagging_server(folder.read("a.tamis"), sender);
    let _follower = folder.command(&format!("pull {url} -o copy --every 10ms --quiet")).start();
    let next = |what: &str, is_unchanged: bool| {
        while receive(what, &requests).contains("\"67-5\"") != is_unchanged {}
    };
    next("a request that finds the copy up to date", true);
    assert_eq!(folder.read("copy"), folder.read("a.tamis"));
    folder.write("copy", "damaged");
    wait_until("the copy is repaired", || folder.read("copy") == folder.read("a.tamis"));
    // Its tag counts again.
    next("a download of the damaged copy", false);
    next("a request that finds the repaired copy up to date", true);
}
