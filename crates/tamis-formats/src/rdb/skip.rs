//! Passing over values of types that hold no filter.

use super::coding::Reader;
use super::kind;

/// Passes over a value.
pub(super) type Skip = fn(&mut Reader<'_>) -> Option<()>;

/// Returns how to pass over a value of a type, if it is known.
pub(super) fn skip_of(kind: u8) -> Option<Skip> {
    Some(match kind {
        kind::STRING
        | kind::HASH_ZIPMAP
        | kind::LIST_ZIPLIST
        | kind::SET_INTSET
        | kind::SORTED_SET_ZIPLIST
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::SORTED_SET_LISTPACK
        | kind::SET_LISTPACK => |from| from.skip_bytes(),
        kind::LIST | kind::SET | kind::LIST_QUICKLIST => |from| skip_each(from, Reader::skip_bytes),
        kind::HASH => |from| skip_each(from, |from| skip_strings(from, 2)),
        kind::SORTED_SET => {
            |from| skip_each(from, |from| skip_strings(from, 1).and_then(|()| skip_score(from)))
        }
        kind::SORTED_SET_2 => |from| {
            skip_each(from, |from| skip_strings(from, 1).and_then(|()| from.take(8).map(drop)))
        },
        kind::LIST_QUICKLIST_2 => {
            |from| skip_each(from, |from| skip_lengths(from, 1).and_then(|()| from.skip_bytes()))
        }
        kind::MODULE_2 => |from| {
            from.length()?;
            from.skip_values()
        },
        kind::STREAM => |from| skip_stream(from, 1),
        kind::STREAM_2 => |from| skip_stream(from, 2),
        kind::STREAM_3 => |from| skip_stream(from, 3),
        // The earliest expiry, then each field's own.
        kind::HASH_EXPIRING => |from| {
            from.take(8)?;
            skip_each(from, |from| skip_lengths(from, 1).and_then(|()| skip_strings(from, 2)))
        },
        kind::HASH_EXPIRING_LISTPACK => |from| {
            from.take(8)?;
            from.skip_bytes()
        },
        _ => return None,
    })
}

/// Passes over parts, whose number comes first.
fn skip_each<'a>(
    from: &mut Reader<'a>,
    skip: impl Fn(&mut Reader<'a>) -> Option<()>,
) -> Option<()> {
    (0..from.length()?).try_for_each(|_| skip(from))
}

pub(super) fn skip_strings(from: &mut Reader<'_>, count: u64) -> Option<()> {
    (0..count).try_for_each(|_| from.skip_bytes())
}

pub(super) fn skip_lengths(from: &mut Reader<'_>, count: u64) -> Option<()> {
    (0..count).try_for_each(|_| from.length().map(drop))
}

/// A score as text, or one of three that have none.
fn skip_score(from: &mut Reader<'_>) -> Option<()> {
    match from.take(1)?[0] {
        253..=255 => Some(()),
        len => from.take(len.into()).map(drop),
    }
}

/// Parts of items, then numbers, then the groups of readers with what each was given and did not confirm.
fn skip_stream(from: &mut Reader<'_>, version: u8) -> Option<()> {
    skip_each(from, |from| skip_strings(from, 2))?;
    // How many items, and the last one's number; later the first's, the last deleted one's, and how many ever.
    skip_lengths(from, if version >= 2 { 3 + 5 } else { 3 })?;
    for _ in 0..from.length()? {
        from.skip_bytes()?;
        // The last one given; later how many were.
        skip_lengths(from, if version >= 2 { 3 } else { 2 })?;
        skip_each(from, |from| from.take(16 + 8).and_then(|_| skip_lengths(from, 1)))?;
        for _ in 0..from.length()? {
            from.skip_bytes()?;
            // When it was seen; later when it was active too.
            from.take(if version >= 3 { 16 } else { 8 })?;
            skip_each(from, |from| from.take(16).map(drop))?;
        }
    }
    Some(())
}
