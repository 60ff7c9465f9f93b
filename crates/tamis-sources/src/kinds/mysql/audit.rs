//! Reads the ids of a table for an audit.

use crate::errors::source_error::SourceError;
use crate::ids::id::IdType;
use crate::kinds::mysql::options::MysqlOptions;
use crate::kinds::mysql::row_reader::RowReader;
use crate::kinds::mysql::server::Server;
use crate::kinds::mysql::table::Table;
use crate::source::audit_source::AuditSource;
use crate::source::runtime::runtime;

/// Reads the ids of a table for an audit.
#[derive(Debug)]
pub(super) struct MysqlAudit {
    options: MysqlOptions,
    table: Table,
    /// The identity of the server.
    identity: String,
}

impl MysqlAudit {
    /// Connects to the server and finds the id column.
    pub(super) fn open(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
        let open = async {
            match options.poll {
                Some(_) => Server::connect(options, id).await,
                None => Server::open(options, id).await,
            }
        };
        let Server { table, identity, .. } = runtime()?.block_on(open)?;
        Ok(Self { options: options.clone(), table, identity })
    }
}

impl AuditSource for MysqlAudit {
    /// Reads all ids from one snapshot of the database.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        runtime()?.block_on(async {
            let mut reader = RowReader::open(&self.options, &self.identity, None).await?;
            let row = |text: Option<&[u8]>| text.map_or(Ok(()), &mut *each);
            reader.each_row(&self.table, "TRUE", row).await
        })
    }
}
