//! What the stories need to know of MariaDB.

use tamis_sources::MysqlOptions;

use crate::server::{DURABLE, Server};
use crate::stories::database::Database;

impl Database for Server {
    type Options = MysqlOptions;

    const SCHEME: &'static str = "mysql";
    const DURABLE: &'static [&'static str] = DURABLE;
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
    const GOODS: &'static str = "CREATE TABLE goods (
        id BIGINT PRIMARY KEY, status VARCHAR(20), stock INT, is_new BOOLEAN,
        kind ENUM('new', 'used'), deleted_at TIMESTAMP NULL) ENGINE=InnoDB CHARACTER SET utf8mb4";
    const ANALYZE_GOODS: &'static str = "ANALYZE TABLE goods";
    const TEST_NAMES: &'static str = "ALTER TABLE products CONVERT TO CHARACTER SET utf8mb4";

    fn continued(options: &MysqlOptions) -> MysqlOptions {
        options.clone()
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
