//! The requests that the core passes to a transport, and the replies.

use redis::{Cmd, Value};

use crate::error::RedisItemError;

/// A command on one key. A transport sends the command to the node of the key.
#[derive(Clone, Debug)]
pub struct NodeRequest {
    /// The key whose slot determines the node.
    pub key: Vec<u8>,
    /// The command with its arguments.
    pub command: Cmd,
    /// Whether a transport may safely send the command twice. If `is_repeatable` is false, a
    /// transport sends the command again only after a reply that the server did not execute the
    /// command.
    pub is_repeatable: bool,
}

/// The reply to a request: a value or the error of the connection. The value may be
/// [`Value::ServerError`].
pub type NodeReply = Result<Value, SendError>;

/// The reason why a request has no reply. The server may or may not have executed the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    /// The error of the connection.
    pub message: String,
}

impl NodeRequest {
    /// Creates a request for a command whose first argument is the key.
    pub(crate) fn new(name: &'static str, key: Vec<u8>) -> Self {
        Self::with_capacity(name, key, 0, 0)
    }

    /// Creates a request, and reserves memory for `arguments` arguments with `bytes` bytes in all.
    pub(crate) fn with_capacity(
        name: &'static str,
        key: Vec<u8>,
        arguments: usize,
        bytes: usize,
    ) -> Self {
        let mut command = Cmd::with_capacity(arguments, bytes + key.len());
        command.arg(name).arg(&key);
        Self { key, command, is_repeatable: true }
    }

    /// Creates a request for a script. The first key determines the slot of the request.
    pub(crate) fn script(text: &'static str, keys: &[Vec<u8>]) -> Self {
        let mut command = Cmd::new();
        command.arg("EVAL").arg(text).arg(keys.len()).arg(keys);
        Self { key: keys[0].clone(), command, is_repeatable: true }
    }
}

/// Returns the integers of an array in a reply.
pub(crate) fn integers(key: &[u8], reply: NodeReply) -> Result<Vec<i64>, RedisItemError> {
    let Value::Array(values) = value(key, reply)? else {
        return Err(RedisItemError::unexpected(key, "is not an array"));
    };
    let integer = |value| match value {
        Value::Int(integer) => Ok(integer),
        _ => Err(RedisItemError::unexpected(key, "is not an array of integers")),
    };
    values.into_iter().map(integer).collect()
}

/// Returns the integer of a reply.
pub(crate) fn integer(key: &[u8], reply: NodeReply) -> Result<i64, RedisItemError> {
    match value(key, reply)? {
        Value::Int(integer) => Ok(integer),
        _ => Err(RedisItemError::unexpected(key, "is not an integer")),
    }
}

/// Returns the string of a reply, or `None` if the key is missing.
pub(crate) fn bytes(key: &[u8], reply: NodeReply) -> Result<Option<Vec<u8>>, RedisItemError> {
    match value(key, reply)? {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::Nil => Ok(None),
        _ => Err(RedisItemError::unexpected(key, "is not a string")),
    }
}

/// Returns the value of a reply, or the error of the server.
pub(crate) fn value(key: &[u8], reply: NodeReply) -> Result<Value, RedisItemError> {
    match reply {
        Ok(Value::ServerError(error)) => {
            let detail = error.details().unwrap_or_default();
            Err(RedisItemError::of_server(key, error.code(), detail))
        }
        Ok(value) => Ok(value),
        Err(error) => Err(RedisItemError::Connection { message: error.message.into() }),
    }
}
