//! The row of an option: its name, help and value.

use crate::config::Config;

/// An option of the server. The command line builds its flags from these rows.
#[derive(Clone, Copy, Debug)]
pub struct ConfigOption {
    /// The name, as in `CONFIG GET`.
    pub name: &'static str,
    /// The group in the help text.
    pub group: OptionGroup,
    /// The placeholder of the value in the help text, such as `PORT`.
    pub value: &'static str,
    /// What the option does, and its default.
    pub help: &'static str,
    /// True if the value, such as a password, must not appear in logs and error messages.
    pub is_secret: bool,
    /// True if `CONFIG SET` may change the option.
    pub(super) is_live: bool,
    pub(super) expected: &'static str,
    pub(super) get: fn(&Config) -> String,
    pub(super) set: fn(&mut Config, &str) -> Option<()>,
}

/// The usual values of a row: an option that is set before the start and is no secret.
pub(super) const DEFAULT_ROW: ConfigOption = ConfigOption {
    name: "",
    group: OptionGroup::Limits,
    value: "",
    help: "",
    is_secret: false,
    is_live: false,
    expected: "",
    get: |_| String::new(),
    set: |_, _| None,
};

/// The groups of options, in the order of the help text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionGroup {
    /// Addresses and ports.
    Network,
    /// Certificates.
    Tls,
    /// Users, passwords and keys.
    Access,
    /// The log and its snapshots.
    Durability,
    /// Memory, clients and threads.
    Limits,
    /// The parameters of new filters.
    Filters,
    /// Metrics and the slow log.
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
