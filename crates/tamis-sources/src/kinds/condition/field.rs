//! The values of columns, and their comparison with the values of a condition.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::ids::fold::Fold;
use crate::kinds::condition::expression::{Literal, Operator};
use crate::kinds::condition::truth::Truth;

/// The way in which a column compares values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Integer,
    Boolean,
    /// Texts are equal if their folded keys are equal. If the fold is not precise, texts with equal keys may differ.
    Text(Fold),
    /// Texts as in [`Text`](Self::Text), but only for ASCII. A comparison with another text is not certain.
    Ascii(Fold),
    /// A type whose comparison the source does not know. Only the test for NULL is possible.
    Other,
}

/// A column of the table that a condition tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundColumn {
    /// The quoted name for SQL.
    pub(crate) sql: String,
    pub(crate) kind: FieldKind,
    /// True if the column may contain NULL.
    pub(crate) is_nullable: bool,
    /// The type as SQL, for messages.
    pub(crate) full_type: String,
}

/// The value of a column in a row of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field<'r> {
    Null,
    Integer(i128),
    Boolean(bool),
    Text(Cow<'r, [u8]>),
    /// A value that is not NULL, of a type that the source does not compare.
    Other,
    /// The log does not contain the value.
    Unknown,
}

/// A test of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Null,
    Integer(Operator, i128),
    Boolean(bool),
    Equal(TextValue),
    NotEqual(TextValue),
}

/// A text of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextValue {
    text: Vec<u8>,
    /// The folded text.
    key: Vec<u8>,
    fold: Fold,
    /// True if only comparisons with ASCII texts are certain.
    is_ascii: bool,
}

impl FieldKind {
    /// Returns the test of a column that is a condition itself. Returns an error as the end of a message.
    pub(super) fn truthy(self) -> Result<Test, String> {
        match self {
            Self::Integer => Ok(Test::Integer(Operator::NotEqual, 0)),
            Self::Boolean => Ok(Test::Boolean(true)),
            Self::Text(_) | Self::Ascii(_) => {
                Err(": compare it with a text in single quotes".to_owned())
            }
            Self::Other => Err(only_null()),
        }
    }

    /// Returns the test of a comparison. Returns an error as the end of a message.
    pub(super) fn compare(self, operator: Operator, value: &Literal) -> Result<Test, String> {
        match (self, value) {
            (Self::Integer, Literal::Integer(value)) => Ok(Test::Integer(operator, *value)),
            (Self::Integer, Literal::Boolean(value)) => {
                Ok(Test::Integer(operator, i128::from(*value)))
            }
            (Self::Integer, Literal::Text(_)) => Err(": write its values as integers".to_owned()),
            (Self::Boolean, Literal::Boolean(value)) => match operator {
                Operator::Equal => Ok(Test::Boolean(*value)),
                Operator::NotEqual => Ok(Test::Boolean(!*value)),
                _ => Err(", and booleans can only be compared with = and <>".to_owned()),
            },
            (Self::Boolean, _) => Err(": write TRUE or FALSE".to_owned()),
            (Self::Ascii(_), Literal::Text(text)) if !text.is_ascii() => {
                Err(": write ASCII texts".to_owned())
            }
            (Self::Text(fold) | Self::Ascii(fold), Literal::Text(text)) => {
                let is_ascii = matches!(self, Self::Ascii(_));
                let key = fold.key(text.as_bytes()).into_owned();
                let value = TextValue { text: text.clone().into_bytes(), key, fold, is_ascii };
                match operator {
                    Operator::Equal => Ok(Test::Equal(value)),
                    Operator::NotEqual => Ok(Test::NotEqual(value)),
                    // The order of texts depends on the collation.
                    _ => {
                        Err(", and texts can only be compared with =, <>, IN and NOT IN".to_owned())
                    }
                }
            }
            // MySQL would compare the text as a number: 'abc' = 0 is true.
            (Self::Text(_) | Self::Ascii(_), _) => {
                Err(": write its values as texts in single quotes".to_owned())
            }
            (Self::Other, _) => Err(only_null()),
        }
    }
}

fn only_null() -> String {
    ", and a condition can only test it with IS NULL or IS NOT NULL".to_owned()
}

impl Test {
    /// Returns the possible results of the test for a value.
    pub(super) fn truth(&self, field: &Field<'_>) -> Truth {
        match (self, field) {
            (Self::Null, Field::Unknown) => Truth::TRUE_OR_FALSE,
            (Self::Null, field) => Truth::of(*field == Field::Null),
            (_, Field::Null) => Truth::NULL,
            (Self::Integer(operator, value), Field::Integer(field)) => {
                Truth::of(operator.holds(field.cmp(value)))
            }
            (Self::Boolean(value), Field::Boolean(field)) => Truth::of(field == value),
            (Self::Equal(value), Field::Text(field)) => value.equals(field),
            (Self::NotEqual(value), Field::Text(field)) => value.equals(field).not(),
            // The log has a value of another type than the table. The row stays in the set.
            _ => Truth::UNKNOWN,
        }
    }
}

impl TextValue {
    fn equals(&self, field: &[u8]) -> Truth {
        if field == self.text {
            return Truth::TRUE;
        }
        // In `gbk_chinese_ci` and `gb2312_chinese_ci`, the tilde is equal to the letter Y.
        let is_uncertain = |text: &[u8]| !text.is_ascii() || text.contains(&b'~');
        if self.is_ascii && (is_uncertain(field) || is_uncertain(&self.text)) {
            return Truth::TRUE_OR_FALSE;
        }
        match *self.fold.key(field) == *self.key {
            false => Truth::FALSE,
            true if self.fold.is_precise() => Truth::TRUE,
            true => Truth::TRUE_OR_FALSE,
        }
    }
}

impl Operator {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}
