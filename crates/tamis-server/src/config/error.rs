//! The errors of setting an option.

use std::fmt;

use tamis_commands::SettingError;

/// The reason why an option rejects a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// No option has the name `name`.
    Unknown {
        /// The unknown name.
        name: String,
        /// The name of an option that is similar to the unknown name.
        similar: Option<&'static str>,
    },
    /// The value is invalid for this option.
    Invalid {
        /// The name of the option.
        name: &'static str,
        /// The values that the option accepts.
        expected: &'static str,
    },
    /// The option cannot be changed while the server runs.
    Fixed {
        /// The name of the option.
        name: &'static str,
    },
    /// A setting of new filters rejects the value.
    Filters(SettingError),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Unknown { name, similar } => {
                write!(f, "there is no option {name:?}")?;
                similar.map_or(Ok(()), |similar| write!(f, "; a similar option is {similar:?}"))
            }
            ConfigError::Invalid { name, expected } => {
                write!(f, "argument must be {expected} for '{name}'")
            }
            ConfigError::Fixed { name } => write!(f, "can't set immutable config '{name}'"),
            ConfigError::Filters(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConfigError {}

/// The reason why a text is not a valid value of an option: a description of the valid values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionValueError(pub(super) &'static str);

impl fmt::Display for OptionValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for OptionValueError {}
