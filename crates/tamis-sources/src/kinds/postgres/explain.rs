//! Converts errors of the server, and adds the SQL that fixes each error.

use std::error::Error as _;

use postgres_protocol::escape::escape_identifier;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::errors::source_error::SourceError;

/// Converts an error of a query or a login.
pub(super) fn explained(error: &Error) -> SourceError {
    match error.as_db_error() {
        Some(db) if *db.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            SourceError::Connect(without_tls(db.message()))
        }
        Some(db) => SourceError::Connect(db.message().to_owned()),
        None => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            SourceError::Connect(format!("{error}{cause}"))
        }
    }
}

/// Adds to a message the URL parameter for a server that requires TLS.
fn without_tls(message: &str) -> String {
    format!("{message}; if the server wants TLS, add ?sslmode=require to the URL")
}

/// The reason why a command on a replication connection failed.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The server returned an error. `code` is an SQLSTATE code.
    Server { code: String, message: String },
    /// The connection broke, or the server sent an invalid message.
    Broken(String),
}

impl SessionError {
    pub(super) fn broken(error: impl std::fmt::Display) -> Self {
        Self::Broken(error.to_string())
    }

    /// Converts the error, and adds the SQL that fixes the error.
    pub(super) fn explained(self, user: &str) -> SourceError {
        let (code, message) = match self {
            Self::Server { code, message } => (code, message),
            Self::Broken(message) => return SourceError::Connect(message),
        };
        let system = |setting: &str| {
            format!("ALTER SYSTEM SET {setting} = N; with a larger N, and restart the server")
        };
        let sql = if code == SqlState::INSUFFICIENT_PRIVILEGE.code() {
            format!("ALTER ROLE {} REPLICATION", escape_identifier(user))
        } else if code == SqlState::CONFIGURATION_LIMIT_EXCEEDED.code() {
            system("max_replication_slots")
        } else if code == SqlState::TOO_MANY_CONNECTIONS.code() {
            system("max_wal_senders")
        } else if code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION.code() {
            return SourceError::Connect(without_tls(&message));
        } else {
            return SourceError::Connect(message);
        };
        SourceError::Preflight(format!("{message}; run: {sql}"))
    }
}
