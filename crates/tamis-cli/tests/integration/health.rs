//! `tamis health` with servers in each state.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use tamis_testing::{CommandExt as _, accept, join};

use crate::program::{Ended, tamis};
use crate::serve::with_console;
use crate::server::Program;

/// Runs `tamis health` with arguments.
fn health(arguments: &str) -> Ended {
    let line = format!("health {arguments}");
    Ended::of(&line, tamis(&line).env_remove("REDISCLI_AUTH").run())
}

/// Starts a server that accepts one connection.
fn server(answer: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, std::thread::spawn(move || answer(accept("tamis health", &listener))))
}

/// Returns the result for a server that reads a request, sends `reply`, and then closes the connection.
fn health_of(url: &str, reply: impl Into<Vec<u8>>) -> Ended {
    let reply = reply.into();
    let (address, serving) = server(move |mut stream| {
        // An HTTP client does not accept a response before its request.
        tamis_testing::read(&mut stream, &mut [0; 1024]);
        // The client may close the connection before the server has sent the whole reply.
        _ = stream.write_all(&reply);
        _ = stream.shutdown(std::net::Shutdown::Write);
        tamis_testing::read_to_end(&mut stream);
    });
    let ended = health(&url.replace("SERVER", &address.to_string()));
    join("the server", serving);
    Ended { stderr: ended.stderr.replace(&address.to_string(), "SERVER"), ..ended }
}

#[test]
fn a_running_server_is_healthy() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, address) = with_console(dir.path(), tamis("serve"));
    for path in ["", "/healthz", "/"] {
        health(&format!("http://{address}{path}"))
            .gives(0, format!("healthy: http://{address}{path}\n"));
    }
    health(&format!("--quiet http://{address}")).gives(0, "");
    let ended = health(&format!("http://{address}/api/none"));
    ended.warns(1, "/api/none: status 404 Not Found: {\"error\":");
    ended.prints("");
}

#[test]
fn a_server_that_wants_a_password_is_healthy() {
    let dir = tempfile::tempdir().unwrap();
    let program = Program::start(dir.path(), &["--requirepass", "se/cret"]);
    let address = program.address;
    health(&format!("redis://{address}")).gives(0, format!("healthy: redis://{address}\n"));
    health(&format!("valkey://:se%2Fcret@{address}/0"))
        .gives(0, format!("healthy: valkey://{address}/0\n"));
    let ended = health(&format!("redis://:wrong@{address}"));
    ended.warns(1, "the server replies WRONGPASS");
    assert!(!ended.stderr.contains(":wrong"), "{ended:?}");
    let line = format!("health redis://{address}");
    Ended::of(&line, tamis(&line).env("REDISCLI_AUTH", "wrong").run()).warns(1, "WRONGPASS");
    Ended::of(&line, tamis(&line).env("REDISCLI_AUTH", "se/cret").run()).has_status(0);
}

#[cfg(unix)]
#[test]
fn a_server_that_cannot_keep_changes_is_not_healthy_for_a_probe() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, address) = crate::serve::with_failed_log(dir.path());
    let ended = health(&format!("http://{address}"));
    ended.warns(1, "status 503 Service Unavailable: the log cannot be written: ");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
}

#[test]
fn the_reply_of_a_redis_server_decides() {
    for (reply, status, reason) in [
        ("+PONG\r\n", 0, ""),
        ("-NOAUTH Authentication required.\r\n", 0, ""),
        ("-NOPERM User x has no permissions to run the 'ping' command\r\n", 0, ""),
        ("-LOADING data\r\n", 1, "the server replies LOADING data"),
        ("-MISCONF disk\r\n", 1, "the server replies MISCONF disk"),
        ("-ERR max number of clients reached\r\n", 1, "replies ERR max number of clients reached"),
        ("HTTP/1.1 400 Bad Request\r\n", 1, "not of a Redis server: HTTP/1.1 400 Bad Request"),
        ("\x1b[31m\r\n", 1, "not of a Redis server: \\u{1b}[31m"),
        ("", 1, "closed the connection without a reply"),
    ] {
        let ended = health_of("redis://SERVER", reply);
        assert_eq!(ended.status, status, "{reply:?}: {ended:?}");
        assert!(ended.stderr.contains(reason), "{reply:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), status as usize, "{ended:?}");
    }
}

#[test]
fn the_status_of_a_response_decides() {
    for (response, status, reason) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", 0, ""),
        (
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 13\r\n\r\nloading\nmore\n",
            1,
            "tamis: http://SERVER: status 503 Service Unavailable: loading\n",
        ),
        ("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n", 1, "status 302 Found\n"),
        ("+PONG\r\n", 1, "tamis: http://SERVER: the exchange failed: "),
        ("", 1, "tamis: http://SERVER: the exchange failed: "),
    ] {
        let ended = health_of("http://SERVER", response);
        assert_eq!(ended.status, status, "{response:?}: {ended:?}");
        assert!(ended.stderr.contains(reason), "{response:?}: {ended:?}");
    }
}

#[test]
fn a_huge_reply_is_read_only_in_part() {
    let huge = || "x".repeat(32 << 20);
    for (url, reply) in [
        ("redis://SERVER", huge()),
        ("http://SERVER", huge()),
        ("http://SERVER", format!("HTTP/1.1 500 Internal Server Error\r\n\r\n{}", huge())),
        ("http://SERVER", format!("HTTP/1.1 200 OK\r\nx: {}", huge())),
    ] {
        let ended = health_of(&format!("{url} --timeout 30s"), reply);
        ended.has_status(1);
        assert!(ended.stderr.len() < 400, "{url}: {} bytes", ended.stderr.len());
    }
}

#[test]
fn a_silent_server_exceeds_the_timeout() {
    for url in ["redis", "http"] {
        // The system accepts the connection, and the test never accepts it.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{url}://{}", listener.local_addr().unwrap());
        let ended = health(&format!("{url} --timeout 50ms"));
        ended.says(1, &format!("tamis: {url}: no response within 50ms\n"));
    }
}

#[test]
fn a_slow_server_exceeds_the_timeout() {
    let (address, serving) = server(|mut stream| {
        // The server sends a byte every few milliseconds until the client has ended.
        while stream.write_all(b"+").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let ended = health(&format!("redis://{address} --timeout 50ms"));
    ended.says(1, &format!("tamis: redis://{address}: no response within 50ms\n"));
    join("the server", serving);
}

#[test]
fn a_refused_connection_is_not_healthy() {
    for scheme in ["redis", "http"] {
        // No program can connect to port 0.
        let url = format!("{scheme}://127.0.0.1:0");
        let ended = health(&url);
        ended.warns(1, &format!("tamis: {url}: cannot connect: "));
        ended.prints("");
    }
}

#[test]
fn a_wrong_url_is_a_wrong_call() {
    for (url, reason) in [
        ("127.0.0.1:8379", "is not a URL: write http://HOST:PORT/PATH or redis://HOST:PORT"),
        ("ftp://127.0.0.1", "is not a URL"),
        ("http://", "is not a URL"),
        ("http://a b", "unexpected argument"),
        ("http://127.0.0.1:99999", "has a port that is not a number up to 65535"),
        ("redis://127.0.0.1:99999", "is not a URL"),
        ("redis+sentinel://127.0.0.1/a", "is not a URL"),
        ("rediss://127.0.0.1", "has no TLS for Redis"),
        ("http://me:secret@127.0.0.1", "sends no password over HTTP"),
        ("redis://me:sec/ret@127.0.0.1", "is not a URL"),
        ("me:secret@127.0.0.1", "is not a URL"),
        ("--timeout 0s", "'0s' is not a time"),
        ("--timeout 5-lines", "is not a time"),
    ] {
        let ended = health(url);
        ended.warns(2, reason);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(!ended.stderr.contains("ret"), "{ended:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_guard_is_ready_when_its_ids_are_synced() {
    for (quiet, status) in [("1ms", 0), ("1h", 1)] {
        let folder = crate::program::Folder::new();
        folder.write("ids.txt", "1\n2\n");
        folder.write(
            "guard.toml",
            format!(
                "proxy = {{ listen = \"127.0.0.1:0\", upstream = \"http://127.0.0.1:9\" }}\n\
                 admin = {{ listen = \"127.0.0.1:0\" }}\n\
                 [ids.products]\ntype = \"integer\"\nstale_after = \"2h\"\n\
                 source = {{ kind = \"lines\", path = \"ids.txt\", quiet = \"{quiet}\" }}\n\
                 [[route]]\npath = \"/{{id}}\"\nids = {{ \"path:id\" = \"products\" }}\n"
            ),
        );
        let mut guard = crate::guard::Running::start(&folder, "--config guard.toml");
        let line = guard.wait_for("url=http://");
        let url = line.trim_end().split("url=").nth(1).unwrap().trim_end_matches('/');
        if status == 0 {
            guard.wait_for("synced");
        }
        health(url).has_status(0);
        let ended = health(&format!("{url}/readyz"));
        ended.has_status(status);
        if status == 1 {
            let reason = "status 503 Service Unavailable: {\"products\":\"warming\"}\n";
            ended.says(1, &format!("tamis: {url}/readyz: {reason}"));
        }
    }
}
