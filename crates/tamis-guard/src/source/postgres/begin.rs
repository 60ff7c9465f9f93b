//! How the follower begins: its slot, the read of all ids, and the stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::generation::Generation;
use crate::source::error::SourceError;
use crate::source::postgres::address::Address;
use crate::source::postgres::bulk::{FullRead, Snapshot};
use crate::source::postgres::change_stream::ChangeStream;
use crate::source::postgres::definition::Definition;
use crate::source::postgres::lsn::Lsn;
use crate::source::postgres::options::PostgresOptions;
use crate::source::postgres::permanent_slot::{PermanentSlot, open_slot};
use crate::source::postgres::resume::Resume;
use crate::source::postgres::server::Server;
use crate::source::postgres::session::Session;
use crate::source::postgres::slot::{Slot, create_slot};
use crate::source::postgres::unfinished_slot::UnfinishedSlot;
use crate::source::run::Run;

/// All ids of a snapshot were read.
pub(super) struct Read {
    /// The snapshot is complete up to this point of the log.
    pub(super) point: Lsn,
    /// What the table was during the read.
    pub(super) definition: Definition,
}

/// Work beside the stream.
pub(super) type Work<'r, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + 'r>>;

/// The connection for queries, and what further connections need.
#[derive(Clone, Copy)]
pub(super) struct Connection<'r> {
    pub(super) run: &'r Run,
    pub(super) server: &'r Server,
    pub(super) address: &'r Address,
    pub(super) unfinished: &'r UnfinishedSlot,
    pub(super) options: &'r PostgresOptions,
}

/// The stream that has begun, and what is known.
pub(super) struct Begin<'r> {
    pub(super) stream: ChangeStream,
    /// The name of the slot.
    pub(super) slot: String,
    /// The server of a permanent slot.
    pub(super) permanent: Option<String>,
    /// The stream has all changes after this place.
    pub(super) position: Lsn,
    /// What the table was when it was read.
    pub(super) definition: Definition,
    /// The read of all ids that has begun. `None` if the generation in use has all ids up to the
    /// position.
    pub(super) full_read: Option<Work<'r, Option<Read>>>,
}

impl<'r> Connection<'r> {
    /// Creates a temporary slot, and begins to read all ids.
    pub(super) async fn begin_temporary(self) -> Result<Begin<'r>, SourceError> {
        let (session, slot) = self.create_slot().await?;
        let full_read = self.read_first(&slot, slot.name.clone()).await?;
        Ok(Begin {
            stream: self.start_stream(session, &slot.name, slot.point).await?,
            slot: slot.name,
            permanent: None,
            position: slot.point,
            definition: self.server.definition,
            full_read: Some(full_read),
        })
    }

    /// Goes on in the log of a permanent slot, or begins to read all ids.
    pub(super) async fn begin_permanent(
        self,
        name: &str,
        resume: &mut Resume,
    ) -> Result<Begin<'r>, SourceError> {
        let Self { run, server, address, unfinished, .. } = self;
        let slot = open_slot(run, server, address, unfinished, name, resume.process).await?;
        let place = resume.find(run, server, &slot);
        let (position, definition, full_read) = match place {
            Some(place) => (place.position, place.definition, None),
            None => {
                let (session, temporary) = self.create_slot().await?;
                let full_read = self.read_first(&temporary, name.to_owned()).await?;
                drop(session);
                (temporary.point, server.definition, Some(full_read))
            }
        };
        let PermanentSlot { session, server: identity, .. } = slot;
        let stream = self.start_stream(session, name, position).await?;
        // From now on, no other client can use the slot.
        if server.slot(name).await?.is_none_or(|slot| slot.confirmed > position) {
            let message = "another client has used the replication slot, so the guard reads all ids \
                again";
            return Err(SourceError::Reread(message.to_owned()));
        }
        resume.begin(run, stream.process());
        let (slot, permanent) = (name.to_owned(), Some(identity));
        Ok(Begin { stream, slot, permanent, position, definition, full_read })
    }

    async fn create_slot(self) -> Result<(Session, Slot), SourceError> {
        create_slot(self.run, self.server, self.address, self.unfinished).await
    }

    async fn start_stream(
        self,
        session: Session,
        slot: &str,
        point: Lsn,
    ) -> Result<ChangeStream, SourceError> {
        let publication = &self.options.publication;
        let stream = ChangeStream::start(session, slot, point, publication, &self.address.user);
        self.server.in_time(stream).await
    }

    /// Starts the first read of all ids.
    async fn read_first(
        self,
        slot: &Slot,
        stream_slot: String,
    ) -> Result<Work<'r, Option<Read>>, SourceError> {
        let generation = self.run.start_generation(self.server.rows().await?)?;
        let full_read = self.start_read(slot, generation).await?;
        let read = Read { point: slot.point, definition: self.server.definition };
        Ok(Box::pin(self.finish_read(full_read, stream_slot, read)))
    }

    /// Reads all ids into a second generation, while the first one is in use. The read has a slot of
    /// its own for its snapshot. Returns `None` if the table becomes another one meanwhile.
    pub(super) async fn read_again(
        self,
        stream_slot: String,
        generation: Arc<Generation>,
    ) -> Result<Option<Read>, SourceError> {
        let definition = self.server.look(&stream_slot).await?.definition;
        let (session, slot) = self.create_slot().await?;
        let full_read = self.start_read(&slot, generation).await?;
        drop(session);
        let read = Read { point: slot.point, definition };
        self.finish_read(full_read, stream_slot, read).await
    }

    /// Starts to read all ids of the snapshot of a slot.
    async fn start_read(
        self,
        slot: &Slot,
        generation: Arc<Generation>,
    ) -> Result<FullRead, SourceError> {
        let Self { run, server, address, .. } = self;
        let (column, snapshot) = (&server.table.ids, Snapshot::Slot(&slot.snapshot));
        let read = FullRead::start(run, address, server.host, column, snapshot, generation);
        server.in_time(read).await
    }

    /// Waits until all ids are read.
    async fn finish_read(
        self,
        mut full_read: FullRead,
        stream_slot: String,
        read: Read,
    ) -> Result<Option<Read>, SourceError> {
        let rows = full_read.finish().await?;
        // The read still keeps the table as it is. A table that was rewritten before the read began
        // looks empty in an older snapshot.
        let look = self.server.look(&stream_slot).await?;
        drop(full_read);
        if look.definition != read.definition {
            return Ok(None);
        }
        self.run.count(rows);
        Ok(Some(read))
    }
}
