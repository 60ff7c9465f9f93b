//! Two connections that together detect changes of keys.

use std::path::Path;

use tamis_redis::ServerAddress;
use tamis_resp::Reply;

use crate::errors::redis_error::RedisSourceError;
use crate::kinds::redis::connection::{Connection, IsStopped};

/// The maximum number of keys in one command.
const KEYS: usize = 1000;

/// Two connections to one server. One connection watches keys.
#[derive(Debug)]
pub(super) struct Watch {
    keys: Vec<Vec<u8>>,
    watching: Connection,
    other: Connection,
}

impl Watch {
    pub(super) fn connect(
        address: &ServerAddress,
        ca: Option<&Path>,
        is_stopped: IsStopped<'_>,
    ) -> Result<Self, RedisSourceError> {
        let watching = Connection::open(address, ca, is_stopped)?;
        let other = Connection::open(address, ca, is_stopped)?;
        Ok(Self { keys: Vec::new(), watching, other })
    }

    /// Tests that the server is a primary. A replica and a replaced primary lack the latest items.
    pub(super) fn check_role(&mut self, is_stopped: IsStopped<'_>) -> Result<(), RedisSourceError> {
        let info = self.other.call(&[b"INFO", b"replication"], is_stopped);
        let info = match info {
            Ok(Reply::Bulk(info)) => info,
            Ok(_) => return Err(RedisSourceError::Unexpected("a reply to INFO")),
            Err(RedisSourceError::Server(message)) if message.starts_with("NOPERM") => {
                return Err(RedisSourceError::NoRole(message));
            }
            Err(error) => return Err(error),
        };
        let mut lines = info.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        match lines.find_map(|line| line.strip_prefix(b"role:")) {
            Some(b"master") => Ok(()),
            Some(_) => Err(RedisSourceError::Replica),
            None => Err(RedisSourceError::Unexpected("a role in the reply to INFO")),
        }
    }

    /// Ends the watch of all keys.
    pub(super) fn restart(&mut self, is_stopped: IsStopped<'_>) -> Result<(), RedisSourceError> {
        self.keys.clear();
        self.watching.call(&[b"UNWATCH"], is_stopped)?;
        self.other.call(&[b"UNWATCH"], is_stopped)?;
        Ok(())
    }

    /// Watches additional keys. After this call, the caller reads the keys with [`reader`](Self::reader).
    pub(super) fn watch(
        &mut self,
        keys: Vec<Vec<u8>>,
        is_stopped: IsStopped<'_>,
    ) -> Result<(), RedisSourceError> {
        watch(&mut self.watching, &keys, is_stopped)?;
        self.keys.extend(keys);
        Ok(())
    }

    /// Returns the connection that reads values.
    pub(super) fn reader(&mut self) -> &mut Connection {
        &mut self.other
    }

    /// Tests whether the keys are unchanged since they were watched. After the test, the method continues to watch the
    /// keys.
    pub(super) fn is_unchanged(
        &mut self,
        is_stopped: IsStopped<'_>,
    ) -> Result<bool, RedisSourceError> {
        // The second watch starts before the check, so that no change falls between the two watches.
        watch(&mut self.other, &self.keys, is_stopped)?;
        self.watching.send(&[b"MULTI"])?;
        self.watching.send(&[b"EXEC"])?;
        self.watching.reply(is_stopped)?;
        let is_unchanged = match self.watching.reply(is_stopped)? {
            Reply::Array(replies) if replies.is_empty() => true,
            Reply::Null | Reply::NullArray => false,
            _ => return Err(RedisSourceError::Unexpected("a reply to EXEC")),
        };
        std::mem::swap(&mut self.watching, &mut self.other);
        Ok(is_unchanged)
    }
}

fn watch(
    connection: &mut Connection,
    keys: &[Vec<u8>],
    is_stopped: IsStopped<'_>,
) -> Result<(), RedisSourceError> {
    for keys in keys.chunks(KEYS) {
        let mut argv: Vec<&[u8]> = vec![b"WATCH"];
        argv.extend(keys.iter().map(Vec::as_slice));
        connection.call(&argv, is_stopped)?;
    }
    Ok(())
}
