//! An option, as a command line shows it.

/// An option, as a command line shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigOption {
    /// The name, as in `CONFIG GET`.
    pub name: &'static str,
    /// What it is about.
    pub group: OptionGroup,
    /// What a help text calls the value, such as `PORT`.
    pub value: &'static str,
    /// What it does, and its default.
    pub help: &'static str,
    /// Whether its value is for no log and no error message, such as a password.
    pub is_secret: bool,
}

/// What options are about, in the order of a help text.
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
    /// How new filters are made.
    Filters,
    /// What is counted and listed.
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
