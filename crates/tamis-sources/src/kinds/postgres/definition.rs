//! SQL that reads the definition of the table from the catalog, and the state of the log and the slot at the same time.
//!
//! Parameters of the SQL: `$1` is the schema, `$2` the table, `$3` the column, `$4` the publication, `$5` the slot, and
//! `$6` the columns of the condition.

/// The relation with the given name, and all its partitions.
pub(super) const TREE: &str = "WITH RECURSIVE named AS (
    SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2
  ), tree (oid) AS (
    SELECT oid FROM named
    UNION ALL SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid
  )";

/// The relations of [`TREE`], and all tables of which the relation is a partition.
pub(super) const LINEAGE: &str = "lineage AS (
    SELECT oid FROM tree
    UNION SELECT a.relid FROM named, pg_partition_ancestors(named.oid) a (relid)
  )";

/// Tests whether the log contains the id when a row of the relation `c` is deleted.
pub(super) const HAS_IDENTITY: &str = "CASE c.relreplident
    WHEN 'f' THEN true WHEN 'n' THEN false
    ELSE EXISTS (SELECT FROM pg_index x JOIN pg_attribute k ON k.attrelid = x.indrelid
      AND k.attnum = ANY ((x.indkey::int2[])[0 : x.indnkeyatts - 1])
      WHERE x.indrelid = c.oid AND k.attname = $3
      AND CASE c.relreplident WHEN 'd' THEN x.indisprimary ELSE x.indisreplident END)
    END";

/// Selects the indexes of the relation `c` that guarantee at any time that each id occurs at most once.
pub(super) const UNIQUE_INDEXES: &str = "FROM pg_index x
    JOIN pg_attribute k ON k.attrelid = x.indrelid AND k.attnum = x.indkey[0]
    WHERE x.indrelid = c.oid AND k.attname = $3 AND x.indisunique AND x.indimmediate
    AND x.indisvalid AND x.indpred IS NULL AND x.indexprs IS NULL AND x.indnkeyatts = 1";

/// Returns the SQL that reads a [`ServerState`](super::server::ServerState). If a catalog row is replaced, its `xmin`
/// changes.
pub(super) fn server_state_sql() -> String {
    format!(
        "{TREE}, {LINEAGE}, relations AS (
    SELECT c.oid, c.xmin AS version, concat_ws(':', c.oid, c.relkind, c.relpersistence,
      c.relfilenode, a.attnum, a.atttypid, a.xmin, {HAS_IDENTITY}) AS definition
    FROM tree JOIN pg_class c ON c.oid = tree.oid
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = $3 AND NOT a.attisdropped
  ), publication AS (SELECT p.oid, p.xmin FROM pg_publication p WHERE p.pubname = $4)
  SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text,
    EXISTS (SELECT FROM pg_replication_slots s WHERE s.slot_name = $5::text AND s.active),
    hashtextextended(concat_ws('/',
      (SELECT string_agg(r.definition, ' ' ORDER BY r.oid) FROM relations r),
      (SELECT string_agg(concat_ws(':', i.inhrelid, i.inhparent, i.xmin), ' ' ORDER BY i.inhrelid,
        i.inhparent) FROM pg_inherits i JOIN lineage ON lineage.oid = i.inhrelid),
      (SELECT (SELECT string_agg(x.indexrelid::text, ' ' ORDER BY x.indexrelid) {UNIQUE_INDEXES})
        FROM named JOIN pg_class c ON c.oid = named.oid),
      (SELECT string_agg(concat_ws(':', a.attrelid, a.attnum, a.atttypid, a.xmin), ' '
          ORDER BY a.attrelid, a.attnum)
        FROM tree JOIN pg_attribute a ON a.attrelid = tree.oid
        WHERE a.attname = ANY ($6::text[]) AND NOT a.attisdropped),
      (SELECT string_agg(concat_ws(':', e.oid, e.enumlabel), ' ' ORDER BY e.oid)
        FROM pg_enum e WHERE e.enumtypid IN (SELECT COALESCE(NULLIF(t.typbasetype, 0), t.oid)
          FROM named JOIN pg_attribute a ON a.attrelid = named.oid
          JOIN pg_type t ON t.oid = a.atttypid
          WHERE a.attname = ANY ($6::text[]) AND NOT a.attisdropped)),
      (SELECT concat_ws(':', p.oid, p.xmin) FROM publication p),
      (SELECT string_agg(concat_ws(':', r.oid, r.xmin), ' ' ORDER BY r.oid)
        FROM pg_publication_rel r JOIN publication p ON p.oid = r.prpubid
        JOIN lineage ON lineage.oid = r.prrelid),
      (SELECT string_agg(concat_ws(':', s.oid, s.xmin), ' ' ORDER BY s.oid)
        FROM pg_publication_namespace s JOIN publication p ON p.oid = s.pnpubid),
      (SELECT count(*) FROM pg_subscription_rel r JOIN lineage l ON l.oid = r.srrelid)
    ) COLLATE \"C\", 0),
    hashtextextended((SELECT string_agg(concat_ws(':', r.oid, r.version), ' ' ORDER BY r.oid)
      FROM relations r) COLLATE \"C\", 0)"
    )
}

/// A hash of the table definition. The definition consists of the relation and its files, its column and the columns of
/// the condition, the labels of their enum types (`RENAME VALUE` changes the values of rows), unique indexes, publication,
/// subscriptions, partitions and parent tables. If the hash changes, the stream may have missed ids. For example, rows
/// that are inserted between `SET UNLOGGED` and `SET LOGGED` are in new files but not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition(pub(super) i64);

/// A hash of the catalog versions of the relations. Each command that alters a relation, such as `SET SCHEMA`, changes
/// the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions(pub(super) i64);
