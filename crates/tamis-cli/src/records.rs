//! Splits the bytes of an input into records, and extracts the items.

pub(crate) mod calendar;
pub(crate) mod column_name;
pub(crate) mod column_text;
pub mod csv;
pub(crate) mod items;
pub mod key;
pub(crate) mod record_reader;
pub(crate) mod repeats;
pub(crate) mod secret_set;
pub mod split;
