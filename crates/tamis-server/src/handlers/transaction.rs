//! The commands of transactions: `MULTI`, `DISCARD`, `WATCH`, `UNWATCH`.

use tamis_commands::text::server;
use tamis_resp::Reply;

use crate::session::transaction::Transaction;
use crate::session::{Call, Session};

pub(super) fn multi(session: &mut Session) -> Reply {
    if session.transaction.is_some() {
        return Reply::error(server::NESTED_MULTI);
    }
    session.transaction = Some(Transaction::new(session.server.held.hold(0)));
    session.client.properties.lock().queued = Some(0);
    Reply::ok()
}

pub(super) fn discard(session: &mut Session) -> Reply {
    if session.transaction.is_none() {
        return Reply::error(server::DISCARD_ALONE);
    }
    end(session);
    Reply::ok()
}

/// Ends the transaction and clears the watched keys. Returns the transaction.
pub(crate) fn end(session: &mut Session) -> Option<Transaction> {
    session.client.properties.lock().queued = None;
    session.watched.clear();
    session.transaction.take()
}

/// The maximum memory of the keys that a client watches, in bytes. Above this limit, the client
/// cannot watch more keys.
const MAX_WATCHED_BYTES: u64 = 512 << 20;

pub(super) fn watch(session: &mut Session, Call { argv, env, .. }: Call<'_>) -> Reply {
    if session.transaction.is_some() {
        return Reply::error(server::WATCH_IN_MULTI);
    }
    if session.server.memory_left() == 0 || session.watched.bytes() > MAX_WATCHED_BYTES {
        return Reply::error(server::MEMORY);
    }
    let server = session.server.clone();
    let keys = server.keyspace.shared();
    for key in &argv[1..] {
        session.watched.watch(key, || keys.version(key, env.now_millis));
    }
    Reply::ok()
}

pub(super) fn unwatch(session: &mut Session) -> Reply {
    session.watched.clear();
    Reply::ok()
}
