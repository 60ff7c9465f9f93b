//! HTTP/2 as raw frames: requests that two programs could read differently, and floods.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support::*;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Field<'f> = (&'f str, &'f str);

const GET: [Field<'_>; 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/x")];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Encodes fields without a table and without Huffman codes (RFC 7541, section 6.2.2).
fn fields(fields: &[Field<'_>]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// Returns the fields of a GET request, and more.
fn with<'f>(more: &[Field<'f>]) -> Vec<Field<'f>> {
    [&GET[..], more].concat()
}

/// Returns the fields of a GET request, one of which has another value.
fn changed<'f>(name: &str, value: &'f str) -> Vec<Field<'f>> {
    GET.iter().map(|&(old, was)| (old, if old == name { value } else { was })).collect()
}

/// Returns the head of a POST request whose body has a stated length.
fn post(content_length: &str) -> Vec<u8> {
    let request = [changed(":method", "POST"), vec![("content-length", content_length)]].concat();
    frame(HEADERS, END_HEADERS, 1, &fields(&request))
}

/// Returns a connection after the exchange of settings.
async fn connect(proxy: &Running) -> TcpStream {
    proxy.send([PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await
}

/// Sends frames on a connection of their own, and returns how the stream ends.
async fn ended(proxy: &Running, frames: &[u8]) -> End {
    let mut stream = connect(proxy).await;
    stream.write_all(frames).await.unwrap();
    end(&mut stream).await
}

/// How a stream ended.
#[derive(Debug, PartialEq)]
enum End {
    /// The answer has this head, without its encoding.
    Answered(Vec<u8>),
    Reset,
    Closed,
}

/// Reads frames until a stream or the connection ends.
async fn end(stream: &mut TcpStream) -> End {
    let mut head = Vec::new();
    loop {
        let mut start = [0; 9];
        if in_time("a frame", stream.read_exact(&mut start)).await.is_err() {
            return End::Closed;
        }
        let len = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let mut payload = vec![0; len];
        if in_time("a payload", stream.read_exact(&mut payload)).await.is_err() {
            return End::Closed;
        }
        match (start[3], start[4]) {
            (SETTINGS, flags) if flags & ACK == 0 => {
                _ = stream.write_all(&frame(SETTINGS, ACK, 0, &[])).await;
            }
            (HEADERS, _) => head = payload.clone(),
            (RST_STREAM, _) => return End::Reset,
            (GOAWAY, _) => return End::Closed,
            _ => {}
        }
        if matches!(start[3], HEADERS | DATA) && start[4] & END_STREAM != 0 {
            return End::Answered(head);
        }
    }
}

/// Tests whether the head of an answer begins with a status of class 4: index 8 to 14 of the static
/// table, or a literal.
fn is_refusal(end: &End) -> bool {
    match end {
        // 400 and 404 are in the static table, as 12 and 13.
        End::Answered(head) => matches!(head[..], [0x8c | 0x8d, ..]) || head.starts_with(b"\x48"),
        End::Reset | End::Closed => true,
    }
}

#[tokio::test]
async fn a_plain_request_in_frames_reaches_the_upstream() {
    let proxy = start(echo().await).await;
    let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&GET));
    let End::Answered(head) = ended(&proxy, &head).await else { panic!("no answer") };
    // 200 is number 8 of the static table.
    assert_eq!(head[0], 0x88);
}

#[tokio::test]
async fn ambiguous_http_2_requests_never_reach_the_upstream() {
    let (upstream, mut got) = counting().await;
    let proxy = start(upstream).await;
    for (name, request) in [
        ("a transfer coding", with(&[("transfer-encoding", "chunked")])),
        ("a connection header", with(&[("connection", "keep-alive")])),
        ("a proxy connection", with(&[("proxy-connection", "close")])),
        ("an upgrade", with(&[("upgrade", "websocket")])),
        ("a te other than trailers", with(&[("te", "gzip")])),
        ("an upper case name", with(&[("X-Upper", "a")])),
        ("a line end in a value", with(&[("x", "a\r\nhost: b")])),
        ("a line feed in a value", with(&[("x", "a\nb")])),
        ("a NUL in a value", with(&[("x", "a\0b")])),
        ("a line end in a name", with(&[("x: a\r\ny", "b")])),
        ("a colon in a name", with(&[("x:y", "b")])),
        ("an empty name", with(&[("", "b")])),
        ("another host", with(&[("host", "b")])),
        ("a second path", with(&[(":path", "/y")])),
        ("an unknown pseudo header", with(&[(":x", "y")])),
        ("a length of a body that is not there", with(&[("content-length", "5")])),
        ("two lengths", with(&[("content-length", "0"), ("content-length", "1")])),
        ("a relative path", changed(":path", "x")),
        ("an empty path", changed(":path", "")),
        ("a line end in the path", changed(":path", "/ HTTP/1.1\r\nhost: b\r\n\r\n")),
        ("a space in the path", changed(":path", "/a b")),
        ("a line end in the method", changed(":method", "GET / HTTP/1.1\r\nx:")),
        ("a space in the method", changed(":method", "GET x")),
        ("a tunnel", changed(":method", "CONNECT")),
        ("a user in the host", changed(":authority", "b@a")),
        ("a line end in the host", changed(":authority", "a\r\nx: y")),
        ("a path in the host", changed(":authority", "a/b")),
        ("no path", GET[..3].to_vec()),
        ("no method", GET[1..].to_vec()),
    ] {
        let head = frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(&request));
        let end = ended(&proxy, &head).await;
        assert!(is_refusal(&end), "{name}: {end:?}");
        assert!(got.try_recv().is_err(), "{name} reached the upstream");
    }
}

#[tokio::test]
async fn a_body_of_another_length_than_stated_breaks_the_request() {
    for (stated, body) in [("3", &b"12345"[..]), ("9", b"12345")] {
        let (upstream, mut end_of) = recording().await;
        let proxy = start(upstream).await;
        let frames = [post(stated), frame(DATA, END_STREAM, 1, body)].concat();
        let end = ended(&proxy, &frames).await;
        assert!(is_refusal(&end), "{stated}: {end:?}");
        drop(proxy);
        if let Ok(Some(got)) = timeout(Duration::from_millis(200), end_of.recv()).await {
            let body = got.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            assert!(body.len() != stated.parse::<usize>().unwrap(), "{got}");
        }
    }
}

#[tokio::test]
async fn floods_end_their_connection_and_no_other() {
    let proxy = start(echo().await).await;
    let block = fields(&GET);
    let resets: Vec<u8> = (0..20_000_u32)
        .flat_map(|i| {
            let stream = 2 * i + 1;
            let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, &block);
            [head, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
        })
        .collect();
    let continuation = frame(CONTINUATION, 0, 1, &[0; 1000]);
    let endless = [frame(HEADERS, 0, 1, &block), continuation.repeat(5000)].concat();
    // A bomb: each byte repeats a long field of the table.
    let long = [&[0x40, 1, b'x', 0x7f, 0x81, 0x1e][..], &[b'y'; 4000]].concat();
    let bomb = [&block[..], &long, &[0xbe; 8000]].concat();
    let bomb = frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb);
    let pings = frame(PING, 0, 0, &[0; 8]).repeat(100_000);
    let settings = frame(SETTINGS, 0, 0, &[]).repeat(100_000);
    for (name, flood) in [
        ("resets", resets),
        ("continuations", endless),
        ("a bomb", bomb),
        ("pings", pings),
        ("settings", settings),
    ] {
        let mut stream = connect(&proxy).await;
        // The proxy may close the connection before it has read everything. Nobody reads its answers.
        let sent = timeout(Duration::from_secs(20), stream.write_all(&flood)).await;
        drop(sent);
        drop(stream);
        let answer = proxy.get("/").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{name}: {answer}");
    }
}

#[tokio::test]
async fn an_http_2_client_that_is_idle_or_slow_is_closed() {
    let proxy = start_set(echo().await, |options| {
        options.header_timeout = Duration::from_millis(100);
        options.idle_timeout = Duration::from_millis(200);
        options.body_timeout = Duration::from_millis(100);
    })
    .await;
    let mut idle = connect(&proxy).await;
    assert_eq!(end(&mut idle).await, End::Closed);
    // The body never comes.
    let end = ended(&proxy, &post("5")).await;
    assert!(is_refusal(&end), "{end:?}");
}
