//! Opens, queries and changes filters in files, in tables and on servers.

pub(crate) mod change_lock;
pub(crate) mod column_table;
#[cfg(feature = "network")]
pub(crate) mod content_tag;
pub(crate) mod lookup;
pub(crate) mod metadata;
pub(crate) mod open_filter;
pub(crate) mod opener;
pub mod orc_file;
pub(crate) mod orc_table;
pub(crate) mod parquet_table;
pub(crate) mod rate_notes;
#[cfg(feature = "network")]
pub(crate) mod redis_key;
#[cfg(not(feature = "network"))]
#[path = "filters/no_redis_key.rs"]
pub(crate) mod redis_key;
pub(crate) mod redis_url;
pub(crate) mod server_filter;
pub(crate) mod table_filters;
pub(crate) mod unread_file;
pub(crate) mod varint;
