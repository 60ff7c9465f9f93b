//! Requests that a web page makes a browser send to the port of commands.

use std::io::Write as _;

use crate::recorder::Recorder;
use crate::support::{connect, start};
use tamis_resp::Reply;
use tamis_testing::read_to_end;
use tracing::Level;

#[test]
fn a_web_page_runs_no_command() {
    let recorder = Recorder::new(Level::WARN);
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let (server, mut client) = start(1);
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
        let mut page = connect(&server);
        peers.push(page.stream.local_addr().unwrap().to_string());
        page.stream.write_all(request.as_bytes()).unwrap();
        // The connection may be reset, since the server does not read the rest.
        assert_eq!(read_to_end(&mut page.stream), answer.as_bytes(), "{request}");
    }
    assert_eq!(client.say(&["EXISTS", "kept"]), Reply::Integer(1));
    let warnings = recorder.lines.lock().unwrap();
    let is_of_page = |warning: &&String| peers.iter().any(|peer| warning.contains(peer));
    let of_pages: Vec<&String> = warnings.iter().filter(is_of_page).collect();
    let [warning] = &of_pages[..] else { panic!("one a minute: {of_pages:?}") };
    assert!(warning.contains("HTTP") && warning.contains(&peers[0]), "{warning}");
}
