//! The key of a row of CSV: the text of a column, or the whole row.

use std::num::NonZeroUsize;

use memchr::memchr;

use crate::records::csv::fields::{QUOTE, fields, unquoted, without_return};

/// The field of a record that the user selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// The field with this number, counted from 1.
    Number(NonZeroUsize),
    /// The column of CSV with this name.
    Name(Box<str>),
}

/// Parses the number of a field or the name of a column for clap.
///
/// # Errors
///
/// A message with the correct syntax.
pub fn field(text: &str) -> Result<Field, String> {
    let is_number = text.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        crate::arguments::numbers::at_least_one(text).map(Field::Number)
    } else {
        Ok(Field::Name(text.into()))
    }
}

/// The part of a row that is its key: a column, or the whole row.
#[derive(Clone, Debug)]
pub struct RowKey {
    delimiter: Box<[u8]>,
    column: Option<Field>,
    // The number of the column. The number is zero until a header with the name is read.
    number: usize,
}

impl RowKey {
    /// Creates the rule for a column, or for whole rows.
    pub fn new(delimiter: &[u8], column: Option<Field>) -> Self {
        let number = match column {
            Some(Field::Number(number)) => number.get(),
            _ => 0,
        };
        Self { delimiter: delimiter.into(), column, number }
    }

    /// Rejects a delimiter that CSV cannot have, and a column name without a header.
    ///
    /// # Errors
    ///
    /// A message that states how to correct the options.
    pub fn check(&self, has_header: bool) -> Result<(), String> {
        if self.delimiter.len() != 1 || b"\"\r\n".contains(&self.delimiter[0]) {
            return Err(format!(
                "-d '{}': fields of CSV are separated by one byte, such as ',' or ';' or '\\t', and not by a quote or a line end",
                self.delimiter.escape_ascii()
            ));
        }
        match &self.column {
            Some(Field::Name(name)) if !has_header => Err(format!(
                "'{name}': a column has a name only in a header, and --no-header says that the file has no header: give the \
                 number of the column"
            )),
            _ => Ok(()),
        }
    }

    /// Returns the message about a column of records that are not CSV.
    pub fn without_csv(&self) -> String {
        let name = match &self.column {
            Some(Field::Name(name)) => &**name,
            _ => "",
        };
        format!(
            "'{name}' is not a whole number above zero: only the columns of --csv have names; give the number of the field"
        )
    }

    /// Finds the column in the header of an input.
    ///
    /// # Errors
    ///
    /// A message with the column names if the header has no column, or several columns, of the
    /// requested name. A message if the header contains a carriage return. If rows end with a
    /// carriage return, the whole file would be the header.
    pub fn set_header(&mut self, header: &[u8]) -> Result<(), String> {
        let has_return =
            |field: &[u8]| field.first() != Some(&QUOTE) && memchr(b'\r', field).is_some();
        if fields(without_return(header), self.delimiter[0]).any(has_return) {
            return Err(
                "the header contains a carriage return: rows must end with \\n or \\r\\n; \
                        if these rows end with \\r alone, convert them (tr '\\r' '\\n')"
                    .into(),
            );
        }
        let Some(column) = &self.column else { return Ok(()) };
        let names = self.names(header);
        self.number = match column {
            Field::Number(number) if number.get() <= names.len() => number.get(),
            Field::Number(number) => {
                return Err(format!("no column {number}: {}", self.columns(&names)));
            }
            Field::Name(name) => {
                let mut found =
                    names.iter().enumerate().filter(|(_, it)| ***it == *name.as_bytes());
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => at + 1,
                    (None, _) => {
                        return Err(format!("no column '{name}': {}", self.columns(&names)));
                    }
                    (Some((one, _)), Some((other, _))) => {
                        return Err(format!(
                            "columns {} and {} are both named '{name}': give the number of the column",
                            one + 1,
                            other + 1
                        ));
                    }
                }
            }
        };
        Ok(())
    }

    /// Returns the key of `row`. Returns `None` if the row has too few fields. `scratch` is a
    /// buffer that may hold the key.
    pub fn of<'a>(&self, row: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let row = without_return(row);
        if self.column.is_none() {
            return Some(row);
        }
        let field = fields(row, self.delimiter[0]).nth(self.number.checked_sub(1)?)?;
        Some(unquoted(field, scratch))
    }

    /// Returns the text of each field of a row.
    pub(super) fn names(&self, header: &[u8]) -> Vec<Vec<u8>> {
        let fields = fields(without_return(header), self.delimiter[0]);
        fields.map(|field| unquoted(field, &mut Vec::new()).to_vec()).collect()
    }

    /// Returns a list of the columns for a message.
    fn columns(&self, names: &[Vec<u8>]) -> String {
        const SHOWN: usize = 20;
        if names.is_empty() {
            return "the first row is empty".into();
        }
        let shown: Vec<String> = names
            .iter()
            .take(SHOWN)
            .map(|name| format!("'{}'", String::from_utf8_lossy(name)))
            .collect();
        let more = if names.len() > SHOWN { ", ..." } else { "" };
        let first = names.first().map_or(&[][..], Vec::as_slice);
        let other = [b';', b'\t', b'|', b','].into_iter().find(|byte| first.contains(byte));
        let advice = match other {
            Some(byte) if names.len() == 1 => {
                format!("; if '{}' separates the fields, give it with -d", byte.escape_ascii())
            }
            _ => String::new(),
        };
        let columns = if names.len() == 1 { "the column is" } else { "the columns are" };
        format!("{columns} {}{more}{advice}", shown.join(", "))
    }

    /// Returns a text that is equal for equal rules.
    pub fn describe(&self) -> String {
        let by = self.delimiter.escape_ascii();
        match &self.column {
            None => format!("row of CSV by '{by}'"),
            Some(Field::Number(number)) => format!("column {number} of CSV by '{by}'"),
            Some(Field::Name(name)) => format!("column '{name}' of CSV by '{by}'"),
        }
    }
}
