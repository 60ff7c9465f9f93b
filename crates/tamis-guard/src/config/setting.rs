//! What turns a value of the file into a setting, or says what is wrong with it.

use std::fmt::Display;

use crate::config::units::{Size, Text};

/// A value of the file that cannot be used.
#[derive(Debug)]
pub(super) struct Wrong {
    /// The field, with its table.
    pub(super) field: String,
    /// What is wrong with its value.
    pub(super) message: String,
}

impl Wrong {
    /// Adds the name of the table, and what stands between it and the field.
    pub(super) fn within(self, table: impl Display) -> Self {
        Self { field: format!("{table}{}", self.field), ..self }
    }
}

/// Says what is wrong with the value of a field.
pub(super) fn wrong(field: impl Display, message: impl Display) -> Wrong {
    Wrong { field: field.to_string(), message: message.to_string() }
}

/// Replaces a setting, if the file has it.
pub(super) fn set_to<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}

/// As `set_to`, for a value that the file writes as a text.
pub(super) fn set_to_text<T>(setting: &mut T, value: Option<Text<T>>) {
    set_to(setting, value.map(|Text(value)| value));
}

/// Returns a size of the file in bytes.
pub(super) fn bytes(Text(Size(bytes)): Text<Size>) -> usize {
    // At most a TiB.
    bytes as usize
}
