//! Parses a condition.
//!
//! ```text
//! condition  = all { "OR" all }
//! all        = part { "AND" part }
//! part       = "NOT" part | "(" condition ")" | column [ test ]
//! test       = "IS" [ "NOT" ] "NULL" | ( "=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" ) value
//!            | [ "NOT" ] "IN" "(" value { "," value } ")"
//! value      = integer | 'text' | "TRUE" | "FALSE"
//! ```

use crate::kinds::condition::expression::{ColumnName, Expression, Literal, Operator};
use crate::kinds::condition::invalid_condition::InvalidCondition;

/// The maximum length of a condition in bytes.
const MAX_BYTES: usize = 8192;

/// The maximum depth of parentheses and `NOT`.
const MAX_DEPTH: usize = 32;

/// The operators. The longer symbols come first, because `<=` begins with `<`.
const OPERATORS: [(&str, Operator); 7] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<>", Operator::NotEqual),
    ("!=", Operator::NotEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// The forms that a condition may have, for messages.
const FORMS: &str = "a condition has the forms: deleted_at IS NULL, status = 'active', status IN (1, 2), and \
    combinations of these forms with NOT, AND, OR and parentheses";

/// Parses a condition. Returns its columns, each of them once, and its expression.
pub(super) fn parse(text: &str) -> Result<(Vec<ColumnName>, Expression), InvalidCondition> {
    if text.len() > MAX_BYTES {
        return Err(InvalidCondition::new(format!(
            "the condition is longer than {MAX_BYTES} bytes"
        )));
    }
    let mut parser = Parser { text, rest: text, columns: Vec::new(), depth: 0 };
    let root = parser.condition()?;
    match parser.rest.is_empty() {
        true => Ok((parser.columns, root)),
        false => Err(parser.unexpected()),
    }
}

struct Parser<'t> {
    text: &'t str,
    rest: &'t str,
    columns: Vec<ColumnName>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn condition(&mut self) -> Result<Expression, InvalidCondition> {
        self.list("OR", Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Expression, InvalidCondition> {
        self.list("AND", Self::part, Expression::All)
    }

    /// Parses parts with a keyword between them.
    fn list(
        &mut self,
        keyword: &str,
        part: fn(&mut Self) -> Result<Expression, InvalidCondition>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, InvalidCondition> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.keyword(keyword) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn part(&mut self) -> Result<Expression, InvalidCondition> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message =
                format!("the condition has more than {MAX_DEPTH} levels of parentheses and NOT");
            return Err(InvalidCondition::new(message));
        }
        let part = if self.keyword("NOT") {
            Expression::Not(Box::new(self.part()?))
        } else if self.symbol("(") {
            let inner = self.condition()?;
            self.expect(")")?;
            inner
        } else {
            let column = self.column()?;
            self.test(column)?
        };
        self.depth -= 1;
        Ok(part)
    }

    fn test(&mut self, column: usize) -> Result<Expression, InvalidCondition> {
        let negated = |is_negated, part| match is_negated {
            true => Expression::Not(Box::new(part)),
            false => part,
        };
        if self.keyword("IS") {
            let is_negated = self.keyword("NOT");
            if !self.keyword("NULL") {
                return Err(self.unexpected());
            }
            return Ok(negated(is_negated, Expression::Null(column)));
        }
        for (symbol, operator) in OPERATORS {
            if self.symbol(symbol) {
                return Ok(Expression::Compare(column, operator, self.value()?));
            }
        }
        let is_negated = self.keyword("NOT");
        if self.keyword("IN") {
            self.expect("(")?;
            let mut values = vec![self.value()?];
            while self.symbol(",") {
                values.push(self.value()?);
            }
            self.expect(")")?;
            return Ok(negated(is_negated, Expression::In(column, values)));
        }
        if is_negated { Err(self.unexpected()) } else { Ok(Expression::Column(column)) }
    }

    /// Parses the name of a column. Returns the index of the column.
    fn column(&mut self) -> Result<usize, InvalidCondition> {
        let rest = self.rest.trim_start();
        let quote = rest.chars().next().filter(|first| ['"', '`'].contains(first));
        let (name, after) = match quote {
            Some(quote) => {
                let (name, after) = rest[1..].split_once(quote).ok_or_else(|| self.unexpected())?;
                if after.starts_with(quote) || name.contains(char::is_control) {
                    return Err(InvalidCondition::new(
                        "the name of a column must not contain a quote or a control character"
                            .to_owned(),
                    ));
                }
                (name, after)
            }
            None => split_word(rest),
        };
        if name.is_empty()
            || quote.is_none()
                && (name.starts_with(|it: char| it.is_ascii_digit()) || is_keyword(name))
        {
            return Err(self.unexpected());
        }
        self.rest = after.trim_start();
        if self.rest.starts_with('.') {
            let message = format!("write the column after {name:?} without the name of its table");
            return Err(InvalidCondition::new(message));
        }
        let column = ColumnName { name: name.to_owned(), is_quoted: quote.is_some() };
        let known = self.columns.iter().position(|it| *it == column);
        Ok(known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        }))
    }

    fn value(&mut self) -> Result<Literal, InvalidCondition> {
        let rest = self.rest.trim_start();
        if rest.starts_with('\'') {
            let (text, after) = split_quoted(rest).ok_or_else(|| {
                InvalidCondition::new(format!("the text {rest:?} has no closing quote"))
            })?;
            self.rest = after;
            if text.contains(['\\', '\0']) {
                let message = "a text must not contain a backslash or a zero byte";
                return Err(InvalidCondition::new(message.to_owned()));
            }
            return Ok(Literal::Text(text));
        }
        if rest.starts_with('"') {
            let message = format!("write texts in single quotes, at {rest:?}");
            return Err(InvalidCondition::new(message));
        }
        if self.keyword("NULL") {
            let message = "a comparison with NULL is never true; write IS NULL or IS NOT NULL";
            return Err(InvalidCondition::new(message.to_owned()));
        }
        if self.keyword("TRUE") {
            return Ok(Literal::Boolean(true));
        }
        if self.keyword("FALSE") {
            return Ok(Literal::Boolean(false));
        }
        let digits = rest.strip_prefix('-').unwrap_or(rest);
        let (digits, after) = split_word(digits);
        let number = &rest[..rest.len() - after.len()];
        // No integer column of a database has more than 64 bits.
        let is_number = !digits.is_empty() && digits.len() <= 20 && !after.starts_with('.');
        match number.parse() {
            Ok(value) if is_number => {
                self.rest = after;
                Ok(Literal::Integer(value))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Skips a keyword in any case. Returns false if another word follows.
    fn keyword(&mut self, keyword: &str) -> bool {
        let (word, after) = split_word(self.rest.trim_start());
        let is_keyword = word.eq_ignore_ascii_case(keyword);
        if is_keyword {
            self.rest = after.trim_start();
        }
        is_keyword
    }

    /// Skips a symbol. Returns false if another text follows.
    fn symbol(&mut self, symbol: &str) -> bool {
        match self.rest.trim_start().strip_prefix(symbol) {
            Some(after) => {
                self.rest = after.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, symbol: &str) -> Result<(), InvalidCondition> {
        if self.symbol(symbol) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> InvalidCondition {
        let rest = self.rest.trim();
        let place = match rest.is_empty() {
            true if self.text.trim().is_empty() => "it is empty".to_owned(),
            true => "it ends too early".to_owned(),
            false => format!("it cannot be read from {rest:?} on"),
        };
        InvalidCondition::new(format!("{place}; {FORMS}"))
    }
}

/// Splits a text in single quotes, such as `'it''s'`, from the rest. Returns the text without its quotes. Returns
/// `None` if `text` does not begin with a quote, or if there is no closing quote.
pub(crate) fn split_quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let (part, after) = rest.split_once('\'')?;
        value.push_str(part);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, after)),
        }
    }
}

/// Splits the letters, digits and underscores at the start of a text from the rest.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|it: char| !it.is_alphanumeric() && !['_', '$'].contains(&it));
    text.split_at(end.unwrap_or(text.len()))
}

fn is_keyword(word: &str) -> bool {
    ["AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "LIKE", "BETWEEN"]
        .iter()
        .any(|it| word.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_cannot_be_read_are_refused_with_their_place() {
        for (text, message) in [
            ("", "it is empty; a condition has the forms: deleted_at IS NULL"),
            ("status =", "it ends too early; a condition has the forms"),
            ("status LIKE 'a%'", "it cannot be read from \"LIKE 'a%'\" on"),
            ("status = 'a' ; DROP TABLE x", "it cannot be read from \"; DROP TABLE x\" on"),
            ("status = 'a' -- x", "it cannot be read from \"-- x\" on"),
            ("lower(status) = 'a'", "it cannot be read from \"(status) = 'a'\" on"),
            ("status = NULL", "a comparison with NULL is never true; write IS NULL"),
            ("status = \"a\"", "write texts in single quotes, at \"\\\"a\\\"\""),
            ("status = 'a", "the text \"'a\" has no closing quote"),
            ("status = 'a''", "the text \"'a''\" has no closing quote"),
            (r"status = 'a\'", "a text must not contain a backslash or a zero byte"),
            ("p.status = 1", "write the column after \"p\" without the name of its table"),
            ("price > 1.5", "it cannot be read from \"1.5\" on"),
            ("n = 123456789012345678901234567890", "it cannot be read from"),
            ("n IN ()", "it cannot be read from \")\" on"),
            ("n BETWEEN 1 AND 2", "it cannot be read from \"BETWEEN"),
            ("1 = 1", "it cannot be read from \"1 = 1\" on"),
            ("status = other", "it cannot be read from \"other\" on"),
            ("(a = 1", "it ends too early"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
        for deep in ["(".repeat(100_000), "NOT ".repeat(1000), "(".repeat(1000)] {
            parse(&deep).unwrap_err();
        }
    }

    #[test]
    fn a_column_is_found_once_for_each_spelling() {
        let (columns, _) = parse("a = 1 AND (A = 2 OR a = 3) AND `a` = 4 AND 状态 = 5").unwrap();
        let names: Vec<_> = columns.iter().map(|it| (&*it.name, it.is_quoted)).collect();
        assert_eq!(names, [("a", false), ("A", false), ("a", true), ("状态", false)]);
    }

    #[test]
    fn random_texts_cause_no_panic() {
        const PARTS: [&str; 16] = [
            "a", "`b`", "\"", "'", "'x'", "''", "1", "-", "(", ")", "NOT ", " AND ", " IN ", "=",
            "<", "\n",
        ];
        let mut random = 1_u64;
        for _ in 0..50_000 {
            let mut text = String::new();
            for _ in 0..8 {
                // The constants are from Knuth, The Art of Computer Programming, volume 2, section 3.3.4.
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.push_str(PARTS[(random >> 60) as usize]);
            }
            if let Err(error) = parse(&text) {
                assert!(!error.to_string().contains('\n'), "an error is one line: {error}");
            }
        }
    }
}
