//! The stream of changes.

use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf as _, Bytes};
use postgres_protocol::escape::escape_identifier;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::explain::SessionError;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::pgoutput::{Change, decode};
use crate::kinds::postgres::session::Session;

/// The time from one confirmation to the next.
const CONFIRM_AFTER: Duration = Duration::from_secs(1);

/// The server counts microseconds since the year 2000.
const EPOCH: Duration = Duration::from_secs(946_684_800);

/// What the stream has.
#[derive(Debug)]
pub(super) enum Event {
    Change(Change),
    /// The server has decoded the log up to a place, and has sent all changes before it.
    Decoded {
        end: Lsn,
        wants_reply: bool,
    },
}

/// The changes after the point of a slot. The follower knows no more of the connection than this.
pub(super) struct ChangeStream {
    session: Session,
    user: String,
    /// What the server was told last.
    told: Applied,
    told_at: Instant,
}

/// What the follower has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    /// All changes before this place are applied.
    pub(super) position: Lsn,
    /// The server may delete the log before this place. It is not after `position`.
    pub(super) deletable: Lsn,
}

impl ChangeStream {
    /// Starts the stream of a publication after a point. The slot was confirmed up to `confirmed`. If
    /// the session has created the slot, its snapshot ends.
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

    /// Returns the next event. If the future is dropped, no event is lost.
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

    /// Tells the server what the follower has done, unless it was told a moment ago.
    pub(super) async fn confirm_soon(&mut self, applied: Applied) -> Result<(), SourceError> {
        if applied != self.told && self.told_at.elapsed() >= CONFIRM_AFTER {
            self.confirm(applied).await?;
        }
        Ok(())
    }

    /// Tells the server what the follower has done.
    ///
    /// A server that shuts down waits until the last status has all of its log as flushed, or as
    /// written if this status has nothing as flushed. So a status without a flushed place follows,
    /// unless all may be deleted.
    pub(super) async fn confirm(&mut self, applied: Applied) -> Result<(), SourceError> {
        // Some servers would go back to an earlier place.
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

    /// Asks the server for a message. A server without `wal_sender_timeout` sends none of its own while
    /// it decodes changes of other tables.
    pub(super) async fn ask(&mut self) -> Result<(), SourceError> {
        self.send(&status(self.told.position, Lsn::default(), true)).await
    }

    async fn send(&mut self, status: &[u8]) -> Result<(), SourceError> {
        let sent = self.session.send_chunk(status).await;
        sent.map_err(|error: SessionError| error.explained(&self.user))
    }
}

/// Decodes a chunk of the stream; `None` if it is malformed.
fn event(mut chunk: Bytes) -> Option<Event> {
    match chunk.try_get_u8().ok()? {
        b'w' => {
            // The places of the record and of the end of the log, and the time. Changes of a
            // transaction have no useful places: the commit has.
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

/// Encodes a status: what is written, flushed and applied, the time, and whether the server must answer.
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
