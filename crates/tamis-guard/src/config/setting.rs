//! What turns a value of the file into a setting, or says what is wrong with it.

use std::fmt::Display;

use crate::config::units::Text;

/// The field, and what is wrong with its value.
pub(super) type Wrong = (String, String);

/// Says what is wrong with the value of a field.
pub(super) fn wrong(field: impl Display, message: impl Display) -> Wrong {
    (field.to_string(), message.to_string())
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
