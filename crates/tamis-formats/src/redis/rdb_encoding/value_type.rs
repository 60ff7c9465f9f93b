//! The type numbers of values in snapshots and in the result of `DUMP`.

pub(crate) const STRING: u8 = 0;
pub(crate) const LIST: u8 = 1;
pub(crate) const SET: u8 = 2;
pub(crate) const SORTED_SET: u8 = 3;
pub(crate) const HASH: u8 = 4;
pub(crate) const SORTED_SET_2: u8 = 5;
pub(crate) const MODULE_2: u8 = 7;
pub(crate) const HASH_ZIPMAP: u8 = 9;
pub(crate) const LIST_ZIPLIST: u8 = 10;
pub(crate) const SET_INTSET: u8 = 11;
pub(crate) const SORTED_SET_ZIPLIST: u8 = 12;
pub(crate) const HASH_ZIPLIST: u8 = 13;
pub(crate) const LIST_QUICKLIST: u8 = 14;
pub(crate) const STREAM: u8 = 15;
pub(crate) const HASH_LISTPACK: u8 = 16;
pub(crate) const SORTED_SET_LISTPACK: u8 = 17;
pub(crate) const LIST_QUICKLIST_2: u8 = 18;
pub(crate) const STREAM_2: u8 = 19;
pub(crate) const SET_LISTPACK: u8 = 20;
pub(crate) const STREAM_3: u8 = 21;
/// A hash of Valkey 9 with an expiry for each field.
pub(crate) const VALKEY_HASH_EXPIRING: u8 = 22;
/// A hash of Redis 7.4 with an expiry for each field.
pub(crate) const HASH_EXPIRING: u8 = 24;
pub(crate) const HASH_EXPIRING_LISTPACK: u8 = 25;
