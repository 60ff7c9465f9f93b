//! Opens a permanent replication slot, which survives a stop of the guard.

use std::time::Duration;

use tokio::time::sleep;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::connection::Connection;
use crate::kinds::postgres::explain::SessionError;
use crate::kinds::postgres::server::Server;
use crate::kinds::postgres::session::{Row, Session};
use crate::kinds::postgres::slot_state::SlotState;

/// The number of tests whether the slot is free, at intervals of 100 ms. The server soon detects that the process of a
/// guard has ended.
const LOOKS: u32 = 20;

/// A permanent slot that no process used at the last test, and a replication connection for its stream.
pub(super) struct PermanentSlot {
    pub(super) session: Session,
    /// The server process that serves the connection.
    pub(super) process: i32,
    /// The system identifier of the server and its timeline.
    pub(super) server: String,
    /// The state of the slot. The value is `None` if no slot with this name exists.
    pub(super) state: Option<SlotState>,
}

/// Finds a slot. `former` is the server process of the last connection of this source. The former process may still use
/// the slot.
pub(super) async fn open_slot(
    connection: Connection<'_>,
    name: &str,
    former: Option<i32>,
) -> Result<PermanentSlot, SourceError> {
    let Connection { server, address, .. } = connection;
    let open = async {
        let mut session = Session::open(address, server.host).await?;
        let facts = async {
            let system = first(session.query("IDENTIFY_SYSTEM").await?)?;
            let process = first(session.query("SELECT pg_backend_pid()").await?)?;
            Ok((identity(&system)?, number(&process)?))
        };
        let facts = facts.await.map_err(|error: SessionError| error.explained(&address.user));
        let (identity, process) = facts?;
        Ok((session, identity, process))
    };
    let (session, identity, process) = server.in_time(open).await?;
    let state = free_slot(server, name, former).await?;
    Ok(PermanentSlot { session, process, server: identity, state })
}

/// Waits until no process uses the slot. Ends the former server process of this source.
async fn free_slot(
    server: &Server,
    name: &str,
    former: Option<i32>,
) -> Result<Option<SlotState>, SourceError> {
    for _ in 0..LOOKS {
        let state = server.slot(name).await?;
        match state.as_ref().and_then(|it| it.process) {
            None => return Ok(state),
            // The server may detect a broken network only after its `wal_sender_timeout`.
            Some(process) if Some(process) == former => server.end_process(process).await?,
            Some(_) => {}
        }
        sleep(Duration::from_millis(100)).await;
    }
    Err(SourceError::Preflight(format!(
        "another process uses the replication slot {name}; give each set of each guard a slot of its \
         own"
    )))
}

fn first(rows: Vec<Row>) -> Result<Row, SessionError> {
    rows.into_iter().next().ok_or_else(unidentified)
}

/// Reads the system identifier and the timeline from a row. The row also contains the end of the log and the database.
fn identity(row: &Row) -> Result<String, SessionError> {
    match &**row {
        [Some(system), Some(timeline), ..] => Ok(format!("{system}/{timeline}")),
        _ => Err(unidentified()),
    }
}

fn number(row: &Row) -> Result<i32, SessionError> {
    row.first().and_then(|text| text.as_ref()?.parse().ok()).ok_or_else(unidentified)
}

fn unidentified() -> SessionError {
    SessionError::broken("the server does not identify itself")
}
