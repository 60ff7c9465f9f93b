//! The error types and the formatting of their messages.

pub(crate) mod escaped;
pub(crate) mod plain_io;
#[cfg(feature = "databases")]
pub(crate) mod redis_error;
pub(crate) mod source_error;
