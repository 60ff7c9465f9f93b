//! `COPY`: copies large values on a separate thread.

use tamis_commands::WriteKeys;
use tamis_commands::text::server;
use tamis_resp::Reply;

use crate::handlers::write_log;
use crate::session::write_keys::copy::{Copied, copy, copy_of, heap_bytes, refusal};
use crate::session::{Call, Session};
use crate::system::clock::now_millis;

/// Copies a value. A separate thread copies a large value under a lease, while other commands run.
/// The command locks the keys exclusively only while the command stores the copy under the
/// destination key. If the source changes during the copy, the copy of a reserved Bloom filter is
/// updated with the changed bits. A changed source of any other type is copied again under the
/// exclusive lock.
pub(super) async fn copy_in_background(
    session: &mut Session,
    call: Call<'_>,
) -> Result<Reply, Reply> {
    let Call { command, argv, env } = call;
    let server = session.server.clone();
    let bytes;
    let is_large = {
        let keys = server.keyspace.shared();
        bytes = heap_bytes(argv, &env, &keys);
        refusal(argv, &env, &keys).is_none() && keys.is_large(argv[1], env.now_millis)
    };
    let (mut copied, mut permit, mut hold): (Option<Copied>, _, _) = (None, None, None);
    if is_large {
        permit = Some(server.copies.acquire().await.expect("it is never closed"));
        // While this command waited for the permit, other commands may have used memory.
        session.check_change(command, 0, &server.config()).map_err(Reply::error)?;
        hold = Some(server.reserve_memory(bytes).ok_or(Reply::error(server::MEMORY))?);
        let (server, key, now) = (session.server.clone(), argv[1].to_vec(), now_millis());
        let copying =
            tokio::task::spawn_blocking(move || server.keyspace.lease(&key, now, copy_of));
        copied = copying.await.map_err(|_| Reply::error(server::NOT_COPIED))?;
    }
    let alone = server.keyspace.exclusive_to_change(|key| call.may_access(key)).await;
    session.check_change(command, 0, &server.config()).map_err(Reply::error)?;
    let call = call.at(now_millis());
    let _admitted = write_log::admit(&server, WriteKeys::Copy, call, &alone)?;
    // After this line, the keyspace counts the memory of the copy.
    drop(hold);
    let done = copy(argv, &call.env, &alone, copied, server.memory_left());
    write_log::log(&server, WriteKeys::Copy, call, &alone, &done);
    drop(permit);
    done
}
