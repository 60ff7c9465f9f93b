//! What the stories need to know of MariaDB.

use std::sync::Arc;

use tamis_guard::source::{MysqlAudit, MysqlOptions, Source, SourceOptions};
use tamis_guard::{IdSet, IdType, SnapshotOptions};

use crate::server::Server;
use crate::stories::database::Database;

impl Database for Server {
    type Options = MysqlOptions;
    type Audit = MysqlAudit;

    const SCHEME: &'static str = "mysql";
    const DURABLE: &'static [&'static str] =
        &["--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"];
    const WITHOUT_LOG: &'static [&'static str] = &["--skip-log-bin"];
    const CONTINUED: &'static [&'static str] = &[];
    const KEEPS_PLACE: bool = true;
    const KEEPS_OLD_LOG: bool = true;
    const NEXT_LOG: &'static str = "FLUSH BINARY LOGS";
    const ITEMS: &'static str = "CREATE TABLE items (
        id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20),
        updated_at TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
        INDEX (updated_at)) ENGINE=InnoDB;
        CREATE TABLE deleted (id BIGINT)";
    const DELETED_TEXTS: &'static str = "ALTER TABLE deleted MODIFY id VARCHAR(20)";

    fn source(ids: &Arc<IdSet>, options: &MysqlOptions, times: SourceOptions) -> Source {
        Source::mysql(Arc::clone(ids), options.clone(), times)
    }

    fn audit(options: &MysqlOptions, id: &IdType) -> MysqlAudit {
        MysqlAudit::open(options, id).unwrap()
    }

    fn continued(options: &MysqlOptions, snapshot: SnapshotOptions) -> MysqlOptions {
        MysqlOptions { snapshot: Some(snapshot), ..options.clone() }
    }

    fn numbers(first: u64, last: u64) -> String {
        format!("SELECT seq AS id FROM seq_{first}_to_{last}")
    }

    fn replace(id: u64) -> String {
        format!("REPLACE INTO products VALUES ('again', {id})")
    }

    fn create_new(table: &str) -> String {
        format!("CREATE TABLE new LIKE {table}")
    }

    fn swap(table: &str) -> String {
        format!("RENAME TABLE {table} TO old, new TO {table}")
    }
}
