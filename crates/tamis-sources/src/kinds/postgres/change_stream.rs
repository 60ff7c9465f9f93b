//! The stream of changes from a replication slot.

use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf as _, Bytes};
use postgres_protocol::escape::escape_identifier;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::explain::SessionError;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::pgoutput::{Change, decode};
use crate::kinds::postgres::session::Session;

/// The time between two confirmations.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

/// The offset of the PostgreSQL epoch: the server counts microseconds since the year 2000.
const EPOCH: Duration = Duration::from_secs(946_684_800);

/// An event of the stream.
#[derive(Debug)]
pub(super) enum Event {
    Change(Change),
    /// The server has decoded the log up to this position, and has sent all changes before this position.
    Decoded {
        end: Lsn,
        wants_reply: bool,
    },
}

/// The stream of changes after the point of a slot. The stream hides the connection from the follower.
pub(super) struct ChangeStream {
    session: Session,
    user: String,
    /// The last status that the stream has sent to the server.
    told: Applied,
    told_at: Instant,
}

/// The progress of the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    /// The follower has applied all changes before this position.
    pub(super) position: Lsn,
    /// The server may delete the log before this position. This position is at most `position`.
    pub(super) deletable: Lsn,
}

impl ChangeStream {
    /// Starts the stream of a publication after the position `point`. `confirmed` is the confirmed position of the
    /// slot. If the session has created the slot, the snapshot of the slot ends.
    pub(super) async fn start(
        mut session: Session,
        slot: &str,
        point: Lsn,
        confirmed: Lsn,
        publication: &str,
        user: &str,
    ) -> Result<Self, SourceError> {
        let publications = escape_identifier(publication).replace('\'', "''");
        let command = format!(
            "START_REPLICATION SLOT {} LOGICAL {point} (proto_version '1', publication_names '{}')",
            escape_identifier(slot),
            publications
        );
        session.start(&command).await.map_err(|error| error.explained(user))?;
        let told = Applied { position: point, deletable: confirmed };
        Ok(Self { session, user: user.to_owned(), told, told_at: Instant::now() })
    }

    /// Returns the next event. The method is cancel-safe: if the future is dropped, no event is lost.
    pub(super) async fn next(&mut self) -> Result<Event, SourceError> {
        let chunk = self.session.chunk().await;
        let chunk = chunk.map_err(|error| error.explained(&self.user))?;
        let malformed = || SourceError::Connect("the stream of changes is malformed".to_owned());
        event(chunk).ok_or_else(malformed)
    }

    /// Tests whether the next event has already been received.
    pub(super) fn has_next(&self) -> bool {
        self.session.has_chunk()
    }

    /// Sends the progress to the server, unless the stream sent a status within the last [`CONFIRM_AFTER`].
    pub(super) async fn confirm_soon(&mut self, applied: Applied) -> Result<(), SourceError> {
        if applied != self.told && self.told_at.elapsed() >= CONFIRM_AFTER {
            self.confirm(applied).await?;
        }
        Ok(())
    }

    /// Sends the progress to the server.
    ///
    /// A server that shuts down waits until the last status reports the whole log as flushed. If the last status
    /// reports no flushed position, the server waits for the written position instead of the flushed position.
    /// Therefore the method sends a second status without a flushed position, unless the server may delete the whole
    /// log.
    pub(super) async fn confirm(&mut self, applied: Applied) -> Result<(), SourceError> {
        // If a status reported an earlier flushed position than the last status, some servers would move the slot back.
        let deletable = applied.deletable.max(self.told.deletable);
        let Applied { position, .. } = applied;
        if deletable > self.told.deletable || deletable == position {
            self.send(&status(position, deletable, false)).await?;
        }
        if deletable != position {
            self.send(&status(position, Lsn::default(), false)).await?;
        }
        (self.told, self.told_at) = (Applied { position, deletable }, Instant::now());
        Ok(())
    }

    /// Requests a message from the server. A server without `wal_sender_timeout` sends no message while it decodes
    /// changes of other tables.
    pub(super) async fn ask(&mut self) -> Result<(), SourceError> {
        self.send(&status(self.told.position, Lsn::default(), true)).await
    }

    async fn send(&mut self, status: &[u8]) -> Result<(), SourceError> {
        let sent = self.session.send_chunk(status).await;
        sent.map_err(|error: SessionError| error.explained(&self.user))
    }
}

/// Decodes a chunk of the stream. Returns `None` if the chunk is malformed.
fn event(mut chunk: Bytes) -> Option<Event> {
    match chunk.try_get_u8().ok()? {
        b'w' => {
            // The header contains the position of the record, the end of the log and a time. Only the commit of a
            // transaction has useful positions.
            chunk.try_get_u64().ok()?;
            chunk.try_get_u64().ok()?;
            chunk.try_get_u64().ok()?;
            Some(Event::Change(decode(chunk).ok()?))
        }
        b'k' => {
            let end = Lsn(chunk.try_get_u64().ok()?);
            chunk.try_get_u64().ok()?;
            Some(Event::Decoded { end, wants_reply: chunk.try_get_u8().ok()? != 0 })
        }
        _ => None,
    }
}

/// Encodes a status: the written, flushed and applied positions, the time, and whether the server must reply.
fn status(position: Lsn, flushed: Lsn, wants_reply: bool) -> Vec<u8> {
    let since = SystemTime::UNIX_EPOCH + EPOCH;
    let now = SystemTime::now().duration_since(since).unwrap_or_default();
    let mut message = vec![b'r'];
    for number in [position.0, flushed.0, position.0, now.as_micros() as u64] {
        message.extend(number.to_be_bytes());
    }
    message.push(u8::from(wants_reply));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_decoded_and_hostile_ones_are_not() {
        let alive = b"k\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x07\x01";
        let event = |bytes: &[u8]| event(Bytes::copy_from_slice(bytes));
        assert!(matches!(
            event(alive),
            Some(Event::Decoded { end: Lsn(0x100), wants_reply: true })
        ));
        let mut change = [b'w'].to_vec();
        change.extend([0; 24]);
        assert!(event(&change).is_none());
        change.extend(b"O\0\0");
        assert!(matches!(event(&change), Some(Event::Change(Change::Other))));
        for wrong in [&b""[..], b"x", b"k", &alive[..17], b"w\0"] {
            assert!(event(wrong).is_none(), "{wrong:?}");
        }
        assert_eq!(status(Lsn(1), Lsn(1), true).len(), 34);
    }
}
