//! Copies values of the file into settings, and the error of an invalid value.

use std::fmt::Display;

use crate::config::units::{Size, Text};

/// A value of the file that cannot be used.
#[derive(Debug)]
pub(super) struct InvalidValue {
    /// The field, with its table.
    pub(super) field: String,
    /// What is wrong with its value.
    pub(super) message: String,
}

impl InvalidValue {
    /// Adds a prefix to the field, such as `ids.orders.`.
    pub(super) fn with_prefix(self, prefix: impl Display) -> Self {
        Self { field: format!("{prefix}{}", self.field), ..self }
    }
}

/// Creates the error for a field.
pub(super) fn invalid(field: impl Display, message: impl Display) -> InvalidValue {
    InvalidValue { field: field.to_string(), message: message.to_string() }
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
