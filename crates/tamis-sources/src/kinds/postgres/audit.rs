//! Reads the ids of a table for an audit.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::postgres::address::Address;
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::polled::find;
use crate::kinds::postgres::row_reader::RowReader;
use crate::kinds::postgres::server::Server;
use crate::source::audit_source::AuditSource;
use crate::source::runtime::{runtime, with_timeout};

/// The time limit for a response of the server.
const LIMIT: Duration = Duration::from_secs(60);

/// Reads the ids of a table for an audit.
#[derive(Debug)]
pub(super) struct PostgresAudit {
    address: Address,
    options: PostgresOptions,
    id: IdType,
    runtime: Runtime,
}

impl PostgresAudit {
    /// Connects to the server and finds the id column.
    pub(super) fn open(options: &PostgresOptions, id: &IdType) -> Result<Self, SourceError> {
        let runtime = runtime()?;
        let address = Address::new(options)?;
        let audit = Self { address, options: options.clone(), id: id.clone(), runtime };
        audit.runtime.block_on(audit.find())?;
        Ok(audit)
    }

    /// Returns the index of the host and the id column.
    async fn find(&self) -> Result<(usize, IdColumn), SourceError> {
        let Self { address, options, id, .. } = self;
        with_timeout(LIMIT, async {
            if options.poll.is_some() {
                let found = find(address, options, id, LIMIT).await?;
                return Ok((found.host, found.column));
            }
            let server = Server::open(address, options, id, LIMIT).await?;
            Ok((server.host, server.table.ids))
        })
        .await
    }
}

impl AuditSource for PostgresAudit {
    /// Reads all ids from one snapshot of the database.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.runtime.block_on(async {
            let (host, column) = self.find().await?;
            let reader = RowReader::open(&self.address, host, None).await?;
            let each = |text: Option<&[u8]>| text.map_or(Ok(()), &mut *each);
            reader.each_row(column.kind, &column.copy(), each).await
        })
    }
}
