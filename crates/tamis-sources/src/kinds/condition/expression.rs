//! The parts of a parsed condition.

/// The name of a column in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName {
    pub(crate) name: String,
    /// True if the name is in quotes. PostgreSQL converts a name without quotes to lowercase.
    pub(crate) is_quoted: bool,
}

/// A part of a condition. A column is an index into the columns of the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Null(usize),
    /// A column without a comparison: true for the boolean true, and for each number except 0.
    Column(usize),
    Compare(usize, Operator, Literal),
    In(usize, Vec<Literal>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Integer(i128),
    Boolean(bool),
    Text(String),
}
