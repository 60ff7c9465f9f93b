//! Why data of a command was not decoded.

use tamis_commands::text;
use tamis_resp::Reply;

/// Why data was not decoded.
#[derive(Debug)]
pub(crate) enum NotDecoded {
    /// The server has no memory for the value now.
    Memory,
    /// The data is invalid or not allowed.
    Refused(Reply),
}

impl NotDecoded {
    /// Returns the reply to the command.
    pub fn into_reply(self) -> Reply {
        match self {
            NotDecoded::Memory => Reply::error(text::server::MEMORY),
            NotDecoded::Refused(reply) => reply,
        }
    }
}
