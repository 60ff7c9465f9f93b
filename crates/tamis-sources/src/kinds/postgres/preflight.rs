//! Checks the server, and finds the configured table.

use tokio_postgres::Client;

use crate::errors::source_error::SourceError;
use crate::kinds::postgres::definition::{LINEAGE, TREE};
use crate::kinds::postgres::explain::explained;

/// The oldest supported version of PostgreSQL: the first version with column lists in publications.
const OLDEST: i32 = 150_000;

/// The log settings of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The size of a log page in bytes.
    pub(super) page: u64,
    /// The size of a log segment in bytes.
    pub(super) segment: u64,
}

/// The name of an existing table.
#[derive(Clone, Debug)]
pub(super) struct TableName {
    pub(super) schema: String,
    pub(super) table: String,
    /// The OID of the relation.
    pub(super) relation: u32,
    /// The letter of the relation kind in `pg_class`.
    pub(super) kind: String,
}

fn refuse<T>(message: String) -> Result<T, SourceError> {
    Err(SourceError::Preflight(message))
}

/// Rejects a server that is older than the version `oldest`.
pub(super) async fn check_version(client: &Client, oldest: i32) -> Result<(), SourceError> {
    let sql =
        "SELECT current_setting('server_version_num')::int, current_setting('server_version')";
    let row = client.query_one(sql, &[]).await.map_err(|error| explained(&error))?;
    let (number, version): (i32, &str) = (row.get(0), row.get(1));
    if number >= oldest {
        return Ok(());
    }
    let oldest = oldest / 10_000;
    refuse(format!("the server is PostgreSQL {version}; {oldest} or newer is needed"))
}

/// Rejects a database with the encoding `SQL_ASCII`. A server with the encoding `SQL_ASCII` does not convert texts, so
/// the bytes of an id may differ from the bytes in a request. For every encoding except `SQL_ASCII`, the server
/// converts texts to UTF-8.
pub(super) async fn check_text_encoding(client: &Client) -> Result<(), SourceError> {
    let sql = "SELECT current_setting('server_encoding') = 'SQL_ASCII'";
    let row = client.query_one(sql, &[]).await.map_err(|error| explained(&error))?;
    if !row.get::<_, bool>(0) {
        return Ok(());
    }
    refuse(
        "the encoding of the database is SQL_ASCII, so the server does not convert text to UTF-8; \
         use an integer or uuid column, or a database with another encoding"
            .to_owned(),
    )
}

/// Rejects a server that cannot send changes, or that would retain an unlimited log for a permanent slot.
pub(super) async fn check_settings(
    client: &Client,
    is_permanent: bool,
) -> Result<Settings, SourceError> {
    check_version(client, OLDEST).await?;
    let sql = "SELECT current_setting('wal_level'), current_setting('server_encoding'),
        (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_block_size'),
        (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size'),
        current_setting('max_replication_slots') = '0',
        current_setting('max_slot_wal_keep_size') = '-1'";
    let row = client.query_one(sql, &[]).await.map_err(|error| explained(&error))?;
    let level: &str = row.get(0);
    if level != "logical" {
        return refuse(format!(
            "wal_level is {level}, but logical replication needs wal_level = logical; poll the table \
             with follow = \"poll\", or run: ALTER SYSTEM SET wal_level = 'logical'; and restart the \
             server"
        ));
    }
    let encoding: &str = row.get(1);
    if encoding != "UTF8" {
        return refuse(format!("the encoding of the database is {encoding}; it must be UTF8"));
    }
    if row.get(4) {
        return refuse(
            "max_replication_slots is 0; run: ALTER SYSTEM SET max_replication_slots = N; \
             with N above 0, and restart the server"
                .to_owned(),
        );
    }
    if is_permanent && row.get(5) {
        return refuse(
            "max_slot_wal_keep_size is -1, so a stopped guard with a permanent slot would fill the \
             disk of the server; choose a limit above what other slots and standbys need and below \
             the free space, and run: ALTER SYSTEM SET max_slot_wal_keep_size = '10GB'; SELECT \
             pg_reload_conf()"
                .to_owned(),
        );
    }
    let size = |column| row.get::<_, i64>(column).max(1) as u64;
    Ok(Settings { page: size(2), segment: size(3) })
}

/// Finds the configured table. Rejects a table with a subscription, and a partition of a table with a subscription.
pub(super) async fn find_table(client: &Client, text: &str) -> Result<TableName, SourceError> {
    let name = find_name(client, text).await?;
    let TableName { schema, table, .. } = &name;
    let sql = format!(
        "{TREE}, {LINEAGE} SELECT s.subname FROM lineage l JOIN pg_subscription_rel r ON r.srrelid = l.oid
         JOIN pg_subscription s ON s.oid = r.srsubid LIMIT 1"
    );
    let row = client.query_opt(&sql, &[schema, table]).await.map_err(|error| explained(&error))?;
    match row {
        None => Ok(name),
        Some(row) => refuse(format!(
            "the subscription {} writes rows of another server into {schema}.{table}, and the guard cannot know how far \
             this server is behind; connect to the server that publishes the table, or drop the subscription if it has \
             ended",
            row.get::<_, &str>(0)
        )),
    }
}

async fn find_name(client: &Client, text: &str) -> Result<TableName, SourceError> {
    let Some((schema, table)) = parse_name(text) else {
        return refuse(format!("the table {text:?} is no name; write table or schema.table"));
    };
    let select = "SELECT n.nspname, c.relname, c.oid, c.relkind::text
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace";
    let row = match &schema {
        Some(schema) => {
            let sql = format!("{select} WHERE n.nspname = $1 AND c.relname = $2");
            client.query_opt(&sql, &[schema, &table]).await
        }
        None => {
            let sql = format!("{select} WHERE c.oid = to_regclass(quote_ident($1))");
            client.query_opt(&sql, &[&table]).await
        }
    };
    let Some(row) = row.map_err(|error| explained(&error))? else {
        let sql = format!("{select} WHERE c.relname = $1 AND c.relkind IN ('r', 'p')");
        let others = client.query(&sql, &[&table]).await.map_err(|error| explained(&error))?;
        let others: Vec<String> =
            others.iter().map(|row| format!("{}.{table}", row.get::<_, &str>(0))).collect();
        let hint = if others.is_empty() {
            "; check the database of the URL and the name of the table".to_owned()
        } else {
            format!("; set table to {}", others.join(" or "))
        };
        return refuse(format!("there is no table {text}{hint}"));
    };
    Ok(TableName { schema: row.get(0), table: row.get(1), relation: row.get(2), kind: row.get(3) })
}

/// Splits the name of a table into an optional schema and a name. Double quotes enclose names with dots.
fn parse_name(text: &str) -> Option<(Option<String>, String)> {
    let mut names = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let last = names.last_mut().expect("there is a name");
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                last.push('"');
            }
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => names.push(String::new()),
            _ => last.push(character),
        }
    }
    if is_quoted || names.iter().any(String::is_empty) {
        return None;
    }
    let table = names.pop()?;
    let schema = names.pop();
    names.is_empty().then_some((schema, table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_may_have_a_schema_and_quotes() {
        for (text, schema, table) in [
            ("products", None, "products"),
            ("shop.products", Some("shop"), "products"),
            ("Shop.Products", Some("Shop"), "Products"),
            ("\"a.b\".c", Some("a.b"), "c"),
            ("\"say \"\"hi\"\"\"", None, "say \"hi\""),
        ] {
            let expected = Some((schema.map(str::to_owned), table.to_owned()));
            assert_eq!(parse_name(text), expected, "{text}");
        }
        for wrong in ["", ".", "a.", ".b", "a.b.c", "\"a"] {
            assert_eq!(parse_name(wrong), None, "{wrong}");
        }
    }
}
