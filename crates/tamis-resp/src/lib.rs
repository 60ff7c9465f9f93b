//! Encodes and decodes RESP2 and RESP3, the protocols of Redis.
//!
//! | direction | type |
//! | --- | --- |
//! | bytes of a client → words of commands | [`RequestDecoder`] |
//! | a reply → bytes | [`Reply::encode`] |
//! | bytes of a server → a reply | [`Reply::decode`] |
//!
//! This crate performs no I/O and contains no command: the caller supplies and receives all bytes.
//! The input may be untrusted. No input causes a panic. A decoder does not allocate memory for an
//! announced length until the bytes have arrived.
//!
//! ```
//! use tamis_resp::{Limits, Protocol, Reply, Request, RequestDecoder};
//!
//! let input = b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n";
//! let mut decoder = RequestDecoder::new(Limits::default());
//! let mut words = Vec::new();
//! let first = decoder.next(input, &mut words)?;
//! assert_eq!(first, Some(Request::Words { consumed: 22 }));
//! assert_eq!((words[0].of(input), words[1].of(input)), (&b"ECHO"[..], &b"hi"[..]));
//!
//! let mut output = Vec::new();
//! Reply::bulk(words[1].of(input)).encode(Protocol::Resp2, &mut output);
//! assert_eq!(output, b"$2\r\nhi\r\n");
//! # Ok::<(), tamis_resp::ProtocolError>(())
//! ```
#![forbid(unsafe_code)]

mod decode;
mod double;
mod encode;
mod error;
mod inline;
mod integer;
mod progress;
mod reply;
mod request;
mod request_decoder;

pub use error::ProtocolError;
pub use reply::{Protocol, Reply};
pub use request::{Limits, Request, WordSpan};
pub use request_decoder::RequestDecoder;
