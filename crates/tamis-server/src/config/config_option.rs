//! A row of the option table: the name, the help text and the value of an option.

use crate::config::Config;

/// An option of the server. The command line builds one flag from each `ConfigOption`.
#[derive(Clone, Copy, Debug)]
pub struct ConfigOption {
    /// The name that `CONFIG GET` shows.
    pub name: &'static str,
    /// The group of the option in the help text.
    pub group: OptionGroup,
    /// The placeholder of the value in the help text, such as `PORT`.
    pub value: &'static str,
    /// The effect of the option, and its default.
    pub help: &'static str,
    /// True if logs and error messages must hide the value of the option, such as a password.
    pub is_secret: bool,
    /// True if `CONFIG SET` may change the option.
    pub(super) is_live: bool,
    pub(super) expected: &'static str,
    pub(super) get: fn(&Config) -> String,
    pub(super) set: fn(&mut Config, &str) -> Option<()>,
}

/// Creates the row of an option that can be set only before the start and is not secret. `expected`
/// describes the valid values.
pub(super) const fn option(
    name: &'static str,
    group: OptionGroup,
    value: &'static str,
    expected: &'static str,
) -> ConfigOption {
    let (get, set) = (|_: &_| String::new(), |_: &mut _, _: &_| None);
    let (is_secret, is_live) = (false, false);
    ConfigOption { name, group, value, help: "", is_secret, is_live, expected, get, set }
}

impl ConfigOption {
    /// Sets the help text of the option.
    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// Sets the function that returns the option's value as text.
    pub(super) const fn get(self, get: fn(&Config) -> String) -> Self {
        Self { get, ..self }
    }

    /// Sets the function that parses a text and stores the value. The function returns `None` if
    /// the text is invalid.
    pub(super) const fn set(self, set: fn(&mut Config, &str) -> Option<()>) -> Self {
        Self { set, ..self }
    }

    /// Allows `CONFIG SET` to change the option.
    pub(super) const fn live(self) -> Self {
        Self { is_live: true, ..self }
    }

    /// Hides the option's value in logs and error messages.
    pub(super) const fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// The groups of options, in the order of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionGroup {
    /// Options for addresses and ports.
    Network,
    /// Options for TLS certificates.
    Tls,
    /// Options for users, passwords and keys.
    Access,
    /// Options for the log and its snapshots.
    Durability,
    /// Options for memory, clients and threads.
    Limits,
    /// Options for the parameters of new filters.
    Filters,
    /// Options for metrics and the slow log.
    Monitoring,
}

impl OptionGroup {
    /// Returns the heading of the group in a help text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OptionGroup::Network => "Network",
            OptionGroup::Tls => "TLS",
            OptionGroup::Access => "Access",
            OptionGroup::Durability => "Durability",
            OptionGroup::Limits => "Memory and clients",
            OptionGroup::Filters => "New filters",
            OptionGroup::Monitoring => "Monitoring",
        }
    }
}
