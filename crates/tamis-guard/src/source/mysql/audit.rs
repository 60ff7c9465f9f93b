//! The ids of a table for an audit.

use crate::ids::id::IdType;
use crate::source::audit_source::AuditSource;
use crate::source::error::SourceError;
use crate::source::mysql::options::MysqlOptions;
use crate::source::mysql::row_reader::RowReader;
use crate::source::mysql::server::Server;
use crate::source::mysql::table::Table;
use crate::source::runtime::runtime;

/// Reads the ids of a table for an audit.
#[derive(Debug)]
pub struct MysqlAudit {
    options: MysqlOptions,
    table: Table,
    /// The identity of the server.
    identity: String,
}

impl MysqlAudit {
    /// Connects to the server and finds the column.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the server cannot be reached, or refuses.
    ///
    /// # Panics
    ///
    /// If it is called from an asynchronous task.
    pub fn open(options: &MysqlOptions, id: &IdType) -> Result<Self, SourceError> {
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
    /// Reads all ids from one snapshot.
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
