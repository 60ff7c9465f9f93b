//! Detects table definitions that cause changes outside the binary log.
//!
//! The definition comes from `SHOW CREATE TABLE`, because the information schema hides foreign keys from a user with
//! only the privilege `SELECT`.

/// Storage engines that store the rows in this server and log their changes.
const LOGGED_ENGINES: [&str; 9] =
    ["innodb", "xtradb", "myisam", "aria", "rocksdb", "tokudb", "memory", "archive", "csv"];

/// Returns the reason why the rows of an engine can change without a log event. Returns `None` if the engine logs all
/// changes.
pub(super) fn unlogged_engine(table: &str, engine: &str) -> Option<String> {
    let is_logged = LOGGED_ENGINES.iter().any(|it| it.eq_ignore_ascii_case(engine));
    (!is_logged).then(|| {
        format!(
            "{table} has the storage engine {engine}, whose rows may change without an event in the binary log of \
             this server; name the table in which the rows are, or poll the table with follow = \"poll\""
        )
    })
}

/// A foreign key in a table definition.
#[derive(Debug, PartialEq, Eq)]
struct ForeignKey {
    columns: Vec<String>,
    parent: String,
    parent_columns: Vec<String>,
    /// The text after the parent columns: `ON DELETE CASCADE ON UPDATE CASCADE`.
    actions: String,
}

/// The use of a column by the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnUse {
    Id,
    /// The condition of the source tests the column.
    Condition,
}

/// Returns the reason why a column gets values that are not in the log. The reason is a foreign key, because InnoDB
/// does not log the actions of foreign keys. `is_generated` is true for a generated column. Returns `None` if all
/// values are logged. If the definition is unreadable, the function also returns a reason.
pub(super) fn unlogged_values(
    table: &str,
    column: &str,
    column_use: ColumnUse,
    is_generated: bool,
    definition: &str,
) -> Option<String> {
    let Some(keys) = foreign_keys(definition) else {
        return Some(format!(
            "the server has answered SHOW CREATE TABLE for {table} in a form that the guard cannot read, so a foreign \
             key may change {column} without an event in the binary log; poll the table with follow = \"poll\""
        ));
    };
    let key = keys.into_iter().find_map(|key| {
        let at = key.columns.iter().position(|it| it.eq_ignore_ascii_case(column));
        // NULL is not an id, so a foreign key that sets the id to NULL adds no id. But a row with NULL in a column of
        // the condition may satisfy the condition.
        let changes_column = at.is_some()
            && match column_use {
                ColumnUse::Id => key.actions.contains("ON UPDATE CASCADE"),
                ColumnUse::Condition => changes(&key.actions),
            };
        // The code does not test from which columns the generated column is computed, because a generated column beside
        // a foreign key is rare.
        let changes_base = is_generated && changes(&key.actions);
        (changes_column || changes_base).then_some((key, at))
    });
    let (key, at) = key?;
    let parent = at.and_then(|at| key.parent_columns.get(at)).map_or_else(
        || format!("the table {}", key.parent),
        |column| format!("the column {column} of the table {}", key.parent),
    );
    let way_out = match column_use {
        ColumnUse::Id => format!("name {parent} as the source"),
        ColumnUse::Condition => format!("remove {column} from `where`"),
    };
    Some(format!(
        "a foreign key with {} changes {table}.{column}, and the server does not log these changes; {way_out}, or \
         poll the table with follow = \"poll\" (an id that the key changes then passes after the next `reread`)",
        key.actions
    ))
}

/// Tests whether the actions of a foreign key change values. The action `ON DELETE CASCADE` deletes a row, but changes
/// no value.
fn changes(actions: &str) -> bool {
    ["ON UPDATE CASCADE", "SET NULL", "SET DEFAULT"].iter().any(|it| actions.contains(it))
}

/// Returns the foreign keys of a definition. Returns `None` if the definition cannot be parsed. Each foreign key is on
/// its own line, and no column definition starts like a foreign key.
fn foreign_keys(definition: &str) -> Option<Vec<ForeignKey>> {
    if !definition.starts_with("CREATE TABLE") {
        return None;
    }
    let keys = definition.lines().filter_map(|line| {
        let line = line.trim();
        let rest = match line.strip_prefix("CONSTRAINT ") {
            Some(rest) => match name(rest) {
                Some((_, rest)) => rest.trim_start(),
                None => return Some(None),
            },
            None => line,
        };
        match rest.strip_prefix("FOREIGN KEY ") {
            Some(rest) => Some(foreign_key(rest)),
            None if rest == line || rest.starts_with("CHECK ") => None,
            None => Some(None),
        }
    });
    keys.collect()
}

/// Parses the text after `FOREIGN KEY`.
fn foreign_key(text: &str) -> Option<ForeignKey> {
    let (columns, rest) = names_in_brackets(text)?;
    let rest = rest.trim_start().strip_prefix("REFERENCES ")?;
    let (parent, rest) = rest.split_once(" (")?;
    let (parent_columns, rest) = names_in_brackets(&format!("({rest}"))
        .map(|(names, rest)| (names, rest.trim().trim_end_matches(',').to_owned()))?;
    Some(ForeignKey { columns, parent: parent.to_owned(), parent_columns, actions: rest })
}

/// Parses a quoted or unquoted name. Returns the name, and the text after the name. In a quoted name, each quote
/// character is doubled.
fn name(text: &str) -> Option<(String, &str)> {
    let Some(quote) = text.chars().next().filter(|it| ['`', '"'].contains(it)) else {
        let end = text.find([',', ')', ' '])?;
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let (part, after) = rest.split_once(quote)?;
        name.push_str(part);
        match after.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// Parses ``(`a`, `b`)``. Returns the names in the brackets, and the text after the closing bracket.
fn names_in_brackets(text: &str) -> Option<(Vec<String>, &str)> {
    let mut rest = text.trim_start().strip_prefix('(')?;
    let mut names = Vec::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix(')') {
            return Some((names, after));
        }
        let (next, after) = name(rest)?;
        names.push(next);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILDREN: &str = "CREATE TABLE `children` (
  `id` bigint(20) NOT NULL COMMENT 'CONSTRAINT x FOREIGN KEY (`id`) REFERENCES `y` (`id`) ON UPDATE CASCADE',
  `pa``rent` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  CONSTRAINT `children_ibfk_1` FOREIGN KEY (`pa``rent`, `id`) REFERENCES `shop`.`parents` (`a`, `b`) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT `other` FOREIGN KEY (`other`) REFERENCES `others` (`id`) ON DELETE SET NULL
) ENGINE=InnoDB";

    fn unlogged(column: &str, is_generated: bool, definition: &str) -> Option<String> {
        unlogged_values("shop.children", column, ColumnUse::Id, is_generated, definition)
    }

    #[test]
    fn columns_that_a_foreign_key_changes_are_found() {
        for column in ["id", "ID", "pa`rent"] {
            let why = unlogged(column, false, CHILDREN).unwrap();
            assert!(why.contains("`shop`.`parents`"), "{column}: {why}");
        }
        assert!(unlogged("id", false, CHILDREN).unwrap().contains("the column b of"));
        assert_eq!(unlogged("other", false, CHILDREN), None);
        assert!(unlogged("computed", true, CHILDREN).is_some());
        // A server with `ANSI_QUOTES` writes double quotes.
        let quoted = CHILDREN.replace('`', "\"");
        assert!(unlogged("id", false, &quoted).is_some());
        let bare = "CREATE TABLE a (\n  CONSTRAINT c FOREIGN KEY (id) REFERENCES parents (id) ON UPDATE CASCADE";
        assert!(unlogged("id", false, bare).is_some());
    }

    #[test]
    fn columns_of_a_condition_that_a_foreign_key_sets_to_null_are_found() {
        let tested = |column| {
            unlogged_values("shop.children", column, ColumnUse::Condition, false, CHILDREN)
        };
        let why = tested("other").unwrap();
        assert!(
            why.contains("ON DELETE SET NULL") && why.contains("remove other from `where`"),
            "{why}"
        );
        assert_eq!(tested("price"), None);
    }

    #[test]
    fn a_foreign_key_that_only_deletes_rows_changes_no_id() {
        let deletes = CHILDREN.replace(" ON UPDATE CASCADE,", ",");
        assert_eq!(unlogged("id", false, &deletes), None);
        assert_eq!(
            unlogged("id", false, "CREATE TABLE `a` (\n  CONSTRAINT `c` CHECK (`id` > 1)\n)"),
            None
        );
    }

    #[test]
    fn a_definition_that_cannot_be_read_is_refused() {
        for definition in [
            "",
            "CREATE VIEW `a` AS SELECT 1",
            "CREATE TABLE `a` (\n  CONSTRAINT `c FOREIGN KEY (`id`) REFERENCES `b` (`id`)\n)",
            "CREATE TABLE `a` (\n  CONSTRAINT `c` FOREIGN KEY (`id` REFERENCES `b` (`id`)\n)",
            "CREATE TABLE `a` (\n  FOREIGN KEY (`id`) ON `b` (`id`) ON UPDATE CASCADE\n)",
        ] {
            let why = unlogged("id", false, definition).unwrap_or_default();
            assert!(why.contains("follow = \"poll\""), "{definition}: {why}");
        }
        let check = "CREATE TABLE `a` (\n  CONSTRAINT `c` CHECK (`id` <> ' FOREIGN KEY (')\n)";
        assert_eq!(unlogged("id", false, check), None);
    }

    #[test]
    fn engines_with_rows_elsewhere_are_not_logged() {
        for engine in
            ["MRG_MyISAM", "FEDERATED", "SPIDER", "CONNECT", "BLACKHOLE", "ndbcluster", "S3"]
        {
            assert!(unlogged_engine("shop.all", engine).is_some(), "{engine}");
        }
        for engine in ["InnoDB", "MyISAM", "Aria", "ROCKSDB"] {
            assert_eq!(unlogged_engine("shop.all", engine), None, "{engine}");
        }
    }
}
