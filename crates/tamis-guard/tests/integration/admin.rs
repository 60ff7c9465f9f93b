//! The admin server of a guard.

use std::net::SocketAddr;
use std::path::Path;

use tamis_guard::{Config, Guard, GuardHandle, GuardSet, SyncState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::proxy::support::{in_time, read_all, read_message, upstream, wait_until};

const CONFIG: &str = r#"
proxy = { listen = "127.0.0.1:0", upstream = "http://UPSTREAM" }

[admin]
listen = "127.0.0.1:0"
token = "operator"

[ids.products]
source = { kind = "lines", path = "ids.txt", quiet = "20ms" }
push = { token = "program" }
interval = "20ms"

[ids."odd \" name"]

[[route]]
name = "a \"route\""
path = "/products/{id}"
methods = ["GET"]
ids = { "path:id" = "products" }
single_flight = true

[[learn]]
path = "/products"
places = "answer json:/data/id"
ids = "products"
"#;

struct Running {
    proxy: SocketAddr,
    admin: SocketAddr,
    handle: GuardHandle,
    _folder: tempfile::TempDir,
}

/// Starts a guard in front of a shop that has no product, but creates number 77 for each POST.
async fn start() -> Running {
    let upstream = upstream(|mut stream| async move {
        while let Some(request) = read_message(&mut stream).await {
            let (status, body) = match request.starts_with("POST") {
                true => ("201 Created", r#"{"data":{"id":77}}"#),
                false => ("404 Not Found", "{}"),
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.txt"), "1\n2\n").unwrap();
    let text = CONFIG.replace("UPSTREAM", &upstream.to_string());
    let config = Config::parse(&text, folder.path().join("guard.toml")).unwrap();
    let guard = Guard::start(config).await.unwrap();
    let guard = guard.with_status("shop", || serde_json::json!({ "open": true }));
    let (proxy, admin) = (guard.addresses()[0], guard.admin_address().unwrap());
    let handle = guard.handle();
    tokio::spawn(guard.run(std::future::pending()));
    let is_synced =
        |set: &GuardSet| set.ids.generations().items() == 2 && set.ids.state() == SyncState::Synced;
    wait_until("the set is synced", async || is_synced(&handle.sets()[1])).await;
    assert_eq!(handle.sets()[1].name, "products");
    Running { proxy, admin, handle, _folder: folder }
}

/// Returns the status and the body of an answer.
async fn ask(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request =
        format!("{head}\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, &format!("GET {path} HTTP/1.1"), "").await
}

async fn post(address: SocketAddr, path: &str, token: &str, body: &str) -> (u16, String) {
    ask(address, &format!("POST {path} HTTP/1.1\r\nauthorization: Bearer {token}"), body).await
}

#[tokio::test]
async fn health_and_readiness_are_told() {
    let running = start().await;
    assert_eq!(get(running.admin, "/healthz").await, (200, "ok\n".to_owned()));
    let (status, body) = get(running.admin, "/readyz").await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"products\":\"synced\""), "{body}");
    let ids = running.handle.sets()[1].ids.clone();
    // The source sets the state again at its next read.
    wait_until("the guard is not ready", async || {
        ids.set_state(tamis_guard::SyncState::Stale);
        let (status, body) = get(running.admin, "/readyz").await;
        assert!(status == 200 || body.contains("\"products\":\"stale\""), "{body}");
        status == 503
    })
    .await;
    assert_eq!(get(running.admin, "/nothing").await.0, 404);
    assert_eq!(get(running.admin, "/console/../Cargo.toml").await.0, 404);
    assert_eq!(ask(running.admin, "DELETE /ids/products HTTP/1.1", "").await.0, 404);
}

#[tokio::test]
async fn the_console_is_one_page_whose_headers_restrict_the_browser() {
    let running = start().await;
    let head = async |path: &str, more: &str| {
        let mut stream = TcpStream::connect(running.admin).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut stream).await
    };
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/console/main.js", "text/javascript; charset=utf-8"),
        ("/console/style.css", "text/css; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
        ("/api/status", "application/json"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
    ] {
        let answer = head(path, "").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(answer.contains(&format!("\r\ncontent-type: {kind}\r\n")), "{path}: {answer}");
        assert!(answer.contains("\r\ncontent-security-policy: default-src 'self'; "), "{path}");
        assert!(answer.contains("\r\nx-frame-options: DENY\r\n"), "{path}");
        for secret in ["operator", "\"program\""] {
            assert!(!answer.contains(secret), "{path} has {secret}");
        }
    }
    let page = head("/", "").await;
    assert!(page.contains("<script type=\"module\" src=\"/console/main.js\">"), "{page}");
    let tag = page.split("\r\netag: ").nth(1).unwrap().split('\r').next().unwrap();
    let again = head("/", &format!("if-none-match: {tag}\r\n")).await;
    assert!(again.starts_with("HTTP/1.1 304 "), "{again}");
}

#[tokio::test]
async fn programs_with_the_token_push_ids() {
    let running = start().await;
    let push = async |token: &'static str, body: &str| {
        post(running.admin, "/ids/products", token, body).await
    };
    assert_eq!(get(running.proxy, "/products/5").await.0, 404);
    let (status, body) = push("program", "5\n6\nx\n").await;
    assert_eq!((status, body.trim()), (200, r#"{"deleted":0,"inserted":2,"invalid":1}"#));
    let knows = |id: &str| running.handle.sets()[1].ids.generations().contains(id.as_bytes());
    assert!(knows("5") && knows("6"));
    let (status, body) = push("program", r#"{"insert":["7",8],"delete":[5]}"#).await;
    assert_eq!((status, body.trim()), (200, r#"{"deleted":1,"inserted":2,"invalid":0}"#));
    assert!(knows("7") && knows("8") && !knows("5"));
    for (token, body, expected) in [
        ("wrong", "9", 401),
        ("", "9", 401),
        ("operator", "9", 401),
        ("program", "{\"insert\":9}", 400),
        ("program", "{\"insert\":[[9]]}", 400),
        ("program", "{\"insrt\":[9]}", 400),
        ("program", "{", 400),
    ] {
        let (status, answer) = push(token, body).await;
        assert_eq!(status, expected, "{token} {body}: {answer}");
    }
    assert!(!knows("9"));
    for set in ["nothing", "odd%20%22%20name", "", "products/x"] {
        let path = format!("/ids/{set}");
        assert_eq!(post(running.admin, &path, "program", "9").await.0, 401, "{set}");
    }
    // Larger than the limit, and without a length.
    let mut stream = TcpStream::connect(running.admin).await.unwrap();
    let head = "POST /ids/products HTTP/1.1\r\nhost: a\r\nauthorization: Bearer program\r\n\
        content-length: 99999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    in_time("the answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn the_operator_rebuilds_a_set() {
    let running = start().await;
    assert_eq!(post(running.admin, "/rebuild/products", "program", "").await.0, 401);
    assert_eq!(post(running.admin, "/rebuild/nothing", "operator", "").await.0, 404);
    assert_eq!(post(running.admin, "/rebuild/products", "operator", "").await.0, 202);
    let generations = || running.handle.sets()[1].status.as_ref().unwrap().generations;
    wait_until("the set is built again", async || generations() == 2).await;
}

#[tokio::test]
async fn the_metrics_follow_the_format_and_count_each_request() {
    let running = start().await;
    assert_eq!(get(running.proxy, "/products/1").await.0, 404);
    assert_eq!(get(running.proxy, "/products/500").await.0, 404);
    assert_eq!(ask(running.proxy, "POST /products HTTP/1.1", "{}").await.0, 201);
    assert_eq!(get(running.proxy, "/products/77").await.0, 404);
    let (status, text) = get(running.admin, "/metrics").await;
    assert_eq!(status, 200);
    let mut known = std::collections::HashSet::new();
    let mut family = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(known.insert(name) && !help.is_empty(), "{line}");
            family = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(name.split('{').next(), Some(family), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    for line in [
        r#"tamis_guard_items{ids="products"} 3"#,
        r#"tamis_guard_state{ids="products",state="synced"} 1"#,
        r#"tamis_guard_state{ids="odd \" name",state="warming"} 1"#,
        r#"tamis_guard_requests_total{route="a \"route\"",verdict="refuse",reason="absent"} 1"#,
        r#"tamis_guard_requests_total{route="a \"route\"",verdict="pass",reason="known"} 2"#,
        r#"tamis_guard_false_positives_total{route="a \"route\""} 2"#,
        r#"tamis_guard_observed_rate{route="a \"route\""} 0.6666666666666666"#,
        r#"tamis_guard_learnt_ids_total{rule="/products"} 1"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
    }
    let (status, body) = get(running.admin, "/api/status").await;
    assert_eq!(status, 200);
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(json["ids"]["products"]["items"], 3, "{body}");
    assert_eq!(json["routes"][0]["refused"]["absent"], 1, "{body}");
    assert_eq!(json["learn"][0]["learnt"], 1, "{body}");
    assert_eq!(json["routes"][0]["ids"], serde_json::json!(["products"]), "{body}");
    let observed = json["ids"]["products"]["observed_rate"].as_f64().unwrap();
    assert!((observed - 2.0 / 3.0).abs() < 1e-9, "{body}");
    assert!(json["uptime_seconds"].as_f64().unwrap() > 0.0, "{body}");
    assert_eq!(json["shop"], serde_json::json!({ "open": true }), "{body}");
}

#[tokio::test]
async fn a_second_admin_server_on_the_same_address_is_refused() {
    let running = start().await;
    let text = format!(
        "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://127.0.0.1:9\" }}\n\
         admin = {{ listen = \"{}\" }}\n",
        running.admin
    );
    let config = Config::parse(&text, Path::new("guard.toml")).unwrap();
    let error = Guard::start(config).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on {}", running.admin)), "{error}");
}
