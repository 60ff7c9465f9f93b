//! The ids of a table for an audit.

use tokio::runtime::{Builder, Runtime};

use crate::id::IdType;
use crate::source::audit_source::AuditSource;
use crate::source::error::SourceError;
use crate::source::mysql::bulk::each_row;
use crate::source::mysql::options::MysqlOptions;
use crate::source::mysql::server::{Server, connect_to};
use crate::source::mysql::table::Table;

/// Reads the ids of a table for an audit.
#[derive(Debug)]
pub struct MysqlAudit {
    options: MysqlOptions,
    table: Table,
    /// The identity of the server.
    identity: String,
    runtime: Runtime,
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
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| SourceError::Connect(error.to_string()))?;
        let open = async {
            match options.poll {
                Some(_) => Server::connect(options, id).await,
                None => Server::open(options, id).await,
            }
        };
        let Server { table, identity, .. } = runtime.block_on(open)?;
        Ok(Self { options: options.clone(), table, identity, runtime })
    }
}

impl AuditSource for MysqlAudit {
    /// Reads all ids from one snapshot.
    fn each_row(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.runtime.block_on(async {
            let mut connection = connect_to(&self.options, &self.identity).await?;
            let row = |text: Option<&[u8]>| text.map_or(Ok(()), &mut *each);
            each_row(&mut connection, &self.table, "TRUE", row).await
        })
    }
}
