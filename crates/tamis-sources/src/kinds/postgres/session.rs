//! A replication connection.
//!
//! `tokio-postgres` does not support replication connections. The crate `pgwire-replication` supports replication
//! connections, but adds a second cryptography library besides ring. Therefore this module implements the required part
//! of the protocol with the messages of `postgres-protocol`: the login, queries, and the bidirectional stream.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{ErrorResponseBody, Message};
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use fallible_iterator::FallibleIterator as _;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::address::{Address, Transport, without_limits};
use crate::kinds::postgres::explain::SessionError;
use crate::kinds::postgres::unfinished_slot::Process;

/// The maximum length of a message in bytes. A change message contains the values of a row.
const MAX_MESSAGE: usize = 64 << 20;

/// A row of a response. `None` stands for NULL.
pub(super) type Row = Vec<Option<String>>;

/// A message from the server.
enum Incoming {
    /// A chunk of a stream.
    Copy(Bytes),
    /// The message that begins a stream.
    CopyBoth,
    Other(Message),
}

/// A replication connection.
pub(super) struct Session {
    transport: Box<dyn Transport>,
    input: BytesMut,
    output: BytesMut,
    /// The server process of this connection.
    pub(super) process: Process,
}

impl Session {
    /// Opens a replication connection to a host, for the database of the URL.
    pub(super) async fn open(address: &Address, host: usize) -> Result<Self, SourceError> {
        let mut session = Self {
            transport: address.connect(host).await?,
            input: BytesMut::new(),
            output: BytesMut::new(),
            process: Process::default(),
        };
        let ready = async {
            session.log_in(address).await?;
            session.query(&without_limits()).await
        };
        ready.await.map_err(|error| error.explained(&address.user))?;
        Ok(session)
    }

    async fn log_in(&mut self, address: &Address) -> Result<(), SessionError> {
        let parameters = [
            ("user", &*address.user),
            ("database", &*address.database),
            ("replication", "database"),
            ("client_encoding", "UTF8"),
            ("application_name", "tamis-guard"),
        ];
        self.send(|out| frontend::startup_message(parameters, out)).await?;
        let mut scram: Option<ScramSha256> = None;
        let password = address.password();
        loop {
            match self.other().await? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    self.send(|out| frontend::password_message(password, out)).await?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(address.user.as_bytes(), password, body.salt());
                    self.send(|out| frontend::password_message(hash.as_bytes(), out)).await?;
                }
                Message::AuthenticationSasl(body) => {
                    let mut mechanisms = body.mechanisms();
                    let mut has = |name| mechanisms.any(|mechanism| Ok(mechanism == name));
                    if !has(SCRAM_SHA_256).map_err(SessionError::broken)? {
                        return Err(unexpected("an unknown mechanism of authentication"));
                    }
                    let new = ScramSha256::new(password, ChannelBinding::unsupported());
                    let scram = scram.insert(new);
                    let first = scram.message().to_vec();
                    self.send(|out| frontend::sasl_initial_response(SCRAM_SHA_256, &first, out))
                        .await?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    let scram = scram.as_mut().ok_or_else(|| unexpected("SASL"))?;
                    scram.update(body.data()).map_err(SessionError::broken)?;
                    let next = scram.message().to_vec();
                    self.send(|out| frontend::sasl_response(&next, out)).await?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let scram = scram.as_mut().ok_or_else(|| unexpected("SASL"))?;
                    scram.finish(body.data()).map_err(SessionError::broken)?;
                }
                Message::BackendKeyData(body) => {
                    self.process = Process { number: body.process_id(), key: body.secret_key() };
                }
                Message::ErrorResponse(body) => return Err(refused(&body)),
                Message::ReadyForQuery(_) => return Ok(()),
                _ => return Err(unexpected("a kind of authentication that is not supported")),
            }
        }
    }

    /// Runs a command. Returns its rows.
    pub(super) async fn query(&mut self, command: &str) -> Result<Vec<Row>, SessionError> {
        self.send(|out| frontend::query(command, out)).await?;
        let (mut rows, mut failure) = (Vec::new(), None);
        loop {
            match self.other().await? {
                Message::DataRow(body) => {
                    let buffer = body.buffer();
                    let value = |range: Option<std::ops::Range<usize>>| {
                        Ok(range.map(|at| String::from_utf8_lossy(&buffer[at]).into_owned()))
                    };
                    let row: Row =
                        body.ranges().map(value).collect().map_err(SessionError::broken)?;
                    rows.push(row);
                }
                Message::ErrorResponse(body) => failure = Some(refused(&body)),
                Message::ReadyForQuery(_) => return failure.map_or(Ok(rows), Err),
                Message::RowDescription(_) | Message::CommandComplete(_) => {}
                _ => return Err(unexpected("an unexpected message")),
            }
        }
    }

    /// Runs the command that begins a stream.
    pub(super) async fn start(&mut self, command: &str) -> Result<(), SessionError> {
        self.send(|out| frontend::query(command, out)).await?;
        loop {
            match self.message().await? {
                Incoming::CopyBoth => return Ok(()),
                Incoming::Other(Message::ErrorResponse(body)) => return Err(refused(&body)),
                Incoming::Other(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                _ => return Err(unexpected("no stream")),
            }
        }
    }

    /// Returns the next chunk of the stream. The method is cancel-safe: if the future is dropped, no byte is lost.
    pub(super) async fn chunk(&mut self) -> Result<Bytes, SessionError> {
        loop {
            match self.message().await? {
                Incoming::Copy(chunk) => return Ok(chunk),
                Incoming::Other(Message::ErrorResponse(body)) => return Err(refused(&body)),
                Incoming::Other(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                _ => return Err(SessionError::broken("the server has ended the stream")),
            }
        }
    }

    /// Tests whether a chunk of the stream has already been received.
    pub(super) fn has_chunk(&self) -> bool {
        message_length(&self.input).is_ok_and(|it| it.is_some_and(|it| it <= self.input.len()))
    }

    /// Sends a chunk of the stream.
    pub(super) async fn send_chunk(&mut self, chunk: &[u8]) -> Result<(), SessionError> {
        self.send(|out| {
            frontend::CopyData::new(chunk)?.write(out);
            Ok(())
        })
        .await
    }

    async fn send(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> Result<(), SessionError> {
        self.output.clear();
        write(&mut self.output).map_err(SessionError::broken)?;
        let sent = self.transport.write_all(&self.output).await;
        sent.map_err(SessionError::broken)?;
        self.transport.flush().await.map_err(SessionError::broken)
    }

    /// Returns the next message outside of a stream. The method skips notices and parameter changes.
    async fn other(&mut self) -> Result<Message, SessionError> {
        loop {
            match self.message().await? {
                Incoming::Other(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Incoming::Other(message) => return Ok(message),
                Incoming::Copy(_) | Incoming::CopyBoth => return Err(unexpected("a stream")),
            }
        }
    }

    async fn message(&mut self) -> Result<Incoming, SessionError> {
        loop {
            if let Some(length) = message_length(&self.input)?
                && length <= self.input.len()
            {
                let mut message = self.input.split_to(length);
                return Ok(match message[0] {
                    b'd' => {
                        message.advance(5);
                        Incoming::Copy(message.freeze())
                    }
                    b'W' => Incoming::CopyBoth,
                    _ => {
                        let parsed = Message::parse(&mut message).map_err(SessionError::broken)?;
                        Incoming::Other(parsed.ok_or_else(|| unexpected("half a message"))?)
                    }
                });
            }
            self.input.reserve(1 << 16);
            let read = self.transport.read_buf(&mut self.input).await;
            if read.map_err(SessionError::broken)? == 0 {
                return Err(SessionError::broken("the server has closed the connection"));
            }
        }
    }
}

/// Returns the length of the first message including its header. Returns `None` if the header is incomplete.
fn message_length(input: &[u8]) -> Result<Option<usize>, SessionError> {
    let Some(&[_, a, b, c, d]) = input.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length < 4 {
        return Err(unexpected("a message without a length"));
    }
    if length > MAX_MESSAGE {
        return Err(SessionError::Broken(format!(
            "the server sent a change of {length} bytes, at most {MAX_MESSAGE} are read; \
             let the publication have only the column of ids"
        )));
    }
    Ok(Some(1 + length))
}

fn refused(body: &ErrorResponseBody) -> SessionError {
    let mut fields = body.fields();
    let (mut code, mut message) = (String::new(), String::new());
    while let Ok(Some(field)) = fields.next() {
        let value = || String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value(),
            b'M' => message = value(),
            _ => {}
        }
    }
    SessionError::Server { code, message }
}

fn unexpected(what: &str) -> SessionError {
    SessionError::Broken(format!("the server sent {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_message_is_bounded() {
        assert_eq!(message_length(b"d\0\0\0").ok(), Some(None));
        assert_eq!(message_length(b"d\0\0\0\x05x").ok(), Some(Some(6)));
        assert!(message_length(b"d\0\0\0\x03").is_err());
        assert!(message_length(b"d\xff\xff\xff\xff").is_err());
    }
}
