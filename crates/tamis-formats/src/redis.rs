//! Redis' own encodings: snapshots, `DUMP` payloads and strings.

pub(crate) mod payload;
pub(crate) mod rdb;
pub(crate) mod rdb_encoding;
pub(crate) mod string;
