//! Starts the follower: creates the slot, and starts the full read and the stream.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::errors::source_error::SourceError;
use crate::ids::generation::Generation;
use crate::kinds::postgres::change_stream::ChangeStream;
use crate::kinds::postgres::connection::Connection;
use crate::kinds::postgres::definition::Definition;
use crate::kinds::postgres::full_read::{FullRead, Snapshot};
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::permanent_slot::{PermanentSlot, open_slot};
use crate::kinds::postgres::resume::Resume;
use crate::kinds::postgres::session::Session;
use crate::kinds::postgres::slot::{Slot, create_slot};
use crate::kinds::postgres::slot_state::SlotState;

/// A future that runs concurrently with the stream.
pub(super) type Work<'r, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + 'r>>;

/// A started stream and its state.
pub(super) struct Begin<'r> {
    pub(super) stream: ChangeStream,
    /// The name of the slot.
    pub(super) slot: String,
    /// The identity of the server of a permanent slot. The value is `None` for a temporary slot.
    pub(super) permanent: Option<String>,
    /// The stream contains all changes after this position.
    pub(super) position: Lsn,
    /// The definition of the table at the start of the stream.
    pub(super) definition: Definition,
    /// The running full read. The value is `None` if the current generation contains all ids up to the position.
    pub(super) full_read: Option<Work<'r, Option<Lsn>>>,
}

impl<'r> Connection<'r> {
    /// Creates a temporary slot, and starts a full read.
    pub(super) async fn begin_temporary(self) -> Result<Begin<'r>, SourceError> {
        let mut session = self.open_session().await?;
        let slot = create_slot(self, &mut session, None).await?;
        let full_read = self.read_first(&slot, slot.name.clone()).await?;
        Ok(Begin {
            stream: self.start_stream(session, &slot.name, slot.point, slot.point).await?,
            slot: slot.name,
            permanent: None,
            position: slot.point,
            definition: self.server.definition,
            full_read: Some(full_read),
        })
    }

    /// Continues the stream of a permanent slot at the last position. If the stream cannot continue, the method drops
    /// the slot, creates a new slot and starts a full read.
    pub(super) async fn begin_permanent(
        self,
        name: &str,
        resume: &mut Resume,
    ) -> Result<Begin<'r>, SourceError> {
        let Self { run, server, .. } = self;
        let found = open_slot(self, name, resume.process).await?;
        let place = resume.find(run, server, &found);
        let PermanentSlot { mut session, process, server: identity, state } = found;
        let (position, confirmed, full_read) = match (place, state) {
            (Some(place), Some(state)) => (place.position, state.confirmed, None),
            (_, state) => {
                // An old slot would send all changes since its last snapshot, and the server may no longer have these
                // changes.
                if state.is_some() {
                    server.drop_slot(name).await?;
                }
                let slot = create_slot(self, &mut session, Some(name)).await?;
                let full_read = self.read_first(&slot, name.to_owned()).await?;
                (slot.point, slot.point, Some(full_read))
            }
        };
        let stream = self.start_stream(session, name, position, confirmed).await?;
        // The stream now occupies the slot, so no other client can use the slot.
        let is_own = |state: SlotState| state.process == Some(process);
        if !server.slot(name).await?.is_some_and(|it| it.confirmed <= position && is_own(it)) {
            let message = "another client has used the replication slot, so the guard reads all ids \
                again";
            resume.forget(run, message);
            return Err(SourceError::Reread(message.to_owned()));
        }
        resume.begin(run, process);
        let (slot, permanent) = (name.to_owned(), Some(identity));
        let definition = server.definition;
        Ok(Begin { stream, slot, permanent, position, definition, full_read })
    }

    async fn open_session(self) -> Result<Session, SourceError> {
        self.server.in_time(Session::open(self.address, self.server.host)).await
    }

    async fn start_stream(
        self,
        session: Session,
        slot: &str,
        point: Lsn,
        confirmed: Lsn,
    ) -> Result<ChangeStream, SourceError> {
        let (publication, user) = (&self.options.publication, &self.address.user);
        let stream = ChangeStream::start(session, slot, point, confirmed, publication, user);
        self.server.in_time(stream).await
    }

    /// Starts the first full read.
    async fn read_first(
        self,
        slot: &Slot,
        stream_slot: String,
    ) -> Result<Work<'r, Option<Lsn>>, SourceError> {
        let (rows, table) = (self.server.rows().await?, &self.server.table);
        let generation = self.run.start_generation_of_table(rows, table.condition.is_some())?;
        let full_read = self.start_read(slot, generation).await?;
        let definition = self.server.definition;
        Ok(Box::pin(self.finish_read(full_read, stream_slot, slot.point, definition)))
    }

    /// Does a full read into a second generation, while the current generation stays in use. The full read creates a
    /// separate slot for its snapshot. Returns the result of `finish_read`.
    pub(super) async fn read_again(
        self,
        stream_slot: String,
        definition: Definition,
        generation: Arc<Generation>,
    ) -> Result<Option<Lsn>, SourceError> {
        let mut session = self.open_session().await?;
        let slot = create_slot(self, &mut session, None).await?;
        let full_read = self.start_read(&slot, generation).await?;
        drop(session);
        self.finish_read(full_read, stream_slot, slot.point, definition).await
    }

    /// Starts a full read from the snapshot of a slot.
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

    /// Waits until the full read ends. Returns the log position up to which the generation contains all changes.
    /// Returns `None` if the definition of the table has changed.
    async fn finish_read(
        self,
        mut full_read: FullRead,
        stream_slot: String,
        point: Lsn,
        definition: Definition,
    ) -> Result<Option<Lsn>, SourceError> {
        let rows = full_read.finish().await?;
        // The full read locks the definition of the table until `full_read` is dropped below. If the table was
        // rewritten after the snapshot and before the full read, the table looks empty in the snapshot.
        let state = self.server.state(&stream_slot).await?;
        drop(full_read);
        if state.definition != definition {
            return Ok(None);
        }
        self.run.count(rows);
        Ok(Some(point))
    }
}
