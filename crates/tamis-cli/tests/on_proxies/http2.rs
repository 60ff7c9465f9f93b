//! HTTP/2 as raw frames, which no client library would send.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// The flags of the last frame of a request without a body.
const END_STREAM_AND_HEADERS: u8 = 5;
const ACK: u8 = 1;

/// Sends a request with some fields. Returns true if the response has the status 200. Returns false for another status,
/// and if the proxy resets the request.
pub fn is_answered_with_200(mut stream: TcpStream, fields: &[(&str, &str)]) -> bool {
    let request = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_STREAM_AND_HEADERS, 1, &encoded(fields)),
    ];
    stream.write_all(&request.concat()).unwrap();
    loop {
        let mut start = [0; 9];
        if stream.read_exact(&mut start).is_err() {
            return false;
        }
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).is_err() {
            return false;
        }
        match (start[3], start[4]) {
            (SETTINGS, flags) if flags & ACK == 0 => {
                _ = stream.write_all(&frame(SETTINGS, ACK, 0, &[]));
            }
            (HEADERS, _) => {
                // The status 200 has the number 8 of the static table. A change of the table size may come before it.
                let mut bytes = payload.iter().skip_while(|byte| (0x20..0x40).contains(*byte));
                return bytes.next() == Some(&0x88);
            }
            (RST_STREAM | GOAWAY, _) => return false,
            _ => {}
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Encodes fields without a table and without Huffman codes (RFC 7541, section 6.2.2).
fn encoded(fields: &[(&str, &str)]) -> Vec<u8> {
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
