//! The condition `where` of a source that follows a log.
//!
//! A row belongs to the set if the condition is true for the row. The database evaluates the condition in a full read.
//! The source evaluates the condition for each row of the log. If the result of the source were false and the result of
//! the database were true, the guard would refuse an id that exists. The source therefore accepts only conditions whose
//! result the source can compute, and rejects all other conditions at the start.
//!
//! ```text
//! text ──parse──▶ Condition ──bind to the columns of the table──▶ BoundCondition ──▶ SQL of full reads
//!                                                                               └──▶ Truth of a row in the log
//! ```

mod expression;
mod field;
mod invalid_condition;
mod parse;
mod sql;
mod truth;

pub(crate) use crate::kinds::condition::expression::ColumnName;
use crate::kinds::condition::expression::{Expression, Operator};
use crate::kinds::condition::field::Test;
pub(crate) use crate::kinds::condition::field::{BoundColumn, Field, FieldKind};
pub use crate::kinds::condition::invalid_condition::InvalidCondition;
pub(crate) use crate::kinds::condition::parse::split_quoted;
use crate::kinds::condition::sql::Sql;
use crate::kinds::condition::truth::Truth;

/// A parsed condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The columns, each of them once.
    columns: Vec<ColumnName>,
    root: Expression,
}

/// A condition whose columns were found in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundCondition {
    root: BoundExpression,
    sql: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BoundExpression {
    All(Vec<BoundExpression>),
    Any(Vec<BoundExpression>),
    Not(Box<BoundExpression>),
    Test(usize, Test),
}

impl Condition {
    /// Parses a condition.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidCondition> {
        let (columns, root) = parse::parse(text)?;
        Ok(Self { columns, root })
    }

    /// Parses the condition of a source that follows the log. Returns `None` if the source has no condition, or if the
    /// source polls its table: only the database evaluates the condition of a polled table, which may be any SQL.
    pub(crate) fn of_log(
        text: Option<&str>,
        is_polled: bool,
    ) -> Result<Option<Self>, InvalidCondition> {
        text.filter(|_| !is_polled).map(Self::parse).transpose()
    }

    /// Returns the names of the columns that the condition tests.
    pub(crate) fn columns(&self) -> &[ColumnName] {
        &self.columns
    }

    /// Binds the condition to the columns of a table. `columns` has the same order as [`columns`](Self::columns).
    /// Returns an error if the source cannot compute the result of a comparison exactly.
    pub(crate) fn bind(&self, columns: &[BoundColumn]) -> Result<BoundCondition, InvalidCondition> {
        Ok(BoundCondition {
            root: bind(&self.root, columns)?,
            sql: Sql { expression: &self.root, columns }.to_string(),
        })
    }
}

impl BoundCondition {
    /// Returns the condition as SQL, in parentheses.
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns false if the condition is certainly not true for a row. `fields` has the values of the columns of the
    /// condition. If the source cannot decide, because the log does not contain a value or two texts may be equal under
    /// the collation, the method returns true. An absent id may then pass, but no existing id is refused.
    pub(crate) fn may_hold(&self, fields: &[Field<'_>]) -> bool {
        truth(&self.root, fields).may_be_true()
    }
}

fn truth(expression: &BoundExpression, fields: &[Field<'_>]) -> Truth {
    let each = |parts: &[BoundExpression], start, join: fn(Truth, Truth) -> Truth| {
        parts.iter().fold(start, |all, part| join(all, truth(part, fields)))
    };
    match expression {
        BoundExpression::All(parts) => each(parts, Truth::TRUE, Truth::and),
        BoundExpression::Any(parts) => each(parts, Truth::FALSE, Truth::or),
        BoundExpression::Not(part) => truth(part, fields).not(),
        BoundExpression::Test(column, test) => test.truth(&fields[*column]),
    }
}

fn bind(
    expression: &Expression,
    columns: &[BoundColumn],
) -> Result<BoundExpression, InvalidCondition> {
    let each = |parts: &[Expression]| -> Result<Vec<_>, _> {
        parts.iter().map(|part| bind(part, columns)).collect()
    };
    let test = |column: usize, test: Result<Test, String>| {
        let message = |why| {
            InvalidCondition::new(format!(
                "the column {} is {}{why}",
                columns[column].sql, columns[column].full_type
            ))
        };
        Ok(BoundExpression::Test(column, test.map_err(message)?))
    };
    match expression {
        Expression::All(parts) => Ok(BoundExpression::All(each(parts)?)),
        Expression::Any(parts) => Ok(BoundExpression::Any(each(parts)?)),
        Expression::Not(part) => Ok(BoundExpression::Not(Box::new(bind(part, columns)?))),
        Expression::Null(column) => {
            // In MySQL, `IS NULL` is true for the date `0000-00-00` in a column with NOT NULL.
            let is_nullable = columns[*column].is_nullable;
            let why =
                || " NOT NULL, and a condition IS NULL has the same result for each row".to_owned();
            test(*column, if is_nullable { Ok(Test::Null) } else { Err(why()) })
        }
        Expression::Column(column) => test(*column, columns[*column].kind.truthy()),
        Expression::Compare(column, operator, value) => {
            test(*column, columns[*column].kind.compare(*operator, value))
        }
        Expression::In(column, values) => {
            let kind = &columns[*column].kind;
            let equal = |value| test(*column, kind.compare(Operator::Equal, value));
            Ok(BoundExpression::Any(values.iter().map(equal).collect::<Result<_, _>>()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::fold::Fold;

    fn columns() -> Vec<BoundColumn> {
        let column = |name: &str, kind, full_type: &str| BoundColumn {
            sql: format!("`{name}`"),
            kind,
            is_nullable: true,
            full_type: full_type.to_owned(),
        };
        vec![
            column("status", FieldKind::Text(Fold::General), "varchar(10)"),
            column("stock", FieldKind::Integer, "int"),
            column("active", FieldKind::Boolean, "boolean"),
            column("deleted_at", FieldKind::Other, "datetime"),
            column("name", FieldKind::Text(Fold::Uca), "varchar(20)"),
        ]
    }

    fn bound(text: &str) -> Result<(BoundCondition, Vec<usize>), InvalidCondition> {
        let condition = Condition::parse(text)?;
        let all = columns();
        let index = |name: &ColumnName| {
            all.iter().position(|it| it.sql == format!("`{}`", name.name)).expect("a known column")
        };
        let indexes: Vec<usize> = condition.columns().iter().map(index).collect();
        let columns: Vec<BoundColumn> = indexes.iter().map(|&at| all[at].clone()).collect();
        Ok((condition.bind(&columns)?, indexes))
    }

    fn may_hold(text: &str, row: &[Field<'_>; 5]) -> bool {
        let (condition, columns) = bound(text).unwrap();
        let fields: Vec<Field<'_>> = columns.iter().map(|&at| row[at].clone()).collect();
        condition.may_hold(&fields)
    }

    fn text(text: &str) -> Field<'_> {
        Field::Text(text.as_bytes().into())
    }

    #[test]
    fn rows_are_tested_as_the_database_tests_them() {
        let row = [text("Active"), Field::Integer(3), Field::Boolean(true), Field::Null, text("a")];
        for (condition, expected) in [
            ("status = 'active'", true),
            ("status <> 'active'", false),
            ("status = 'gone'", false),
            ("status IN ('gone', 'ACTIVE ')", true),
            ("status NOT IN ('gone', 'active')", false),
            ("stock > 2 AND stock <= 3 AND NOT stock < 3", true),
            ("stock != 3", false),
            ("stock", true),
            ("active", true),
            ("active = FALSE OR stock >= 4", false),
            ("deleted_at IS NULL", true),
            ("deleted_at IS NOT NULL", false),
            ("(deleted_at IS NULL OR status = 'x') and (stock in (1, 3))", true),
        ] {
            assert_eq!(may_hold(condition, &row), expected, "{condition}");
        }
    }

    #[test]
    fn a_comparison_with_null_selects_no_row() {
        let row = [Field::Null, Field::Null, Field::Null, Field::Other, Field::Null];
        for condition in [
            "status = 'a'",
            "status <> 'a'",
            "NOT status = 'a'",
            "stock NOT IN (1)",
            "NOT active",
            "deleted_at IS NULL",
            "status = 'a' AND deleted_at IS NOT NULL",
        ] {
            assert!(!may_hold(condition, &row), "{condition}");
        }
        assert!(may_hold("stock = 1 OR deleted_at IS NOT NULL", &row));
        assert!(may_hold("stock = 1 OR status IS NULL", &row));
    }

    #[test]
    fn a_comparison_that_is_not_certain_keeps_the_row() {
        let row = |name| [Field::Null, Field::Null, Field::Null, Field::Null, name];
        // Under a collation that distinguishes accents, the texts differ, but their keys are equal.
        for condition in ["name = 'é'", "name <> 'é'", "NOT name = 'é'", "name NOT IN ('é')"] {
            assert!(may_hold(condition, &row(text("e"))), "{condition}");
            assert!(may_hold(condition, &row(Field::Unknown)), "{condition}");
        }
        assert!(may_hold("name = 'e'", &row(text("e"))));
        assert!(!may_hold("name <> 'e'", &row(text("e"))));
        assert!(!may_hold("name = 'f'", &row(text("e"))));
        assert!(!may_hold("name = 'e' AND stock = 1", &row(Field::Unknown)));
    }

    #[test]
    fn a_condition_is_written_as_sql() {
        for (condition, sql) in [
            ("status='it''s'", "(`status` = 'it''s')"),
            ("`stock` in(1,-2) aNd not(active)", "((`stock` IN (1, -2)) AND (NOT (`active`)))"),
            ("stock", "(`stock` <> 0)"),
            ("stock = true", "(`stock` = 1)"),
            (
                "active = true or deleted_at is not null",
                "((`active` = TRUE) OR (NOT (`deleted_at` IS NULL)))",
            ),
        ] {
            assert_eq!(bound(condition).unwrap().0.sql(), sql);
        }
    }

    #[test]
    fn comparisons_whose_result_is_not_certain_are_refused() {
        for (condition, message) in [
            (
                "deleted_at > 5",
                "the column `deleted_at` is datetime, and a condition can only test it with IS NULL or IS NOT NULL",
            ),
            (
                "deleted_at = ''",
                "the column `deleted_at` is datetime, and a condition can only test it with IS NULL or IS NOT NULL",
            ),
            (
                "status = 0",
                "the column `status` is varchar(10): write its values as texts in single quotes",
            ),
            (
                "status",
                "the column `status` is varchar(10): compare it with a text in single quotes",
            ),
            (
                "status > 'a'",
                "the column `status` is varchar(10), and texts can only be compared with =, <>, IN and NOT IN",
            ),
            ("stock = '5'", "the column `stock` is int: write its values as integers"),
            ("active = 1", "the column `active` is boolean: write TRUE or FALSE"),
        ] {
            assert_eq!(bound(condition).unwrap_err().to_string(), message, "{condition}");
        }
        let mut columns = columns();
        columns[3].is_nullable = false;
        let condition = Condition::parse("deleted_at IS NULL").unwrap();
        let error = condition.bind(&columns[3..4]).unwrap_err().to_string();
        assert!(error.contains("datetime NOT NULL"), "{error}");
    }
}
