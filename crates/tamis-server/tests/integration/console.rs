//! The HTTP port: its answers and its refusals.

use std::cell::RefCell;
use std::fmt;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::client::{Client, with_items};
use crate::http::{Answer, get, get_with, send};
use crate::support::{self, start_with};
use serde_json::Value as Json;
use tamis_resp::Reply;
use tamis_server::{Config, HttpPort, Server, ServerError};
use tamis_testing::{connect, in_time, read_to_end, try_connect, wait_for, wait_until};

fn config() -> Config {
    Config { http_port: HttpPort::At(0), ..support::config() }
}

fn start(config: Config) -> (Server, SocketAddr) {
    let server = Server::start(config).unwrap();
    let address = server.http_address().unwrap();
    (server, address)
}

fn start_with_client(config: Config) -> (Server, SocketAddr, Client) {
    let (server, client) = start_with(config);
    let address = server.http_address().unwrap();
    (server, address, client)
}

/// Returns the data of a path.
fn data_of(address: SocketAddr, path: &str) -> Json {
    json(&get(address, path))
}

/// Returns the keys of filters in a list.
fn keys_of(data: &Json) -> Vec<String> {
    let filters = data["filters"].as_array().unwrap();
    filters.iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect()
}

fn json(answer: &Answer) -> Json {
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

/// Repeats a request until the answer is as expected.
fn until(address: SocketAddr, path: &str, is_so: impl Fn(&Json) -> bool) -> Json {
    let last = RefCell::new(Json::Null);
    let what = fmt::from_fn(|f| write!(f, "{path} is as expected: {}", last.borrow()));
    wait_until(what, || {
        last.replace(data_of(address, path));
        is_so(&last.borrow())
    });
    last.take()
}

#[test]
fn the_console_is_off_by_default() {
    let server = Server::start(Config { http_port: HttpPort::Off, ..config() }).unwrap();
    assert_eq!(server.http_address(), None);
}

#[test]
fn every_response_restricts_what_a_browser_may_do() {
    let (_server, address) = start(config());
    for (path, status, kind) in [
        ("/", 200, "text/html; charset=utf-8"),
        ("/console/main.js", 200, "text/javascript; charset=utf-8"),
        ("/console/style.css?x=1", 200, "text/css; charset=utf-8"),
        ("/healthz", 200, "text/plain; charset=utf-8"),
        ("/metrics", 200, "text/plain; version=0.0.4; charset=utf-8"),
        ("/api/overview.json", 200, "application/json"),
        ("/api/filters.json", 200, "application/json"),
        ("/api/plan.json?items=1000&rate=0.01", 200, "application/json"),
        ("/api/plan.json", 400, "application/json"),
        ("/api/filter.json", 400, "application/json"),
        ("/api/filter.json?key=none", 404, "application/json"),
        ("/none", 404, "application/json"),
        ("/console/", 404, "application/json"),
        ("/console/../Cargo.toml", 404, "application/json"),
        ("/console/%2e%2e/index.html", 404, "application/json"),
        ("//", 404, "application/json"),
        ("/api/overview.json/", 404, "application/json"),
    ] {
        let answer = get(address, path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        for line in [
            &format!("content-type: {kind}"),
            "content-security-policy: default-src 'self'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: deny",
        ] {
            assert!(answer.head.contains(line), "{path}: {line}: {}", answer.head);
        }
        let cache = if kind.starts_with("text/") && answer.head.contains("etag:") {
            "cache-control: no-cache"
        } else {
            "cache-control: no-store"
        };
        assert!(answer.head.contains(cache), "{path}: {}", answer.head);
        if status >= 400 {
            let data = json(&answer);
            let text = data["error"].as_str().unwrap();
            assert!(!text.is_empty() && !text.contains('\n'), "{path}: {text}");
        }
    }
}

#[test]
fn a_browser_that_has_a_file_gets_not_modified() {
    let (_server, address) = start(config());
    let first = get(address, "/console/main.js");
    let tag = first.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    for (known, status, is_empty) in
        [(&*tag, 304, true), ("\"other\"", 200, false), (&format!("\"a\", {tag}"), 304, true)]
    {
        let line = format!("If-None-Match: {known}\r\n");
        let answer = get_with(address, "/console/main.js", &line);
        assert_eq!((answer.status, answer.body.is_empty()), (status, is_empty), "{known}");
        assert!(answer.head.contains(&tag));
    }
}

#[test]
fn only_get_and_head_are_answered() {
    let (_server, address) = start(config());
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FLUSHALL"] {
        let request =
            format!("{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = send(address, request.as_bytes()).unwrap();
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("allow: get, head"));
    }
    let head = send(address, b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let head = head.unwrap();
    assert!(head.status == 200 && head.body.is_empty() && head.head.contains("content-length: "));
    for body in [
        "Content-Length: 5\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{body}");
        let answer = send(address, request.as_bytes()).unwrap();
        assert_eq!(answer.status, 413);
        assert!(answer.head.contains("connection: close"));
    }
}

#[test]
fn a_foreign_host_name_is_rejected() {
    let (_server, address) = start(config());
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        (&*address.to_string(), 200),
        ("[::1]:8379", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("192.168.0.1", 421),
        ("", 421),
    ] {
        for path in ["/", "/healthz", "/metrics", "/api/overview.json"] {
            let answer = get_with(address, path, &format!("Host: {host}\r\n"));
            assert_eq!(answer.status, status, "{host} {path}");
        }
    }
    let twice = "Host: localhost\r\nHost: evil.example\r\n";
    assert_eq!(get_with(address, "/", twice).status, 421);
    let without = send(address, b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(without.status, 421);
    assert_eq!(get(address, "http://evil.example/").status, 421);
    assert_eq!(get(address, "http://localhost/").status, 200);
}

#[test]
fn every_path_but_health_requires_the_password() {
    let (_server, address, mut client) =
        start_with_client(Config { password: "s:ecret".to_owned(), ..config() });
    for path in
        ["/", "/console/main.js", "/metrics", "/api/overview.json", "/api/filters.json", "/x"]
    {
        let answer = get(address, path);
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("www-authenticate: basic realm="), "{}", answer.head);
        assert!(!answer.body.contains("s:ecret"));
    }
    assert_eq!(get(address, "/healthz").status, 200);
    for (credentials, status) in [
        ("ZGVmYXVsdDpzOmVjcmV0", 200), // default:s:ecret
        ("ZGVmYXVsdDpzOmVjcmU=", 401), // default:s:ecre
        ("OnM6ZWNyZXQ=", 401),         // :s:ecret
        ("c29tZW9uZTpzOmVjcmV0", 401), // someone:s:ecret
        ("ZGVmYXVsdA==", 401),         // default
        ("!!!!", 401),
        ("", 401),
    ] {
        let line = format!("Authorization: Basic {credentials}\r\n");
        assert_eq!(get_with(address, "/api/overview.json", &line).status, status, "{credentials}");
    }
    // A password that is set while the server runs applies from then on.
    assert_eq!(client.say(&["AUTH", "s:ecret"]), Reply::ok());
    client.say(&["CONFIG", "SET", "requirepass", "other"]);
    let line = "Authorization: Basic ZGVmYXVsdDpzOmVjcmV0\r\n";
    assert_eq!(get_with(address, "/", line).status, 401);
}

#[test]
fn the_page_asks_for_a_password_with_its_own_form() {
    let (_server, address) = start(Config { password: "secret".to_owned(), ..config() });
    let of_page = get_with(address, "/api/overview.json", "X-Tamis-Console: 1\r\n");
    assert_eq!(of_page.status, 401);
    assert!(!of_page.head.contains("www-authenticate"), "{}", of_page.head);
    assert!(get(address, "/api/overview.json").head.contains("www-authenticate"));
}

#[test]
fn a_browser_gets_the_page_for_an_unknown_path() {
    let (_server, address) = start(config());
    let accept = "Accept: text/html,application/xhtml+xml;q=0.9\r\n";
    for (path, kind) in [
        ("/nothing", "text/html"),
        ("/filter/users", "text/html"),
        ("/api/nothing.json", "application/json"),
        ("/console/none.js", "application/json"),
    ] {
        let answer = get_with(address, path, accept);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.head.contains(&format!("content-type: {kind}")), "{path}: {}", answer.head);
        assert!(answer.head.contains("content-security-policy: default-src 'self'"), "{path}");
        assert!(get(address, path).head.contains("content-type: application/json"), "{path}");
    }
}

#[test]
fn users_see_only_data_that_they_have_permissions_for() {
    let (_server, address, mut client) = start_with_client(config());
    for key in ["seen:a", "other"] {
        client.say(&["TM.RESERVE", key, "KIND", "classic", "ITEMS", "100", "RATE", "0.01"]);
    }
    client.say(&["ACL", "SETUSER", "asks", "on", ">secret", "~seen:*", "+tm.info"]);
    client.say(&["ACL", "SETUSER", "off", ">secret", "~*", "+@all"]);
    let as_user = |credentials: &str, path: &str| {
        get_with(address, path, &format!("Authorization: Basic {credentials}\r\n"))
    };
    let asks = "YXNrczpzZWNyZXQ="; // asks:secret
    until(address, "/api/filters.json", |data| data["matching"] == 2);
    let data = json(&as_user(asks, "/api/filters.json"));
    assert_eq!((&data["matching"], &data["filters"][0]["key"]), (&1.into(), &"seen:a".into()));
    for (path, status) in [
        ("/", 200),
        ("/healthz", 200),
        ("/api/filter.json?key=seen:a", 200),
        ("/api/filter.json?key=other", 403),
        ("/api/filter.json?key=none", 403),
        ("/api/overview.json", 403),
        ("/api/plan.json?items=1&rate=0.1", 403),
        ("/metrics", 403),
    ] {
        assert_eq!(as_user(asks, path).status, status, "{path}");
    }
    assert_eq!(as_user("b2ZmOnNlY3JldA==", "/").status, 401); // off:secret
    assert_eq!(as_user("YXNrczpzZWNyZVQ=", "/").status, 401); // asks:secreT
    assert_eq!(get(address, "/metrics").status, 200);
    client.say(&["ACL", "SETUSER", "default", "resetpass", ">other"]);
    assert_eq!(get(address, "/").status, 401);
}

#[test]
fn a_console_off_loopback_requires_a_password() {
    let open = Config { http_bind: [0, 0, 0, 0].into(), ..config() };
    for http_port in [HttpPort::At(0), HttpPort::Auto] {
        let refused = Server::start(Config { http_port, ..open.clone() });
        assert!(matches!(refused, Err(ServerError::Unprotected { .. })), "{http_port:?}");
    }
    let password = "secret".to_owned();
    let (_server, address, mut client) = start_with_client(Config { password, ..open });
    let local = SocketAddr::from(([127, 0, 0, 1], address.port()));
    let line = "Host: tamis.example\r\nAuthorization: Basic ZGVmYXVsdDpzZWNyZXQ=\r\n";
    assert_eq!(get_with(local, "/", line).status, 200);
    client.say(&["AUTH", "secret"]);
    assert!(matches!(client.say(&["CONFIG", "SET", "requirepass", ""]), Reply::Error(_)));
}

#[test]
fn a_required_http_port_that_is_in_use_is_an_error() {
    let (_server, address) = start(config());
    let taken = Config { http_port: HttpPort::At(address.port()), ..config() };
    let error = Server::start(taken).unwrap_err().to_string();
    assert!(error.contains("--http-port") && !error.contains('\n'), "{error}");
}

#[test]
fn hostile_heads_end_the_connection_and_nothing_else() {
    let (_server, address) = start(config());
    let long = "x".repeat(100_000);
    let many: String = (0..1000).map(|i| format!("X-{i}: 1\r\n")).collect();
    for (request, statuses) in [
        (format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"), &[414, 431, 400][..]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), &[431, 400]),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), &[431, 400]),
        ("\0\u{1}\u{2}\r\n\r\n".to_owned(), &[400]),
        ("*1\r\n$4\r\nPING\r\n".to_owned(), &[400]),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), &[400, 505]),
        ("GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), &[400]),
    ] {
        if let Some(answer) = send(address, request.as_bytes()) {
            assert!(statuses.contains(&answer.status), "{}: {:.40}", answer.status, request);
        }
    }
    assert_eq!(get(address, "/healthz").status, 200);
}

#[test]
fn incomplete_requests_do_not_delay_others() {
    let (_server, address) = start(config());
    let mut half_sent: Vec<TcpStream> = Vec::new();
    for _ in 0..100 {
        let mut stream = connect(address);
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").unwrap();
        half_sent.push(stream);
        assert_eq!(get(address, "/healthz").status, 200);
    }
    // The server still waits for the latest connections, up to their limit.
    let is_open = |stream: &mut TcpStream| {
        let rest = b"host\r\nConnection: close\r\n\r\n";
        _ = stream.write_all(rest);
        read_to_end(stream).starts_with(b"HTTP/1.1 200")
    };
    let open: Vec<bool> = half_sent.iter_mut().map(is_open).collect();
    assert!(open[50..].iter().all(|it| *it) && open[..36].iter().all(|it| !it), "{open:?}");
}

#[test]
fn keys_of_any_bytes_are_shown_exactly() {
    let (_server, address, mut client) = start_with_client(config());
    let key = b"<script>\xff\0\n\"&=%+ \xe4\xb8\xad";
    client.say(&[&b"BF.RESERVE"[..], key, b"0.01", b"1000"]);
    client.say(&[&b"BF.MADD"[..], key, b"a", b"b"]);
    client.say(&["SET", "text", "no filter"]);
    let encoded: String = key.iter().map(|byte| format!("%{byte:02x}")).collect();
    let data = data_of(address, &format!("/api/filter.json?key={encoded}"));
    assert_eq!((&data["kind"], &data["items"]), (&Json::from("bloom (growing)"), &Json::from(2)));
    assert_eq!(data["key"], String::from_utf8_lossy(key).as_ref());
    let again = data["key_encoded"].as_str().unwrap();
    assert!(again.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'%'), "{again}");
    let back = data_of(address, &format!("/api/filter.json?key={again}"));
    assert_eq!(back["key"], data["key"]);
    assert_eq!(data["layers"].as_array().unwrap().len(), 1);
    assert_eq!(data["rate_curve"].as_array().unwrap().len(), 61);
    assert_eq!(get(address, "/api/filter.json?key=text").status, 404);
    let list = until(address, "/api/filters.json", |data| data["total"] == 1);
    assert_eq!(list["filters"][0]["key_encoded"].as_str(), Some(again));
}

#[test]
fn filters_are_listed_worst_first_and_by_pattern() {
    let (_server, address, mut client) = start_with_client(config());
    for (key, items) in [("a:empty", 0), ("a:half", 50), ("b:over", 300), ("b:nearly", 95)] {
        // A filter that grows while the sampler runs would get a forecast, which also affects the
        // order.
        client.say(&["MULTI"]);
        client.say(&["TM.RESERVE", key, "KIND", "classic", "ITEMS", "100", "RATE", "0.01"]);
        for item in 0..items {
            client.say(&["TM.ADD", key, &item.to_string()]);
        }
        client.say(&["EXEC"]);
    }
    let is_settled = |data: &Json| keys_of(data) == ["b:over", "b:nearly", "a:half", "a:empty"];
    let data = until(address, "/api/filters.json", is_settled);
    assert_eq!(data["filters"][0]["over_rate"], true);
    assert_eq!(data["filters"][1]["over_rate"], false);
    assert!(data["filters"][0].get("bits").is_none());
    for (query, expected) in [
        ("?match=b:*", &["b:over", "b:nearly"][..]),
        ("?match=%62%3a*&limit=1", &["b:over"]),
        ("?limit=0", &[]),
        ("?match=", &[]),
        ("?limit=99999999999", &["b:over", "b:nearly", "a:half", "a:empty"]),
        ("?match=*%2a*%2a*%2a*%2a*x", &[]),
    ] {
        let data = data_of(address, &format!("/api/filters.json{query}"));
        assert_eq!(keys_of(&data), expected, "{query}");
    }
    for (query, expected) in [
        ("?sort=key", &["a:empty", "a:half", "b:nearly", "b:over"][..]),
        ("?sort=items&order=desc", &["b:over", "b:nearly", "a:half", "a:empty"]),
        ("?sort=items&order=asc&offset=1&limit=2", &["a:half", "b:nearly"]),
        ("?sort=key&order=desc&offset=3", &["a:empty"]),
        ("?sort=key&offset=99999999999", &[]),
        ("?sort=fill&match=a*", &["a:empty", "a:half"]),
    ] {
        let data = data_of(address, &format!("/api/filters.json{query}"));
        assert_eq!(keys_of(&data), expected, "{query}");
        assert_eq!(data["sortable"], 4);
        let (from, to) = (&data["measured_from_millis"], &data["measured_millis"]);
        assert!(from.as_u64() > Some(0) && from.as_u64() <= to.as_u64(), "{data}");
    }
    let wrong = "?limit=-1 ?limit= ?limit=x ?limit=%ff ?sort= ?sort=none ?order=up ?offset=-1";
    for query in wrong.split(' ') {
        assert_eq!(get(address, &format!("/api/filters.json{query}")).status, 400, "{query}");
    }
    let overview = data_of(address, "/api/overview.json");
    assert_eq!((&overview["filters"], &overview["over_rate"]), (&4.into(), &1.into()));
    assert_eq!(overview["log"], Json::Null);
}

#[test]
fn every_filter_is_in_the_order_and_on_one_page() {
    let (_server, address, mut client) = start_with_client(config());
    for number in 0..1500 {
        client.say(&["BF.RESERVE", &format!("k{number:04}"), "0.01", "10"]);
    }
    until(address, "/api/filters.json?limit=0", |data| data["matching"] == 1500);
    let mut seen = Vec::new();
    for offset in (0..1500).step_by(100) {
        let data = data_of(address, &format!("/api/filters.json?sort=key&offset={offset}"));
        seen.extend(keys_of(&data));
    }
    assert!(seen.len() == 1500 && seen.is_sorted(), "{}", seen.len());
}

#[test]
fn a_filter_that_is_not_among_the_worst_has_samples_while_its_page_is_open() {
    let (_server, address, mut client) = start_with_client(config());
    for number in 0..1100 {
        client.say(&["BF.RESERVE", &format!("k{number}"), "0.01", "10"]);
    }
    until(address, "/api/filters.json?limit=0", |data| data["matching"] == 1100);
    let samples = |number: usize| {
        let data = data_of(address, &format!("/api/filter.json?key=k{number}"));
        data["samples"].as_array().unwrap().len()
    };
    let mut without: Vec<usize> = (0..1100).collect();
    wait_until("each filter has two samples", || {
        without.retain(|number| samples(*number) < 2);
        without.is_empty()
    });
}

#[test]
fn filters_that_refuse_adds_are_full_and_counted() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["BF.RESERVE", "bloom", "0.01", "10", "NONSCALING"]);
    client.say(&["BF.RESERVE", "grows", "0.01", "10"]);
    client.say(&["CF.RESERVE", "cuckoo", "8"]);
    for item in 0..60 {
        for (command, key) in [("BF.ADD", "bloom"), ("BF.ADD", "grows"), ("CF.ADD", "cuckoo")] {
            client.say(&[command, key, &item.to_string()]);
        }
    }
    let is_full =
        |key: &str| data_of(address, &format!("/api/filter.json?key={key}"))["full"] == true;
    assert!(is_full("bloom") && !is_full("grows") && !is_full("cuckoo"));
    until(address, "/api/overview.json", |data| data["full"] == 1);
    // From now on the limit refuses every add.
    client.say(&["CONFIG", "SET", "cf-max-expansions", "2"]);
    assert!(matches!(client.say(&["CF.ADD", "cuckoo", "another"]), Reply::Error(_)));
    assert!(is_full("cuckoo"));
    // A round of the sampler that began before the filters existed can lack some of them.
    until(address, "/api/filters.json", |data| {
        let full = |number: usize| data["filters"][number]["full"].as_bool();
        [full(0), full(1), full(2)] == [Some(true), Some(true), Some(false)]
    });
    until(address, "/api/overview.json", |data| data["full"] == 2);
    let line = "tamis_filter_full{key=\"cuckoo\",kind=\"cuckoo (RedisBloom)\"} 1";
    assert!(get(address, "/metrics").body.contains(line));
}

#[test]
fn kinds_have_stable_ids() {
    let (_server, address, mut client) = start_with_client(config());
    for (line, name) in [
        ("BF.RESERVE k 0.01 10", "bloom-growing"),
        ("BF.RESERVE k 0.01 10 NONSCALING", "bloom"),
        ("CF.RESERVE k 100", "cuckoo"),
        ("TM.RESERVE k KIND cuckoo ITEMS 10 RATE 0.01", "cuckoo"),
        ("TM.RESERVE k KIND split-block ITEMS 10 RATE 0.01", "bloom"),
        ("TM.RESERVE k KIND classic ITEMS 10 RATE 0.01", "bloom-classic"),
        ("TM.RESERVE k KIND counting ITEMS 10 RATE 0.01", "counting"),
        ("TM.RESERVE k KIND growing ITEMS 10 RATE 0.01", "growing"),
        ("TM.RESERVE k KIND window WINDOW 10 ITEMS RATE 0.01", "window"),
    ] {
        client.say(&["DEL", "k"]);
        client.ask(line);
        assert_eq!(data_of(address, "/api/filter.json?key=k")["kind_id"], name, "{line}");
    }
}

#[test]
fn the_fill_of_a_window_relates_to_the_items_that_it_holds_when_full() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["TM.RESERVE", "w", "KIND", "window", "WINDOW", "900", "ITEMS", "RATE", "0.01"]);
    client.list(&with_items("TM.MADD w", 0..5000));
    let data = data_of(address, "/api/filter.json?key=w");
    let (items, layer) = (data["items"].as_f64().unwrap(), &data["layers"][0]);
    assert_eq!((&data["capacity"], &layer["capacity"]), (&900.into(), &data["held_capacity"]));
    let capacity = layer["capacity"].as_f64().unwrap();
    assert!(items > 900.0 && items <= capacity * 1.05, "{items} of {capacity}");
    let curve = data["rate_curve"].as_array().unwrap();
    assert!(curve.last().unwrap()[0].as_f64() >= Some(items));
}

#[test]
fn a_saturated_filter_has_no_number_of_items() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["TM.RESERVE", "k", "KIND", "classic", "ITEMS", "10", "RATE", "0.01"]);
    client.list(&with_items("TM.MADD k", 0..1000));
    let data = data_of(address, "/api/filter.json?key=k");
    assert_eq!((&data["items"], &data["layers"][0]["items"]), (&Json::Null, &Json::Null));
    assert_eq!((&data["rate_now"], &data["over_rate"]), (&1.0.into(), &true.into()));
}

#[test]
fn the_history_has_latency_errors_and_slow_commands() {
    let (_server, address, mut client) = start_with_client(Config { slow_micros: 0, ..config() });
    let sum = |data: &Json, name: &str| -> u64 {
        data[name].as_array().unwrap().iter().filter_map(Json::as_u64).sum()
    };
    // Later readings are compared with the first one.
    until(address, "/api/history.json", |data| data["end_millis"] != 0);
    for _ in 0..10 {
        client.say(&["BF.ADD", "k", "a"]);
        client.say(&["TM.ADD", "none", "a"]);
    }
    let data = until(address, "/api/history.json?step=second", |data| sum(data, "commands") >= 20);
    assert_eq!((sum(&data, "errors"), data["step_millis"].as_u64()), (10, Some(1000)));
    assert!(sum(&data, "slow") >= 20, "{data}");
    let times = data["p99_micros"].as_array().unwrap();
    let micros: Vec<f64> = times.iter().filter_map(Json::as_f64).collect();
    assert!(!micros.is_empty() && micros.iter().all(|it| *it > 0.0), "{data}");
    assert_eq!(data_of(address, "/api/history.json?step=minute")["step_millis"], 60_000);
    assert_eq!(get(address, "/api/history.json?step=hour").status, 400);
}

#[test]
fn plans_are_those_of_the_command() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["HELLO", "3"]);
    let data = data_of(address, "/api/plan.json?items=1000000&rate=0.01");
    let plans = data["plans"].as_array().unwrap();
    let rows = client.list(&["TM.PLAN", "ITEMS", "1000000", "RATE", "0.01"]);
    assert_eq!((plans.len(), plans.len()), (rows.len(), 6));
    for (plan, row) in plans.iter().zip(rows) {
        let Reply::Map(fields) = row else { panic!() };
        let bytes = fields.iter().find(|field| field.0 == Reply::simple("bytes")).unwrap();
        assert_eq!(Reply::Integer(plan["bytes"].as_i64().unwrap()), bytes.1);
    }
    assert_eq!(plans.iter().filter(|plan| plan["is_usual"] == true).count(), 1);
    for query in [
        "items=0&rate=0.01",
        "items=1&rate=2",
        "items=1&rate=nan",
        "items=-5&rate=0.1",
        "items=99999999999999999999&rate=0.01",
        "items=9000000000000000000&rate=1e-300",
        "items=10",
        "rate=%00",
        "items=1&rate=0.1&memory=5",
    ] {
        let answer = get(address, &format!("/api/plan.json?{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
        assert!(json(&answer)["error"].is_string());
    }
    for query in ["items=1&rate=0.99", "items=1&rate=1e-300", "items=9223372036854775807&rate=0.5"]
    {
        let answer = get(address, &format!("/api/plan.json?{query}"));
        assert!(matches!(answer.status, 200 | 400), "{query}");
    }
}

#[test]
fn the_time_until_over_target_is_shown() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["TM.RESERVE", "k", "KIND", "classic", "ITEMS", "1000000", "RATE", "0.01"]);
    let mut item = 0;
    let (days, data) = wait_for("the time until the filter is over its rate", || {
        for _ in 0..50 {
            item += 1;
            client.say(&["TM.ADD", "k", &item.to_string()]);
        }
        let data = data_of(address, "/api/filter.json?key=k");
        data["days_until_over"].as_f64().map(|days| (days, data))
    });
    let adds = data["adds_per_second"].as_f64().unwrap();
    let expected = data["headroom_items"].as_f64().unwrap() / adds / 86_400.0;
    assert!(adds > 10.0 && (days / expected - 1.0).abs() < 0.01, "{data}");
    assert!(data["samples"].as_array().unwrap().len() >= 2);
}

#[test]
fn metrics_count_what_happens() {
    let (_server, address, mut client) = start_with_client(config());
    client.say(&["BF.ADD", "k", "a"]);
    let answer = get(address, "/metrics");
    assert!(answer.body.contains("\ntamis_connected_clients 1\n"), "{}", answer.body);
    assert!(answer.body.ends_with('\n'));
}

#[test]
fn the_server_ends_while_a_page_is_open() {
    let (server, address) = start(config());
    let _idle = connect(address);
    get(address, "/");
    let began = Instant::now();
    server.stop();
    in_time("the server", move || server.wait()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(8));
    assert!(try_connect(address).is_err());
}
