//! The checks of a table, of one of its columns and of its publication, with queries of the catalog.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::errors::source_error::SourceError;
use crate::ids::fold::Fold;
use crate::ids::id::IdType;
use crate::kinds::postgres::column::ColumnKind;
use crate::kinds::postgres::definition::{HAS_IDENTITY, TREE, UNIQUE_INDEXES};
use crate::kinds::postgres::explain::explained;
use crate::kinds::postgres::id_column::IdColumn;
use crate::kinds::postgres::options::PostgresOptions;
use crate::kinds::postgres::preflight::TableName;

/// Quoted names for SQL.
pub(super) struct Quoted {
    pub(super) table: String,
    pub(super) column: String,
    pub(super) publication: String,
    pub(super) schema: String,
    pub(super) user: String,
}

/// Quotes the names of the table, its column, its publication and the user for SQL.
async fn quoted(
    client: &Client,
    name: &TableName,
    options: &PostgresOptions,
) -> Result<Quoted, SourceError> {
    let sql = "SELECT format('%I.%I', $1::text, $2::text), quote_ident($3), quote_ident($4),
        quote_ident($1), quote_ident(current_user)";
    let names = [&name.schema, &name.table, &options.column, &options.publication];
    let row = client.query_one(sql, &names.each_ref().map(|it| *it as _)).await;
    let row = row.map_err(|error| explained(&error))?;
    Ok(Quoted {
        table: row.get(0),
        column: row.get(1),
        publication: row.get(2),
        schema: row.get(3),
        user: row.get(4),
    })
}

/// The checks of a table and of one of its columns: the column of [`PostgresOptions::column`].
pub(super) struct Check<'c> {
    client: &'c Client,
    name: &'c TableName,
    options: &'c PostgresOptions,
    pub(super) quoted: Quoted,
}

/// An id column that passed the checks.
pub(super) struct Column {
    pub(super) type_number: u32,
    pub(super) kind: ColumnKind,
    pub(super) fold: Fold,
    pub(super) is_generated: bool,
}

/// A column of the catalog.
pub(super) struct Described {
    pub(super) type_number: u32,
    /// The name of the column type. For a domain, the field contains the name of the base type.
    pub(super) base: String,
    /// The column type as SQL.
    pub(super) full: String,
    /// True if the column never compares different texts as equal.
    pub(super) is_exact: bool,
    pub(super) is_generated: bool,
    pub(super) is_enum: bool,
    /// True if a `numeric` column has no fraction.
    pub(super) is_whole: bool,
    /// True if the column may contain NULL.
    pub(super) is_nullable: bool,
}

/// The properties of the table and its partitions.
pub(super) struct Relations {
    /// True if an index of the table itself is unique.
    pub(super) is_unique: bool,
    /// True if the log contains only the id column of each deleted row. If the field is true, the publication may have
    /// a list of columns: the id column and the columns of the condition.
    pub(super) may_list_columns: bool,
}

pub(super) fn refuse<T>(message: String) -> Result<T, SourceError> {
    Err(SourceError::Preflight(message))
}

impl<'c> Check<'c> {
    /// Quotes the names, and creates the checks of the column of `options`.
    pub(super) async fn new(
        client: &'c Client,
        name: &'c TableName,
        options: &'c PostgresOptions,
    ) -> Result<Self, SourceError> {
        Ok(Self { client, name, options, quoted: quoted(client, name, options).await? })
    }

    /// Runs a query with the schema, the table and the column as its parameters.
    async fn query(&self, sql: &str) -> Result<Vec<Row>, SourceError> {
        let names = [&self.name.schema, &self.name.table, &self.options.column];
        let rows = self.client.query(sql, &names.each_ref().map(|it| *it as _)).await;
        rows.map_err(|error| explained(&error))
    }

    /// Returns the id column with quoted names. `filter` is the condition of the source as SQL.
    pub(super) fn id_column(&self, column: &Column, filter: String) -> IdColumn {
        IdColumn {
            table: self.quoted.table.clone(),
            column: self.quoted.column.clone(),
            kind: column.kind,
            fold: column.fold,
            relation: self.name.relation,
            filter,
        }
    }

    /// Checks the kind of the relation. Returns true for a partitioned table.
    pub(super) fn kind(&self) -> Result<bool, SourceError> {
        let what = match &*self.name.kind {
            "r" => return Ok(false),
            "p" => return Ok(true),
            "v" => "a view",
            "m" => "a materialized view",
            "f" => "a foreign table",
            _ => "no table",
        };
        let poll = if what == "a view" { ", or set follow = \"poll\"" } else { "" };
        let table = &self.quoted.table;
        refuse(format!("{table} is {what}, whose changes are not in the log; name a table{poll}"))
    }

    /// Checks the id column: its type, its collation and whether it is generated.
    pub(super) async fn column(&self, id: &IdType) -> Result<Column, SourceError> {
        let column = &self.quoted.column;
        let Described { type_number, base, full, is_exact, is_generated, is_whole, .. } =
            self.described().await?;
        let Some(kind) = ColumnKind::of(&base, is_whole).filter(|kind| kind.fits(id)) else {
            return refuse(format!(
                "the column {column} is {full}, which holds no ids of the configured type; \
                 integers, numeric(N, 0), text, varchar, char, citext and uuid are possible"
            ));
        };
        if !is_exact && !self.options.exact {
            return refuse(format!(
                "the column {column} has a collation for which different texts are equal; if requests write each id \
                 exactly as the table has it, set exact = true in the source; or use a deterministic collation, such as \
                 \"C\""
            ));
        }
        let is_text = matches!(id, IdType::Text { .. });
        let fold = if is_text && !self.options.exact { kind.fold() } else { Fold::Exact };
        Ok(Column { type_number, kind, fold, is_generated })
    }

    /// Finds the configured column.
    pub(super) async fn described(&self) -> Result<Described, SourceError> {
        let Quoted { table, column, .. } = &self.quoted;
        let sql = "SELECT a.attname, a.atttypid, b.typname::text,
              format_type(a.atttypid, a.atttypmod), COALESCE(l.collisdeterministic, true),
              a.attgenerated <> '', b.typtype = 'e', NOT a.attnotnull,
              COALESCE((COALESCE(NULLIF(a.atttypmod, -1), NULLIF(t.typtypmod, -1)) - 4) & 2047 = 0, false)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            JOIN pg_type t ON t.oid = a.atttypid
            JOIN pg_type b ON b.oid = COALESCE(NULLIF(t.typbasetype, 0), t.oid)
            LEFT JOIN pg_collation l ON l.oid = a.attcollation
            WHERE n.nspname = $1 AND c.relname = $2 AND $3::text IS NOT NULL ORDER BY a.attnum";
        let columns = self.query(sql).await?;
        let Some(row) = columns.iter().find(|row| row.get::<_, &str>(0) == self.options.column)
        else {
            let names: Vec<&str> = columns.iter().map(|row| row.get(0)).collect();
            let names = names.join(", ");
            return refuse(format!("the table {table} has no column {column}; it has: {names}"));
        };
        Ok(Described {
            type_number: row.get(1),
            base: row.get(2),
            full: row.get(3),
            is_exact: row.get(4),
            is_generated: row.get(5),
            is_enum: row.get(6),
            is_nullable: row.get(7),
            is_whole: row.get(8),
        })
    }

    /// Checks that the user may read the column, and that row-level security hides no rows.
    pub(super) async fn grants(&self) -> Result<(), SourceError> {
        let Quoted { table, schema, user, .. } = &self.quoted;
        let sql = "SELECT COALESCE(has_schema_privilege(n.oid, 'USAGE'), true),
              COALESCE(has_column_privilege(c.oid, a.attnum, 'SELECT'), true),
              COALESCE(row_security_active(c.oid), false)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $3
            WHERE n.nspname = $1 AND c.relname = $2";
        for row in self.query(sql).await? {
            if !row.get::<_, bool>(0) {
                return refuse(format!(
                    "the user {user} may not use the schema {schema}; \
                     run: GRANT USAGE ON SCHEMA {schema} TO {user}"
                ));
            }
            if !row.get::<_, bool>(1) {
                return refuse(format!(
                    "the user {user} may not read the table {table}; \
                     run: GRANT SELECT ON {table} TO {user}"
                ));
            }
            if row.get(2) {
                return refuse(format!(
                    "row-level security hides rows of {table} from the user {user}; \
                     run: ALTER ROLE {user} BYPASSRLS"
                ));
            }
        }
        Ok(())
    }

    /// Checks the table and its partitions.
    pub(super) async fn relations(&self) -> Result<Relations, SourceError> {
        let sql = format!(
            "{TREE} SELECT c.oid, format('%I.%I', n.nspname, c.relname), c.relkind::text,
              c.relpersistence::text, {HAS_IDENTITY},
              EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indnkeyatts = 1
                AND CASE c.relreplident WHEN 'd' THEN x.indisprimary
                  WHEN 'i' THEN x.indisreplident ELSE false END),
              EXISTS (SELECT {UNIQUE_INDEXES}),
              (SELECT quote_ident(o.relname) FROM pg_class o WHERE o.oid = (
                SELECT x.indexrelid {UNIQUE_INDEXES} AND k.attnotnull LIMIT 1))
            FROM tree JOIN pg_class c ON c.oid = tree.oid
            JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid"
        );
        let mut relations = Relations { is_unique: false, may_list_columns: true };
        let rows = self.query(&sql).await?;
        let table = &self.quoted.table;
        for row in &rows {
            let (name, kind): (&str, &str) = (row.get(1), row.get(2));
            let is_table = row.get::<_, u32>(0) == self.name.relation;
            if is_table {
                relations.is_unique = row.get(6);
            } else if self.name.kind == "r" {
                return refuse(format!(
                    "the table {name} inherits from {table}, and its rows are not in the stream of \
                     {table}; use partitions, or run: ALTER TABLE {name} NO INHERIT {table}"
                ));
            }
            if kind == "f" {
                return refuse(format!(
                    "the partition {name} is a foreign table, whose changes are not in the log"
                ));
            }
            if row.get::<_, &str>(3) != "p" {
                return refuse(format!(
                    "the log has no changes of {name}; run: ALTER TABLE {name} SET LOGGED"
                ));
            }
            // A partitioned table has no rows of its own, and needs no replica identity.
            if kind == "p" {
                continue;
            }
            if !row.get::<_, bool>(4) {
                let index: Option<&str> = row.get(7);
                let identity = index.map_or("FULL".to_owned(), |it| format!("USING INDEX {it}"));
                return refuse(format!(
                    "the log has no ids of rows that are deleted from {name}; \
                     run: ALTER TABLE {name} REPLICA IDENTITY {identity}"
                ));
            }
            relations.may_list_columns &= row.get::<_, bool>(5);
        }
        // If the table has no partition, the code cannot know which columns the log will contain for the first
        // partition.
        relations.may_list_columns &= rows.iter().any(|row| row.get::<_, &str>(2) == "r");
        Ok(relations)
    }

    /// Checks that the publication contains all changes of the table, the id column and the columns `tested`, which the
    /// condition tests.
    pub(super) async fn publication(
        &self,
        is_partitioned: bool,
        relations: &Relations,
        tested: &[&str],
    ) -> Result<(), SourceError> {
        let Quoted { table, publication, .. } = &self.quoted;
        // With a column list, the server sends only the ids and the columns of the condition.
        let columns: Vec<&str> =
            std::iter::once(&*self.options.column).chain(tested.iter().copied()).collect();
        let quoted = "SELECT string_agg(quote_ident(name), ', ') FROM unnest($1::text[]) name";
        let quoted = self.client.query_one(quoted, &[&columns]).await;
        let quoted: String = quoted.map_err(|error| explained(&error))?.get(0);
        let list = if relations.may_list_columns { format!(" ({quoted})") } else { String::new() };
        let sql = "SELECT p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate,
              p.pubviaroot, t.tablename IS NOT NULL, $4::text = ANY (t.attnames), t.rowfilter,
              $5::text[] <@ t.attnames::text[]
            FROM pg_publication p LEFT JOIN pg_publication_tables t
            ON t.pubname = p.pubname AND t.schemaname = $2 AND t.tablename = $3
            WHERE p.pubname = $1";
        let Self { name, options, .. } = self;
        let (table_schema, table_name) = (&name.schema, &name.table);
        let parameters: [&(dyn ToSql + Sync); 5] =
            [&options.publication, table_schema, table_name, &options.column, &columns];
        let row = self.client.query_opt(sql, &parameters).await;
        let Some(row) = row.map_err(|error| explained(&error))? else {
            let with =
                if is_partitioned { " WITH (publish_via_partition_root = true)" } else { "" };
            return refuse(format!(
                "there is no publication {publication}; as the owner of the table, \
                 run: CREATE PUBLICATION {publication} FOR TABLE {table}{list}{with}"
            ));
        };
        if !row.get::<_, bool>(0) {
            return refuse(format!(
                "the publication {publication} does not have all changes; run: ALTER PUBLICATION \
                 {publication} SET (publish = 'insert, update, delete, truncate')"
            ));
        }
        if is_partitioned && !row.get::<_, bool>(1) {
            return refuse(format!(
                "the publication {publication} has partitions and not the table {table}; run: \
                 ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)"
            ));
        }
        let add = format!("ALTER PUBLICATION {publication} ADD TABLE {table}{list}");
        if !row.get::<_, bool>(2) {
            return refuse(format!("the publication {publication} has no {table}; run: {add}"));
        }
        let what = if row.get::<_, Option<&str>>(4).is_some() {
            "omits rows of"
        } else if row.get::<_, Option<bool>>(5) == Some(true) {
            return Ok(());
        } else if row.get::<_, Option<bool>>(3) == Some(true) {
            "lacks columns of the condition of"
        } else {
            "has no ids of"
        };
        refuse(format!(
            "the publication {publication} {what} {table}; \
             run: ALTER PUBLICATION {publication} DROP TABLE {table}; {add}"
        ))
    }
}
