//! Copies values from the file to settings. Defines the error for an invalid value.

use std::fmt::Display;

use crate::config::units::{Size, Text};

/// The error for an invalid value in the file.
#[derive(Debug)]
pub(super) struct InvalidValue {
    /// The name of the field, including its table.
    pub(super) field: String,
    /// The problem with the value.
    pub(super) message: String,
}

impl InvalidValue {
    /// Adds a prefix such as `ids.orders.` to the field name.
    pub(super) fn with_prefix(self, prefix: impl Display) -> Self {
        Self { field: format!("{prefix}{}", self.field), ..self }
    }
}

/// Creates the error for a field.
pub(super) fn invalid(field: impl Display, message: impl Display) -> InvalidValue {
    InvalidValue { field: field.to_string(), message: message.to_string() }
}

/// Replaces a setting if the file contains a value.
pub(super) fn set_to<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}

/// Replaces a setting as `set_to` does. The file contains the value as text.
pub(super) fn set_to_text<T>(setting: &mut T, value: Option<Text<T>>) {
    set_to(setting, value.map(|Text(value)| value));
}

/// Returns a size from the file in bytes.
pub(super) fn bytes(Text(Size(bytes)): Text<Size>) -> usize {
    // The parser limits a size to 1 TiB, so the cast is lossless.
    bytes as usize
}
