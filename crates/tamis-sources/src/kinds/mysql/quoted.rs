//! Names in SQL.

/// Returns a name as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
