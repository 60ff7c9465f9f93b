//! Writes a condition as SQL. Each name and each value of the SQL comes from the parsed condition, so the SQL contains
//! no other text of the configuration.

use std::fmt;

use crate::kinds::condition::expression::{Expression, Literal, Operator};
use crate::kinds::condition::field::{BoundColumn, FieldKind};

/// Writes an expression as SQL.
pub(super) struct Sql<'e> {
    pub(super) expression: &'e Expression,
    /// The columns of the condition, in its order.
    pub(super) columns: &'e [BoundColumn],
}

impl fmt::Display for Sql<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { columns, .. } = *self;
        match self.expression {
            Expression::All(parts) => self.join(f, parts, " AND "),
            Expression::Any(parts) => self.join(f, parts, " OR "),
            Expression::Not(part) => write!(f, "(NOT {})", Sql { expression: part, columns }),
            Expression::Null(column) => write!(f, "({} IS NULL)", columns[*column].sql),
            Expression::Column(column) => match columns[*column].kind {
                FieldKind::Boolean => write!(f, "({})", columns[*column].sql),
                _ => write!(f, "({} <> 0)", columns[*column].sql),
            },
            Expression::Compare(column, operator, value) => {
                let BoundColumn { sql, kind, .. } = &columns[*column];
                write!(f, "({sql} {} {})", operator.sql(), value.sql(kind))
            }
            Expression::In(column, values) => {
                let BoundColumn { sql, kind, .. } = &columns[*column];
                let values: Vec<String> = values.iter().map(|value| value.sql(kind)).collect();
                write!(f, "({sql} IN ({}))", values.join(", "))
            }
        }
    }
}

impl Sql<'_> {
    fn join(&self, f: &mut fmt::Formatter<'_>, parts: &[Expression], word: &str) -> fmt::Result {
        let part = |expression| Sql { expression, columns: self.columns }.to_string();
        write!(f, "({})", parts.iter().map(part).collect::<Vec<_>>().join(word))
    }
}

impl Operator {
    fn sql(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl Literal {
    fn sql(&self, kind: &FieldKind) -> String {
        match (self, kind) {
            (Self::Integer(value), _) => value.to_string(),
            (Self::Boolean(value), FieldKind::Boolean) => value.to_string().to_uppercase(),
            (Self::Boolean(value), _) => u8::from(*value).to_string(),
            // The parser rejects a backslash, which is an escape in MySQL.
            (Self::Text(text), _) => format!("'{}'", text.replace('\'', "''")),
        }
    }
}
