//! A replication slot that stays while the guard is stopped.

use std::time::Duration;

use tokio::time::sleep;

use crate::source::error::SourceError;
use crate::source::postgres::address::Address;
use crate::source::postgres::explain::SessionError;
use crate::source::postgres::lsn::Lsn;
use crate::source::postgres::server::Server;
use crate::source::postgres::session::Session;
use crate::source::postgres::slot::create_permanent;
use crate::source::postgres::slot_state::SlotState;
use crate::source::postgres::unfinished_slot::UnfinishedSlot;
use crate::source::run::Run;

/// How often, in steps of 100 ms, the source looks whether the slot is free. The server notices soon
/// that the process of a guard has ended.
const LOOKS: u32 = 20;

/// A permanent slot that no other process used a moment ago.
pub(super) struct PermanentSlot {
    /// A replication connection. The stream begins on it.
    pub(super) session: Session,
    /// The system identifier of the server and its timeline.
    pub(super) server: String,
    /// The server has the changes after this place.
    pub(super) confirmed: Lsn,
}

/// Finds the slot, or creates it. A slot that has lost its log is replaced. `former` is the process
/// that this source had for its last connection: it may still have the slot.
pub(super) async fn open_slot(
    run: &Run,
    server: &Server,
    address: &Address,
    unfinished: &UnfinishedSlot,
    name: &str,
    former: Option<i32>,
) -> Result<PermanentSlot, SourceError> {
    let mut session = server.in_time(Session::open(address, server.host)).await?;
    let identity = async {
        let rows = session.query("IDENTIFY_SYSTEM").await;
        identity(rows.map_err(|error| error.explained(&address.user))?, &address.user)
    };
    let identity = server.in_time(identity).await?;
    let mut state = free_slot(server, name, former).await?;
    if state.as_ref().is_some_and(|it| it.is_lost) {
        server.drop_slot(name).await?;
        state = None;
    }
    let confirmed = match state {
        Some(state) if !state.is_usable => {
            return Err(SourceError::Preflight(format!(
                "the replication slot {name} is not one of the guard: it is temporary, physical, for \
                 two-phase commits, of another database or of another plugin than pgoutput; choose \
                 another name for `slot`"
            )));
        }
        Some(state) => state.confirmed,
        None => create_permanent(run, server, &mut session, address, unfinished, name).await?,
    };
    Ok(PermanentSlot { session, server: identity, confirmed })
}

/// Waits until no process uses the slot. Ends the former process of this source.
async fn free_slot(
    server: &Server,
    name: &str,
    former: Option<i32>,
) -> Result<Option<SlotState>, SourceError> {
    for _ in 0..LOOKS {
        let state = server.slot(name).await?;
        match state.as_ref().and_then(|it| it.process) {
            None => return Ok(state),
            // The server may notice a broken network only after its `wal_sender_timeout`.
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

/// Reads the answer: the system identifier, the timeline, the end of the log and the database.
fn identity(rows: Vec<Vec<Option<String>>>, user: &str) -> Result<String, SourceError> {
    match rows.into_iter().next().as_deref() {
        Some([Some(system), Some(timeline), ..]) => Ok(format!("{system}/{timeline}")),
        _ => Err(SessionError::broken("the server does not identify itself").explained(user)),
    }
}
