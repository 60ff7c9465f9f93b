//! Requests that a web page makes a browser send to the port of commands.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use crate::client::Client;
use tamis_resp::Reply;
use tamis_server::{Config, Server};
use tamis_testing::read_to_end;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Records the warnings of all threads as text.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_web_page_runs_no_command() {
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
    let server = Server::start(config).unwrap();
    let mut client = Client::connect(server.addresses()[0]);
    client.say(&["SET", "kept", "1"]);
    let mut peers = Vec::new();
    for (request, answer) in [
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nFLUSHALL\r\n", ""),
        ("post / HTTP/1.1\r\n\r\nFLUSHALL\r\n", ""),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nFLUSHALL\r\n",
            "-ERR wrong number of arguments for 'get' command\r\n",
        ),
        (
            "PUT /x HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nFLUSHALL\r\n",
            "-ERR unknown command 'PUT', with args beginning with: '/x' 'HTTP/1.1' \r\n",
        ),
    ] {
        let mut page = Client::connect(server.addresses()[0]);
        peers.push(page.stream.local_addr().unwrap().to_string());
        page.stream.write_all(request.as_bytes()).unwrap();
        // The connection may be reset, since the server does not read the rest.
        assert_eq!(read_to_end(&mut page.stream), answer.as_bytes(), "{request}");
    }
    assert_eq!(client.say(&["EXISTS", "kept"]), Reply::Integer(1));
    let warnings = recorder.0.lock().unwrap();
    let is_of_page = |warning: &&String| peers.iter().any(|peer| warning.contains(peer));
    let of_pages: Vec<&String> = warnings.iter().filter(is_of_page).collect();
    let [warning] = &of_pages[..] else { panic!("one a minute: {of_pages:?}") };
    assert!(warning.contains("HTTP") && warning.contains(&peers[0]), "{warning}");
}
