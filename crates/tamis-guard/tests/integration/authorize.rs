//! The guard that another proxy asks: questions, answers, and configurations.

use tamis_guard::{Config, Guard};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::proxy::support::{ask, in_time, read_all, wait_until};

/// Returns a configuration without `[proxy]`. `route` contains further fields of the route.
fn config(proxy: &str, route: &str) -> String {
    format!(
        "[authorize]\nlisten = \"127.0.0.1:0\"\nproxy = \"{proxy}\"\n\
         [ids.products]\nsource = {{ kind = \"lines\", path = \"ids.txt\" }}\n\
         [[route]]\npath = \"/p/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n{route}\n"
    )
}

/// A guard that answers questions until the test ends. The ids 1, 2, 3 and 7 exist.
struct Running {
    address: std::net::SocketAddr,
    handle: tamis_guard::GuardHandle,
    stop: oneshot::Sender<()>,
    task: JoinHandle<usize>,
    folder: tempfile::TempDir,
}

impl Running {
    async fn start(proxy: &str, route: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ids.txt"), "1\n2\n3\n7\n").unwrap();
        let path = folder.path().join("guard.toml");
        let guard =
            Guard::start(Config::parse(&config(proxy, route), path).unwrap()).await.unwrap();
        assert!(guard.addresses().is_empty());
        let (address, handle) = (guard.authorize_addresses()[0], guard.handle());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(guard.run(async { _ = stopped.await }));
        wait_until("the ids are synced", async || {
            handle.sets()[0].ids.state() == tamis_guard::SyncState::Synced
        })
        .await;
        Self { address, handle, stop, task, folder }
    }

    async fn connect(&self) -> tokio::net::TcpStream {
        tokio::net::TcpStream::connect(self.address).await.unwrap()
    }

    /// Returns the answer to a question with these header lines.
    async fn ask(&self, head: &str) -> String {
        ask(&mut self.connect().await, format!("{head}host: guard\r\n\r\n")).await
    }

    /// Returns the answer to the question of nginx about a request.
    async fn nginx(&self, method: &str, target: &str) -> String {
        let headers = format!("X-Original-URI: {target}\r\nX-Original-Method: {method}\r\n");
        self.ask(&format!("GET /_guard HTTP/1.0\r\nconnection: keep-alive\r\n{headers}")).await
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn reason(answer: &str) -> Option<&str> {
    let (_, rest) = answer.split_once("\r\nx-tamis-guard: ")?;
    rest.split('\r').next()
}

#[tokio::test]
async fn nginx_gets_200_or_403_with_the_reason() {
    let running = Running::start("nginx", "methods = [\"GET\"]").await;
    for (method, target, expected, why) in [
        ("GET", "/p/7", "200", Some("known")),
        ("GET", "/p/7?a=1", "200", Some("known")),
        ("HEAD", "/p/8", "403", Some("absent")),
        ("GET", "/p/8", "403", Some("absent")),
        ("GET", "/p/%38", "403", Some("absent")),
        ("GET", "//P/x/../8/", "403", Some("absent")),
        ("GET", "http://shop.example/p/8", "403", Some("absent")),
        ("GET", "https://shop.example/p/7", "200", Some("known")),
        ("GET", "/p/x", "403", Some("not_an_id")),
        ("POST", "/p/8", "200", None),
        ("GET", "/q/8", "200", None),
        ("OPTIONS", "*", "200", None),
        // These texts are not valid targets.
        ("GET", "p/7", "403", None),
        ("GET", "", "403", None),
        ("GET", "/p/8#/../7", "403", None),
        ("GET", "http://a?/p/8", "403", None),
        ("G T", "/p/7", "403", None),
    ] {
        let answer = running.nginx(method, target).await;
        assert_eq!(
            (status(&answer), reason(&answer)),
            (expected, why),
            "{method} {target}: {answer}"
        );
        assert!(
            answer.ends_with("\r\ncontent-length: 0\r\n\r\n")
                || answer.contains("content-length: 0\r\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn other_proxies_get_the_refusal_of_the_route() {
    for (proxy, target, method) in [
        ("traefik", "X-Forwarded-Uri", "X-Forwarded-Method"),
        ("caddy", "X-Forwarded-Uri", "X-Forwarded-Method"),
        ("haproxy", "X-Original-URI", "X-Original-Method"),
    ] {
        let running = Running::start(proxy, "refusal = { message = \"产品不存在!\" }").await;
        let ask = async |id: &str| {
            running
                .ask(&format!("GET / HTTP/1.1\r\n{target}: /p/{id}?a=1\r\n{method}: PUT\r\n"))
                .await
        };
        assert_eq!(status(&ask("7").await), "200");
        let refusal = ask("8").await;
        assert_eq!((status(&refusal), reason(&refusal)), ("404", Some("absent")));
        assert!(
            refusal.ends_with("\r\n\r\n{\"code\":404,\"message\":\"产品不存在!\"}"),
            "{refusal}"
        );
    }
}

#[tokio::test]
async fn envoy_asks_with_the_request_itself() {
    let running = Running::start("envoy", "").await;
    for (line, expected) in [("GET /p/7", "200"), ("DELETE /p/8?a=1", "404"), ("OPTIONS *", "200")]
    {
        let answer = running.ask(&format!("{line} HTTP/1.1\r\nX-Original-URI: /p/7\r\n")).await;
        assert_eq!(status(&answer), expected, "{line}");
    }
}

#[tokio::test]
async fn a_body_that_envoy_passes_on_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ids.txt"), "7\n").unwrap();
    let text = config("envoy", "missing = \"refuse\"\nmax_body = \"100\"")
        .replace("proxy = \"envoy\"", "proxy = \"envoy\"\nbodies = true")
        .replace("/p/{id}", "/cart")
        .replace("path:id", "json:/id");
    let config = Config::parse(&text, folder.path().join("guard.toml")).unwrap();
    let guard = Guard::start(config).await.unwrap();
    let (address, handle) = (guard.authorize_addresses()[0], guard.handle());
    tokio::spawn(guard.run(std::future::pending()));
    wait_until("the ids are synced", async || {
        handle.sets()[0].ids.state() == tamis_guard::SyncState::Synced
    })
    .await;
    let long = format!("{{\"id\":7,\"text\":\"{}\"}}", "x".repeat(100));
    for (body, expected) in
        [("{\"id\":7}", "200"), ("{\"id\":8}", "404"), ("", "404"), ("{", "404"), (&*long, "413")]
    {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let head =
            format!("POST /cart HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
        let answer = ask(&mut stream, head + body).await;
        assert_eq!(status(&answer), expected, "{body}: {answer}");
    }
    // The other proxy disconnects in the middle of a body.
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"POST /cart HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{")
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    _ = read_all(&mut stream).await;
}

#[tokio::test]
async fn a_question_without_the_request_is_an_error_of_the_proxy() {
    let running = Running::start("nginx", "").await;
    let uri = "X-Original-URI: /p/7\r\n";
    let method = "X-Original-Method: GET\r\n";
    for (headers, expected) in [
        (String::new(), "nginx has no header x-original-uri"),
        (uri.to_owned(), "nginx has no header x-original-method"),
        (format!("X_Original_URI: /p/7\r\n{method}"), "nginx has no header x-original-uri"),
        (format!("{uri}{uri}{method}"), "nginx has more than one header x-original-uri"),
        (format!("{uri}{method}{method}"), "nginx has more than one header x-original-method"),
    ] {
        let answer = running.ask(&format!("GET / HTTP/1.1\r\n{headers}")).await;
        assert_eq!(status(&answer), "500", "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_shadow_route_allows_all_requests_and_counts_refusals() {
    let running = Running::start("traefik", "shadow = true").await;
    let question = "GET / HTTP/1.1\r\nX-Forwarded-Uri: /p/8\r\nX-Forwarded-Method: GET\r\n";
    let answer = running.ask(question).await;
    assert_eq!((status(&answer), reason(&answer)), ("200", Some("absent")));
    let layer = running.handle.guard();
    assert_eq!(layer.routes()[0].counters.refused(tamis_guard::RefuseReason::Absent), 1);
}

/// A proxy takes the status 204 of a preflight as a permission, so a preflight gets the refusal.
#[tokio::test]
async fn a_preflight_for_an_absent_id_is_no_permission() {
    let cors = "refusal = { cors = { origins = \"*\" } }";
    let running = Running::start("traefik", cors).await;
    let preflight = "X-Forwarded-Method: OPTIONS\r\nOrigin: https://a.example\r\n\
                     Access-Control-Request-Method: GET\r\n";
    let ask = async |id: &str| {
        running.ask(&format!("GET / HTTP/1.1\r\nX-Forwarded-Uri: /p/{id}\r\n{preflight}")).await
    };
    assert_eq!(status(&ask("7").await), "200");
    let refusal = ask("8").await;
    assert_eq!(status(&refusal), "404");
    assert!(refusal.contains("access-control-allow-origin: *"), "{refusal}");
}

#[tokio::test]
async fn a_reload_changes_the_routes_and_a_stop_finishes_the_answers() {
    let running = Running::start("nginx", "").await;
    assert_eq!(status(&running.nginx("GET", "/p/8").await), "403");
    let text = config("nginx", "").replace("/p/{id}", "/q/{id}");
    let path = running.folder.path().join("guard.toml");
    let config = Config::parse(&text, &path).unwrap();
    assert_eq!(running.handle.reload(config).unwrap(), None);
    assert_eq!(status(&running.nginx("GET", "/p/8").await), "200");
    assert_eq!(status(&running.nginx("GET", "/q/8").await), "403");
    let other = Config::parse(&text.replace("\"nginx\"", "\"caddy\""), &path).unwrap();
    let message = running.handle.reload(other).unwrap().expect("a restart is needed");
    assert!(message.contains("[authorize]"), "{message}");
    // An idle connection does not delay the stop.
    let mut idle = running.connect().await;
    let question =
        "GET / HTTP/1.1\r\nhost: a\r\nX-Original-URI: /q/8\r\nX-Original-Method: GET\r\n\r\n";
    assert_eq!(status(&ask(&mut idle, question).await), "403");
    running.stop.send(()).unwrap();
    assert_eq!(in_time("the guard stops", running.task).await.unwrap(), 0);
    assert_eq!(read_all(&mut idle).await, "");
}

#[tokio::test]
async fn a_thousand_connections_of_a_proxy_are_served() {
    let running = Running::start("nginx", "").await;
    let mut streams = Vec::new();
    for _ in 0..1000 {
        streams.push(running.connect().await);
    }
    let question =
        "GET / HTTP/1.1\r\nhost: a\r\nX-Original-URI: /p/8\r\nX-Original-Method: GET\r\n\r\n";
    for round in 0..2 {
        for stream in &mut streams {
            assert_eq!(status(&ask(stream, question).await), "403", "round {round}");
        }
    }
}

#[tokio::test]
async fn hostile_questions_get_an_error_or_an_answer() {
    let running = Running::start("envoy", "").await;
    let long = format!("GET /p/{} HTTP/1.1\r\nhost: a\r\n\r\n", "1".repeat(100_000));
    for bytes in ["\r\n\r\n", "GET\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\0\0\0\0", &long]
    {
        let mut stream = running.connect().await;
        _ = stream.write_all(bytes.as_bytes()).await;
        stream.shutdown().await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(status(&running.ask("GET /p/7 HTTP/1.1\r\n").await), "200");
}

#[test]
fn settings_that_need_responses_or_bodies_are_refused() {
    let message = |text: &str| Config::parse(text, "guard.toml").expect_err(text).to_string();
    for (proxy, route, expected) in [
        ("nginx", "single_flight = true", "route 1: single_flight: needs the responses"),
        (
            "traefik",
            "refusal = { status = 200 }",
            "route 1: refusal.status: traefik takes a status",
        ),
        ("apache", "", "unknown variant `apache`, expected one of `nginx`"),
    ] {
        let text = message(&config(proxy, route));
        assert!(text.contains(expected), "{text}");
        assert!(text.starts_with("guard.toml:") && !text.contains('\n'), "{text}");
    }
    assert!(Config::parse(&config("nginx", "refusal = { status = 200 }"), "guard.toml").is_ok());
    let good = config("nginx", "");
    for (from, to, expected) in [
        (
            "path:id",
            "json:/id",
            "route 1: ids: the ids are in the body, and nginx passes no bodies",
        ),
        ("\"nginx\"", "\"nginx\"\nbodies = true", "authorize.bodies: nginx passes no bodies on"),
        (
            "\"nginx\"",
            "\"nginx\"\nmax_connections = 0",
            "authorize: max_connections must be above 0",
        ),
        ("127.0.0.1:0", "here", "authorize.listen: \"here\" is not an address"),
        ("listen = \"127.0.0.1:0\"", "listen = []", "authorize.listen: write at least one address"),
        ("proxy = \"nginx\"", "", "missing field `proxy`"),
        (
            "[ids.products]",
            "[ids.products]\nnegative = { requests = 5 }",
            "ids.products.negative: needs",
        ),
        ("\"lines\"", "\"filter\"", "set trust = true"),
        (
            "[[route]]",
            "[[learn]]\npath = \"/p\"\nplaces = \"answer json:/id\"\nids = \"products\"\n[[route]]",
            "learn 1: needs the responses of the program",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let text = message(&good.replacen(from, to, 1));
        assert!(text.contains(expected), "{to}: {text}");
    }
    let envoy = config("envoy", "").replace("path:id", "json:/id").replace("/{id}", "");
    assert!(message(&envoy).contains("set authorize.bodies = true, and let envoy"), "{envoy}");
    // With a table `[proxy]`, the guard sees responses.
    let both = format!("proxy = {{ upstream = \"http://127.0.0.1:9\" }}\n{good}");
    assert!(
        Config::parse(&both.replace("[[route]]", "[[route]]\nsingle_flight = true"), "g").is_ok()
    );
    let (_, without) = good.split_once("[ids").unwrap();
    assert!(message(&format!("[ids{without}")).contains("write [proxy] for a guard that forwards"));
}
