//! Statements in the binary log.

/// What a statement means for the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// It begins a transaction, or a part of one.
    Begin,
    /// It ends a transaction.
    Commit,
    /// It ends a transaction and undoes its changes.
    Rollback,
    /// It undoes a part of a transaction.
    RollbackTo,
    /// It is one of a two-phase transaction (`XA`). The log has the rows before the client decides
    /// whether to commit them.
    TwoPhase,
    /// It does not concern the table.
    Other,
    /// It may change the table in a way that the log does not show.
    Unexplained,
}

/// Classifies a statement by its effect on a table. If the effect is not certain, it is unexplained,
/// which costs a read of all ids.
///
/// `current` is the default database of the statement, and `database` that of the table.
pub(super) fn meaning(text: &str, current: &str, database: &str, table: &str) -> Statement {
    let text = without_comments(text).to_lowercase();
    let mut words =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let first = words.next().unwrap_or_default();
    match first {
        "begin" | "start" => return Statement::Begin,
        "xa" => return Statement::TwoPhase,
        "commit" => return Statement::Commit,
        "rollback" => {
            let is_partial = words.any(|word| word == "to");
            return if is_partial { Statement::RollbackTo } else { Statement::Rollback };
        }
        "savepoint" | "release" => return Statement::Begin,
        // A comment.
        "" => return Statement::Other,
        _ => {}
    }
    if !is_definition(&text, first, words.clone()) {
        // Rows in the statement format, or something unknown. A function, a trigger or a foreign key may
        // reach the table.
        return Statement::Unexplained;
    }
    let (database, table) = (database.to_lowercase(), table.to_lowercase());
    // The log has the bytes of the client, in whatever charset the client has.
    let is_readable = text.is_ascii() || database.is_ascii() && table.is_ascii();
    if !is_readable {
        return Statement::Unexplained;
    }
    // Unlike rows, for which there are triggers, a definition concerns what it names.
    if current.to_lowercase() != database && !has_name(&text, &database) {
        return Statement::Other;
    }
    let second = words.next().unwrap_or_default();
    let drops_database = first == "drop" && matches!(second, "database" | "schema");
    if drops_database || has_name(&text, &table) {
        return Statement::Unexplained;
    }
    Statement::Other
}

/// Tests whether a statement defines or maintains what it names, and inserts no rows that the log does not
/// have. `words` follow `first`.
fn is_definition<'t>(text: &str, first: &str, mut words: impl Iterator<Item = &'t str>) -> bool {
    match first {
        "alter" | "drop" | "flush" | "grant" | "install" | "optimize" | "rename" | "repair"
        | "revoke" | "truncate" | "uninstall" => true,
        "analyze" => {
            let object = words.find(|word| !matches!(*word, "local" | "no_write_to_binlog"));
            matches!(object, Some("table" | "tables"))
        }
        "set" => matches!(words.next(), Some("password" | "default")),
        "create" => {
            // `CREATE TABLE ... SELECT` may call a function. The bodies of the others are not executed.
            let object = words.find(|word| {
                matches!(*word, "table" | "view" | "procedure" | "function" | "trigger" | "event")
            });
            let has_rows = words.any(|word| matches!(word, "select" | "row"));
            // A comment may have any word.
            !has_rows || object.is_some_and(|it| it != "table") && !text.contains("/*")
        }
        _ => false,
    }
}

/// Tests whether a text has a name that is not a part of a longer one. A name in quotes has each quote in it
/// twice.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let has = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
        })
    };
    has(name) || ["`", "\""].iter().any(|quote| has(&name.replace(quote, &quote.repeat(2))))
}

/// Removes comments at the beginning, and the start of `/*! */`, whose content is a part of the statement.
fn without_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let conditional = text.strip_prefix("/*!").or_else(|| text.strip_prefix("/*M!"));
        if let Some(rest) = conditional {
            // The number of the oldest version that executes it.
            text = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if text.starts_with("/*") {
            let Some((_, rest)) = text.split_once("*/") else { return text };
            text = rest;
        } else if text.starts_with('#') || text.starts_with("-- ") {
            // MariaDB replaces events for old replicas by `# Dummy event ...`.
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        } else {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(text: &str, table: &str) -> Statement {
        super::meaning(text, "shop", "shop", table)
    }

    #[test]
    fn statements_that_may_change_the_table_are_unexplained() {
        for text in [
            "TRUNCATE products",
            "truncate table `shop`.`Products`",
            "RENAME TABLE new_products TO products",
            "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE products",
            "ALTER TABLE products IMPORT TABLESPACE",
            "DROP TABLE IF EXISTS `products` /* generated by server */",
            "DROP DATABASE shop",
            "/* app */ INSERT INTO t VALUES (1)",
            "/*!40000 ALTER TABLE products DISABLE KEYS */",
            "-- a comment\nDELETE FROM t",
            "REPLACE INTO t VALUES (1)",
            "LOAD DATA INFILE 'x' INTO TABLE t",
            "SELECT `shop`.`f`(1001)",
            "SET @x = f(1009)",
            "SET STATEMENT max_statement_time=5 FOR INSERT INTO v VALUES (1002, 0)",
            "ANALYZE INSERT INTO t VALUES (1004)",
            "ANALYZE FORMAT=JSON UPDATE t SET a = 1",
            "/*!50000 INSERT INTO t VALUES (1005) */",
            "/*M!100000 INSERT INTO t VALUES (1005) */",
            "/*! INSERT INTO t VALUES (1005) */",
            "CREATE TABLE t SELECT f(2000) AS a",
            "CREATE TABLE t (view INT) AS (SELECT f(2000) AS a)",
            "CREATE /* view */ TABLE t SELECT f(2000) AS a",
            "CREATE OR REPLACE TEMPORARY TABLE t SELECT f(1)",
            "CREATE TABLE t VALUES ROW(f(1))",
            "DO f(1)",
            "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (1)'",
            "HANDLER t OPEN",
            "anything new",
        ] {
            assert_eq!(meaning(text, "products"), Statement::Unexplained, "{text}");
        }
    }

    #[test]
    fn other_statements_cost_no_read() {
        for text in [
            "CREATE TABLE t (id INT)",
            "CREATE TABLE t (id INT) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
            "CREATE VIEW v AS SELECT 1",
            "CREATE DEFINER=`a`@`%` PROCEDURE p() BEGIN SELECT 1; END",
            "CREATE FUNCTION f() RETURNS INT RETURN (SELECT 1)",
            "CREATE INDEX i ON t (a)",
            "GRANT SELECT ON *.* TO a",
            "SET PASSWORD FOR 'a'@'%' = '*0'",
            "SET DEFAULT ROLE r FOR a",
            "ANALYZE TABLE t",
            "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
            "/*!40000 ALTER TABLE t DISABLE KEYS */",
            "FLUSH TABLES",
            "",
        ] {
            assert_eq!(meaning(text, "products"), Statement::Other, "{text}");
        }
        let dummy = "# Dummy event replacing event type 162 that slave cannot handle.";
        for text in [dummy, "ALTER TABLE event_types ADD type2 INT", "CREATE TABLE t$type (a INT)"]
        {
            for table in ["event", "type", "t"] {
                assert_eq!(meaning(text, table), Statement::Other, "{text} {table}");
            }
        }
        assert_eq!(meaning("ALTER TABLE `shop`.`t` ADD a INT", "t"), Statement::Unexplained);
        assert_eq!(meaning("BEGIN", "products"), Statement::Begin);
        assert_eq!(meaning("SAVEPOINT `products`", "products"), Statement::Begin);
        assert_eq!(meaning("ROLLBACK TO `a`", "products"), Statement::RollbackTo);
        assert_eq!(meaning("ROLLBACK WORK TO\n a", "products"), Statement::RollbackTo);
        assert_eq!(meaning("COMMIT", "products"), Statement::Commit);
        assert_eq!(meaning("ROLLBACK", "products"), Statement::Rollback);
        assert_eq!(meaning("XA END 'a'", "products"), Statement::TwoPhase);
    }

    #[test]
    fn definitions_in_other_databases_cost_no_read() {
        let elsewhere = |text| super::meaning(text, "other", "shop", "products");
        for text in ["CREATE TABLE products (id INT)", "TRUNCATE products", "DROP DATABASE other"] {
            assert_eq!(elsewhere(text), Statement::Other, "{text}");
        }
        for text in [
            "RENAME TABLE shop.new TO `Shop`.products",
            "DROP DATABASE shop",
            // A trigger may insert into the table.
            "INSERT INTO products VALUES (1)",
        ] {
            assert_eq!(elsewhere(text), Statement::Unexplained, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_every_way_that_clients_write_them() {
        for (text, table) in [
            ("RENAME TABLE `a``b` TO alt, neu TO `a``b`", "a`b"),
            ("RENAME TABLE \"a\"\"b\" TO alt", "a\"b"),
            ("RENAME TABLE 产品 TO alt, neu TO 产品", "产品"),
            // The client has another charset than UTF-8.
            ("RENAME TABLE \u{fffd}\u{fffd} TO alt", "产品"),
            ("TRUNCATE ÄPFEL", "äpfel"),
        ] {
            assert_eq!(meaning(text, table), Statement::Unexplained, "{text}");
        }
        // A name in ASCII has the same bytes in every charset of a client.
        assert_eq!(meaning("TRUNCATE \u{fffd}\u{fffd}", "products"), Statement::Other);
        let elsewhere = |text| super::meaning(text, "other", "商店", "products");
        assert_eq!(elsewhere("TRUNCATE \u{fffd}\u{fffd}.products"), Statement::Unexplained);
        assert_eq!(elsewhere("TRUNCATE products"), Statement::Other);
    }
}
