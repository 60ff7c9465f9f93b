//! The connection for queries, and the data for opening further connections.

use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::server::Server;
use crate::kinds::postgres::unfinished_slot::UnfinishedSlot;
use crate::source::run::Run;

/// The connection for queries, and the data for opening further connections.
#[derive(Clone, Copy)]
pub(super) struct Connection<'r> {
    pub(super) run: &'r Run,
    pub(super) server: &'r Server,
    pub(super) address: &'r Address,
    pub(super) unfinished: &'r UnfinishedSlot,
    pub(super) options: &'r PostgresOptions,
}
