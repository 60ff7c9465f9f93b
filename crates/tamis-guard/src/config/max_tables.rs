//! The maximum number of tables of one set. The field `tables` and the list of sources share this limit.

/// The maximum number of tables of one set.
pub(super) const MAX_TABLES: usize = 1024;

/// Returns the message about a set with too many tables.
pub(super) fn too_many() -> String {
    format!("a set has at most {MAX_TABLES} tables")
}
