//! Quotes names in SQL.

/// Returns a name as a quoted SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
