//! Creates replication slots.

use std::time::Duration;

use postgres_protocol::escape::escape_identifier;
use tokio::time::{MissedTickBehavior, interval};

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::connection::Connection;
use crate::kinds::postgres::explain::SessionError;
use crate::kinds::postgres::lsn::Lsn;
use crate::kinds::postgres::server::{Server, lost_slot};
use crate::kinds::postgres::session::{Row, Session};
use crate::source::run::Run;

/// A new slot.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) name: String,
    /// The snapshot contains the transactions before this position. The stream contains the transactions after this
    /// position.
    pub(super) point: Lsn,
    /// The name of the snapshot. The snapshot exists until the next command on the connection.
    pub(super) snapshot: String,
}

/// Creates a slot on a replication connection: a permanent slot with the name `permanent`, or a temporary slot. The
/// server waits until all open transactions end. If the wait takes long, the status of the source lists the blocking
/// processes.
pub(super) async fn create_slot(
    connection: Connection<'_>,
    session: &mut Session,
    permanent: Option<&str>,
) -> Result<Slot, SourceError> {
    let Connection { server, address, unfinished, .. } = connection;
    unfinished.begin(server.host, session.process);
    let slot = create(connection, session, permanent).await;
    match &slot {
        Ok(_) => unfinished.end(),
        Err(_) => unfinished.cancel(address).await,
    }
    slot
}

async fn create(
    connection: Connection<'_>,
    session: &mut Session,
    permanent: Option<&str>,
) -> Result<Slot, SourceError> {
    let Connection { run, server, address, .. } = connection;
    let (name, temporary) = match permanent {
        Some(name) => (escape_identifier(name), ""),
        None => (random_name(), "TEMPORARY"),
    };
    let command =
        format!("CREATE_REPLICATION_SLOT {name} {temporary} LOGICAL pgoutput (SNAPSHOT 'export')");
    let row = run_command(run, server, session, &address.user, &command).await?;
    let slot = slot(&row).ok_or_else(|| undescribed(&address.user))?;
    // The two connections may have reached different servers behind one address.
    match server.slot(&slot.name).await? {
        Some(_) => Ok(slot),
        None => Err(lost_slot()),
    }
}

/// Runs a command that creates a slot. Returns the row of the response. The server waits until all open transactions
/// end.
async fn run_command(
    run: &Run,
    server: &Server,
    session: &mut Session,
    user: &str,
    command: &str,
) -> Result<Row, SourceError> {
    let process = session.process.number;
    let mut created = std::pin::pin!(session.query(command));
    let mut ticks = interval(Duration::from_millis(200));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut reported, mut tick) = (Vec::new(), 0_u32);
    let rows = loop {
        tokio::select! {
            rows = &mut created => break rows,
            _ = ticks.tick() => {
                tick = tick.wrapping_add(1);
                // The check runs after one second, and then every two seconds.
                if tick % 10 == 5 {
                    let blockers = server.blockers(process).await?;
                    if !blockers.is_empty() && blockers != reported {
                        run.report(&waits_for(&blockers));
                        reported = blockers;
                    }
                }
            }
        }
    };
    let rows = rows.map_err(|error| error.explained(user))?;
    rows.into_iter().next().ok_or_else(|| undescribed(user))
}

fn undescribed(user: &str) -> SourceError {
    SessionError::broken("the server describes no slot").explained(user)
}

/// Decodes the response: the name, the position, the snapshot and the plugin.
fn slot(row: &[Option<String>]) -> Option<Slot> {
    let [Some(name), Some(point), Some(snapshot), _] = row else { return None };
    let point = point.parse().ok()?;
    Some(Slot { name: name.clone(), point, snapshot: snapshot.clone() })
}

fn random_name() -> String {
    let mut random = [0; 8];
    // Without random bytes, two sources could choose the same name, and the server would reject one of them.
    _ = getrandom::fill(&mut random);
    format!("tamis_guard_{:016x}", u64::from_le_bytes(random))
}

fn waits_for(blockers: &[i32]) -> SourceError {
    let list = blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    SourceError::Preflight(format!(
        "the server creates the replication slot when the transactions of these processes end: \
         {list}; end them, such as with: SELECT pg_terminate_backend({})",
        blockers[0]
    ))
}
