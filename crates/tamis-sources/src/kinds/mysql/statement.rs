//! Classifies the statements in the binary log.

/// The effect of a statement on the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// The statement begins a transaction or a part of a transaction.
    Begin,
    /// The statement ends a transaction.
    Commit,
    /// The statement ends a transaction and undoes its changes.
    Rollback,
    /// The statement undoes a part of a transaction.
    RollbackTo,
    /// The statement belongs to a two-phase transaction (`XA`). The log contains the rows before the client decides
    /// whether to commit.
    TwoPhase,
    /// The statement does not affect the table.
    Other,
    /// The statement may change the table in a way that the log does not show.
    Unexplained,
}

/// Classifies a statement by its effect on a table. If the effect is uncertain, the result is `Unexplained`, which
/// requires a full read.
///
/// `current` is the default database of the statement. `database` is the database of the table.
pub(super) fn meaning(text: &str, current: &str, database: &str, table: &str) -> Statement {
    let plain = Plain::of(text);
    let text = plain.text.to_lowercase();
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
        // The statement contains only a comment.
        "" => return Statement::Other,
        _ if !plain.is_ambiguous && is_of_system_table(&text, first) => return Statement::Other,
        _ => {}
    }
    if plain.is_ambiguous || !is_definition(first, words.clone()) {
        // The statement contains rows in the statement format, or is unknown. A function, a trigger or a foreign key
        // may change the table.
        return Statement::Unexplained;
    }
    let (database, table) = (database.to_lowercase(), table.to_lowercase());
    // The log contains the bytes of the client in an unknown character set.
    let is_readable = text.is_ascii() || database.is_ascii() && table.is_ascii();
    if !is_readable {
        return Statement::Unexplained;
    }
    // A definition statement affects only the objects that it names. A statement that changes rows may affect other
    // tables, because triggers can change other tables.
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

/// Tests whether a statement only defines or maintains the objects that it names. `words` are the words after `first`.
fn is_definition<'t>(first: &str, mut words: impl Iterator<Item = &'t str>) -> bool {
    match first {
        "alter" | "drop" | "flush" | "grant" | "install" | "optimize" | "rename" | "repair"
        | "revoke" | "truncate" | "uninstall" => true,
        "analyze" => {
            let object = words.find(|word| !matches!(*word, "local" | "no_write_to_binlog"));
            matches!(object, Some("table" | "tables"))
        }
        "set" => matches!(words.next(), Some("password" | "default")),
        "create" => {
            let object = words.find(|word| {
                matches!(*word, "table" | "view" | "procedure" | "function" | "trigger" | "event")
            });
            // `CREATE` does not execute the body of another object. But `CREATE TABLE` may take rows from a query,
            // whose functions may change any table.
            object != Some("table") || !has_query(words)
        }
        _ => false,
    }
}

/// Tests whether the rest of `CREATE TABLE` may contain a query. The bounds of partitions are not a query.
fn has_query<'t>(words: impl Iterator<Item = &'t str>) -> bool {
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let is_query = match word {
            "select" | "table" => true,
            "values" => !matches!(words.peek(), Some(&("less" | "in"))),
            _ => false,
        };
        if is_query {
            return true;
        }
    }
    false
}

/// Tests whether a statement changes only a table of the database `mysql`, which has no triggers. Cloud servers write
/// to the database `mysql` as a heartbeat.
fn is_of_system_table(text: &str, first: &str) -> bool {
    let text = text.replace('`', "");
    let words = text.split_whitespace().skip(1);
    let mut words =
        words.filter(|word| !matches!(*word, "ignore" | "into" | "from" | "low_priority"));
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let target = words.next().and_then(|word| word.strip_prefix("mysql."));
    let Some(table) = target.and_then(|word| word.split(|c| !is_name(c)).next()) else {
        return false;
    };
    // An update or a deletion may name several tables.
    let names_one_table = match first {
        "insert" | "replace" => true,
        "update" => words.next() == Some("set"),
        "delete" => matches!(words.next(), None | Some("where")),
        _ => false,
    };
    // A call of a function that is not in the list below may change any table.
    let before =
        |at: usize| text[..at].trim_end().rsplit(|c| !is_name(c)).next().unwrap_or_default();
    let mut calls = text.match_indices('(').map(|(at, _)| before(at));
    let is_harmless = |word: &str| {
        word == table
            || matches!(
                word,
                "" | "values" | "value" | "now" | "unix_timestamp" | "current_timestamp"
            )
    };
    names_one_table && !text.contains("select") && calls.all(is_harmless)
}

/// Tests whether a text contains a name as a whole word. In a quoted name, each quote character is doubled.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let occurs = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
        })
    };
    occurs(name) || ["`", "\""].iter().any(|quote| occurs(&name.replace(quote, &quote.repeat(2))))
}

/// A statement without its comments.
struct Plain {
    text: String,
    /// True if a quoted text contains a backslash. The session settings decide whether the backslash escapes a quote.
    /// Therefore it is uncertain which parts of the statement are comments.
    is_ambiguous: bool,
}

impl Plain {
    /// Replaces each comment by a space. The content of `/*! */` stays, because servers execute this content.
    fn of(statement: &str) -> Self {
        let mut plain = Self { text: String::with_capacity(statement.len()), is_ambiguous: false };
        let (mut rest, mut quote) = (statement, None);
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            if let Some(open) = quote {
                plain.is_ambiguous |= c == '\\' && open != '`';
                // Two adjacent quotes end one text and begin the next text.
                if c == open {
                    quote = None;
                }
            } else if let Some(after) = comment(rest) {
                plain.text.push(' ');
                rest = after;
                continue;
            } else if matches!(c, '\'' | '"' | '`') {
                quote = Some(c);
            }
            plain.text.push(c);
            rest = after;
        }
        plain
    }
}

/// Removes a comment at the start of a text, and returns the rest. For a conditional comment, the function removes only
/// its opening mark.
fn comment(text: &str) -> Option<&str> {
    let line = |text: &'_ str| text.find('\n').map_or(text.len(), |end| end + 1);
    if let Some(rest) = text.strip_prefix("/*!").or_else(|| text.strip_prefix("/*M!")) {
        // The number is the minimum server version that executes the comment.
        return Some(rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    if let Some(rest) = text.strip_prefix("/*") {
        return Some(rest.split_once("*/").map_or("", |(_, rest)| rest));
    }
    if text.starts_with('#') {
        // For old replicas, MariaDB replaces events by `# Dummy event ...`.
        return Some(&text[line(text)..]);
    }
    let rest = text.strip_prefix("--")?;
    let is_comment = rest.chars().next().is_none_or(|c| c.is_whitespace() || c.is_control());
    is_comment.then(|| &text[line(text)..])
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
            "CREATE TABLE t AS VALUES (f(103))",
            "CREATE TABLE t TABLE u",
            "CREATE # view\nTABLE t SELECT f(104)",
            "CREATE -- view\nTABLE t SELECT f(104)",
            "ANALYZE /* table */ INSERT INTO t VALUES (106)",
            "--\n-- Begin of the import\n--\nINSERT INTO t VALUES (1)",
            "--\n-- Drop old rows\n--\tx\nINSERT INTO t VALUES (1)",
            "CREATE VIEW v AS SELECT '\\'', 1 /* ' */",
            "INSERT INTO mysql.a VALUES (f(1))",
            "INSERT INTO mysql.a SELECT 1",
            "INSERT INTO mysqls.a VALUES (1)",
            "UPDATE mysql.a SET v = (1), w = f (2)",
            "UPDATE mysql.a, products SET products.id = 7",
            "UPDATE mysql.a JOIN products SET products.id = 7",
            "DELETE mysql.a, t FROM mysql.a JOIN t",
            "INSERT INTO mysql VALUES (1)",
            "INSERT INTO mysql.a VALUES ('\\' /* ', f(2)) */')",
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
            "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))",
            "CREATE TABLE t (a INT COMMENT '-- /* # ')",
            "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,17) ON DUPLICATE KEY UPDATE value = 17",
            "INSERT INTO `mysql`.`ha_health_check` (id, type) VALUES (1, '1')",
            "delete from mysql.rds_sysinfo where name = 'innodb_txn_key'",
            "--",
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
            // The client has a character set other than UTF-8.
            ("RENAME TABLE \u{fffd}\u{fffd} TO alt", "产品"),
            ("TRUNCATE ÄPFEL", "äpfel"),
        ] {
            assert_eq!(meaning(text, table), Statement::Unexplained, "{text}");
        }
        // An ASCII name has the same bytes in every client character set.
        assert_eq!(meaning("TRUNCATE \u{fffd}\u{fffd}", "products"), Statement::Other);
        let elsewhere = |text| super::meaning(text, "other", "商店", "products");
        assert_eq!(elsewhere("TRUNCATE \u{fffd}\u{fffd}.products"), Statement::Unexplained);
        assert_eq!(elsewhere("TRUNCATE products"), Statement::Other);
    }
}
