//! A connection to a Redis server. The connection has a memory limit for any input from the server.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tamis_redis::ServerAddress;
use tamis_resp::{Protocol, Reply};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::errors::redis_error::RedisSourceError;
use crate::tls::client_config;

/// The maximum length of a reply in bytes. The limit does not apply to values.
const MAX_REPLY_BYTES: usize = 64 << 10;

const READ_BYTES: usize = 64 << 10;

/// The time limit for connecting and for each write.
const CONNECT: Duration = Duration::from_secs(5);

/// The maximum time without a received byte. A server needs about a second to send a filter of 1 GiB.
const SILENCE: Duration = Duration::from_secs(30);

/// The time between two tests of the stop flag.
const TICK: Duration = Duration::from_millis(100);

/// A function that tests whether the source is stopped.
pub(super) type IsStopped<'s> = &'s dyn Fn() -> bool;

/// A connection to a server.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Bytes that were received but not decoded yet.
    input: Vec<u8>,
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to a server, authenticates as the user of the URL, and selects the database. `ca` is a PEM file of
    /// trusted certificates. With `None`, the client trusts the certificates of the operating system.
    pub(super) fn open(
        address: &ServerAddress,
        ca: Option<&Path>,
        is_stopped: IsStopped<'_>,
    ) -> Result<Self, RedisSourceError> {
        let stream = connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(CONNECT))?;
        let stream: Box<dyn Stream> = if address.is_encrypted {
            encrypted(stream, &address.host, ca)?
        } else {
            Box::new(stream)
        };
        let mut connection = Self { stream, input: Vec::new() };
        match (&address.user, &address.password) {
            (Some(user), Some(password)) => {
                connection.call(&[b"AUTH", user.as_bytes(), password.as_bytes()], is_stopped)?;
            }
            (None, Some(password)) => {
                connection.call(&[b"AUTH", password.as_bytes()], is_stopped)?;
            }
            _ => {}
        }
        if address.database != 0 {
            connection.call(&[b"SELECT", address.database.to_string().as_bytes()], is_stopped)?;
        }
        Ok(connection)
    }

    /// Runs a command with a short reply.
    pub(super) fn call(
        &mut self,
        argv: &[&[u8]],
        is_stopped: IsStopped<'_>,
    ) -> Result<Reply, RedisSourceError> {
        self.send(argv)?;
        self.reply(is_stopped)
    }

    /// Runs a command whose reply is a value. Returns `None` if the key does not exist.
    pub(super) fn value(
        &mut self,
        argv: &[&[u8]],
        max_bytes: u64,
        is_stopped: IsStopped<'_>,
    ) -> Result<Option<Vec<u8>>, RedisSourceError> {
        self.send(argv)?;
        self.receive_value(max_bytes, is_stopped)
    }

    /// Sends a command.
    pub(super) fn send(&mut self, argv: &[&[u8]]) -> Result<(), RedisSourceError> {
        let words = argv.iter().map(|word| Reply::Bulk(word.to_vec())).collect();
        let mut bytes = Vec::new();
        Reply::Array(words).encode(Protocol::Resp2, &mut bytes);
        self.stream.write_all(&bytes).map_err(plain)?;
        Ok(self.stream.flush().map_err(plain)?)
    }

    /// Receives a short reply. Converts an error reply of the server to an `Err`.
    pub(super) fn reply(&mut self, is_stopped: IsStopped<'_>) -> Result<Reply, RedisSourceError> {
        loop {
            if let Some((reply, len)) = Reply::decode(&self.input)? {
                self.input.drain(..len);
                return match reply {
                    Reply::Error(message) => Err(RedisSourceError::of_server(&message)),
                    reply => Ok(reply),
                };
            }
            if self.input.len() > MAX_REPLY_BYTES {
                return Err(RedisSourceError::Unexpected("a short reply"));
            }
            self.fill(READ_BYTES, is_stopped)?;
        }
    }

    /// Receives the header of an array. Returns the number of replies that follow. Returns `None` if the reply is not
    /// an array.
    pub(super) fn array(
        &mut self,
        is_stopped: IsStopped<'_>,
    ) -> Result<Option<usize>, RedisSourceError> {
        while self.input.is_empty() {
            self.fill(READ_BYTES, is_stopped)?;
        }
        if self.input[0] != b'*' {
            return self.reply(is_stopped).map(|_| None);
        }
        let count = self.length(is_stopped)?;
        Ok(usize::try_from(count).ok())
    }

    /// Receives a value.
    pub(super) fn receive_value(
        &mut self,
        max_bytes: u64,
        is_stopped: IsStopped<'_>,
    ) -> Result<Option<Vec<u8>>, RedisSourceError> {
        while self.input.is_empty() {
            self.fill(READ_BYTES, is_stopped)?;
        }
        if self.input[0] != b'$' {
            return match self.reply(is_stopped)? {
                Reply::Null | Reply::NullArray => Ok(None),
                _ => Err(RedisSourceError::Unexpected("a value")),
            };
        }
        let Ok(len) = usize::try_from(self.length(is_stopped)?) else { return Ok(None) };
        if len as u64 > max_bytes {
            return Err(RedisSourceError::TooLarge { max_bytes });
        }
        // CRLF follows the value.
        let end = len.saturating_add(2);
        while self.input.len() < end {
            // The read stops at the end of the value, so that the buffer can become the value without a copy.
            self.fill((end - self.input.len()).min(READ_BYTES), is_stopped)?;
        }
        let rest = self.input.split_off(end);
        let mut value = std::mem::replace(&mut self.input, rest);
        if !value.ends_with(b"\r\n") {
            return Err(RedisSourceError::Unexpected("a line end after the value"));
        }
        value.truncate(len);
        Ok(Some(value))
    }

    /// Receives the length in a header line, which follows the type byte.
    fn length(&mut self, is_stopped: IsStopped<'_>) -> Result<i64, RedisSourceError> {
        /// The limit exceeds the longest valid length.
        const MAX_LINE: usize = 32;
        loop {
            let line = &self.input[..self.input.len().min(MAX_LINE)];
            if let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") {
                let digits = std::str::from_utf8(&line[1..end]).ok();
                let length = digits.and_then(|digits| digits.parse().ok());
                self.input.drain(..end + 2);
                return length.ok_or(RedisSourceError::Unexpected("a length"));
            }
            if line.len() == MAX_LINE {
                return Err(RedisSourceError::Unexpected("a length"));
            }
            self.fill(READ_BYTES, is_stopped)?;
        }
    }

    /// Receives at least one byte and at most `max`.
    fn fill(&mut self, max: usize, is_stopped: IsStopped<'_>) -> Result<(), RedisSourceError> {
        let end = Instant::now() + SILENCE;
        let old = self.input.len();
        self.input.resize(old + max, 0);
        let result = loop {
            if is_stopped() {
                break Err(RedisSourceError::Stopped);
            }
            match self.stream.read(&mut self.input[old..]) {
                Ok(0) => break Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(read) => break Ok(read),
                Err(error) if is_timeout(&error) && Instant::now() < end => {}
                Err(error) if is_timeout(&error) => break Err(RedisSourceError::Silent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error.into()),
            }
        };
        self.input.truncate(old + *result.as_ref().unwrap_or(&0));
        result.map(drop)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    // Unix returns `WouldBlock`, and Windows returns `TimedOut`.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Converts an error to an error with a clear message: Unix reports a write timeout as `WouldBlock`.
fn plain(error: io::Error) -> io::Error {
    if is_timeout(&error) { io::ErrorKind::TimedOut.into() } else { error }
}

fn connect(address: &ServerAddress) -> Result<TcpStream, RedisSourceError> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

fn encrypted(
    stream: TcpStream,
    host: &str,
    ca: Option<&Path>,
) -> Result<Box<dyn Stream>, RedisSourceError> {
    let wrong = |why: &dyn fmt::Display| RedisSourceError::Tls(why.to_string());
    let config = client_config(ca).map_err(|error| wrong(&error))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(|error| wrong(&error))?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(|error| wrong(&error))?;
    Ok(Box::new(StreamOwned::new(client, stream)))
}
