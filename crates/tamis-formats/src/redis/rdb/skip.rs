//! Skips values of types that cannot contain a filter.

use crate::redis::rdb::flavor::Flavor;
use crate::redis::rdb_encoding::{RdbReader, value_type};

/// A function that skips a value.
pub(super) type Skip = fn(&mut RdbReader<'_>) -> Option<()>;

/// Returns the function that skips a value of the type `kind`. Returns `None` if the type is unknown.
pub(super) fn skip_of(kind: u8, flavor: Flavor) -> Option<Skip> {
    Some(match kind {
        value_type::STRING
        | value_type::HASH_ZIPMAP
        | value_type::LIST_ZIPLIST
        | value_type::SET_INTSET
        | value_type::SORTED_SET_ZIPLIST
        | value_type::HASH_ZIPLIST
        | value_type::HASH_LISTPACK
        | value_type::SORTED_SET_LISTPACK
        | value_type::SET_LISTPACK => |from| from.skip_bytes(),
        value_type::LIST | value_type::SET | value_type::LIST_QUICKLIST => {
            |from| skip_each(from, RdbReader::skip_bytes)
        }
        value_type::HASH => |from| skip_each(from, |from| skip_strings(from, 2)),
        value_type::SORTED_SET => {
            |from| skip_each(from, |from| skip_strings(from, 1).and_then(|()| skip_score(from)))
        }
        value_type::SORTED_SET_2 => |from| {
            skip_each(from, |from| skip_strings(from, 1).and_then(|()| from.take(8).map(drop)))
        },
        value_type::LIST_QUICKLIST_2 => {
            |from| skip_each(from, |from| skip_lengths(from, 1).and_then(|()| from.skip_bytes()))
        }
        value_type::MODULE_2 => |from| {
            from.length()?;
            from.skip_values()
        },
        value_type::STREAM => |from| skip_stream(from, 1),
        value_type::STREAM_2 => |from| skip_stream(from, 2),
        value_type::STREAM_3 => |from| skip_stream(from, 3),
        // The value starts with the earliest expiry. The expiry of each field precedes the field and its value.
        value_type::HASH_EXPIRING if flavor == Flavor::Redis => |from| {
            from.take(8)?;
            skip_each(from, |from| skip_lengths(from, 1).and_then(|()| skip_strings(from, 2)))
        },
        value_type::HASH_EXPIRING_LISTPACK if flavor == Flavor::Redis => |from| {
            from.take(8)?;
            from.skip_bytes()
        },
        // The expiry of a field follows the field and its value.
        value_type::VALKEY_HASH_EXPIRING if flavor == Flavor::Valkey => |from| {
            skip_each(from, |from| skip_strings(from, 2).and_then(|()| from.take(8).map(drop)))
        },
        _ => return None,
    })
}

/// Skips a list. The number of elements is stored before the elements.
fn skip_each<'a>(
    from: &mut RdbReader<'a>,
    skip: impl Fn(&mut RdbReader<'a>) -> Option<()>,
) -> Option<()> {
    (0..from.length()?).try_for_each(|_| skip(from))
}

pub(super) fn skip_strings(from: &mut RdbReader<'_>, count: u64) -> Option<()> {
    (0..count).try_for_each(|_| from.skip_bytes())
}

pub(super) fn skip_lengths(from: &mut RdbReader<'_>, count: u64) -> Option<()> {
    (0..count).try_for_each(|_| from.length().map(drop))
}

/// Skips a score. A score is text, or one of three special values without text.
fn skip_score(from: &mut RdbReader<'_>) -> Option<()> {
    match from.take(1)?[0] {
        253..=255 => Some(()),
        len => from.take(len.into()).map(drop),
    }
}

/// Skips a stream: the entries, then numbers, then the consumer groups with their pending entries.
fn skip_stream(from: &mut RdbReader<'_>, version: u8) -> Option<()> {
    skip_each(from, |from| skip_strings(from, 2))?;
    // All stream versions store the number of entries and the last id. From version 2, a stream stores the first id,
    // the largest deleted id, and the total number of inserted entries.
    skip_lengths(from, if version >= 2 { 3 + 5 } else { 3 })?;
    for _ in 0..from.length()? {
        from.skip_bytes()?;
        // All stream versions store the last delivered id of a group. From version 2, a group stores the number of
        // entries that were read.
        skip_lengths(from, if version >= 2 { 3 } else { 2 })?;
        skip_each(from, |from| from.take(16 + 8).and_then(|_| skip_lengths(from, 1)))?;
        for _ in 0..from.length()? {
            from.skip_bytes()?;
            // All stream versions store the time at which a consumer was last seen. From version 3, a consumer stores
            // the time of its last activity.
            from.take(if version >= 3 { 16 } else { 8 })?;
            skip_each(from, |from| from.take(16).map(drop))?;
        }
    }
    Some(())
}
