//! The command `COPY source destination [DB 0] [REPLACE]`.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, Env, Value, parse_integer};
use tamis_resp::Reply;

use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::write_keys::outcome::WriteResult;

/// A copy of a value, and the version of the source key. The copy is `None` if there was not enough
/// memory.
pub(crate) type Copied = (Option<Value>, u64);

/// Copies a value. Uses `copied` if the source of `copied` has not changed, or if `copied` can be
/// updated.
pub(crate) fn copy(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    copied: Option<Copied>,
    left_bytes: u64,
) -> WriteResult {
    if let Some(refusal) = refusal(argv, env, keys) {
        return Err(refusal);
    }
    let (from, to, now) = (argv[1], argv[2], env.now_millis);
    if heap_bytes(argv, env, keys) > left_bytes {
        return Err(Reply::error(server::MEMORY));
    }
    let version = keys.version(from, now);
    let copy = keys.read(from, now, |source| {
        let source = source.expect("just seen");
        match copied {
            Some((copy, its)) if its == version && is_counted_as(source, copy.as_ref()) => copy,
            Some((Some(copy), _)) => following(copy, source).or_else(|| copy_of(source)),
            _ => copy_of(source),
        }
    });
    let value = copy.ok_or_else(|| Reply::error(text::NO_MEMORY_FOR_FILTER))?;
    let expires = keys.expires_millis(from, now).flatten();
    keys.put(to, now, value, expires);
    Ok(Reply::Integer(1))
}

/// Tests whether a copy of a value has the same item count as its source. A copy that is made
/// during a batch insert may count too many items. A batch insert first counts all items that the
/// filter lacks, and corrects the count after the insert.
fn is_counted_as(source: &Value, copy: Option<&Value>) -> bool {
    copy.is_none_or(|copy| copy.counted_items() == source.counted_items())
}

/// Updates the copy with all changes of its source since the copy was made. Returns `None` if the
/// source must be copied again.
fn following(copy: Value, source: &Value) -> Option<Value> {
    let (Value::Bloom(mut copy), Value::Bloom(source)) = (copy, source) else { return None };
    copy.follow(source).then_some(Value::Bloom(copy))
}

/// Returns the memory that a copy takes, in bytes.
pub(crate) fn heap_bytes(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> u64 {
    keys.read(argv[1], env.now_millis, |value| value.map_or(0, Value::heap_bytes))
}

/// Returns the reply if the command copies nothing.
pub(crate) fn refusal(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Option<Reply> {
    let (from, to) = (argv[1], argv[2]);
    let mut replaces = false;
    let mut rest = &argv[3..];
    while let [option, behind @ ..] = rest {
        rest = match (option.to_ascii_uppercase().as_slice(), behind) {
            (b"REPLACE", rest) => {
                replaces = true;
                rest
            }
            (b"DB", [number, rest @ ..]) => match parse_integer(number) {
                Some(0) => rest,
                Some(_) => return Some(Reply::error(server::DB_INDEX)),
                None => return Some(Reply::error(text::NO_INTEGER)),
            },
            _ => return Some(Reply::error(text::SYNTAX)),
        };
    }
    if from == to {
        return Some(Reply::error(server::SAME_KEY));
    }
    let is_there = |key| keys.exists(key, env.now_millis);
    (!is_there(from) || is_there(to) && !replaces).then_some(Reply::Integer(0))
}

pub(crate) fn copy_of(value: &Value) -> Option<Value> {
    Value::from_image(&value.to_image()).ok()
}

#[cfg(test)]
mod tests {
    use tamis_commands::{ScalableBloom, Settings};
    use tamis_resp::Protocol;

    use super::*;
    use crate::keyspace::Keyspace;

    #[test]
    fn a_copy_has_the_item_count_of_its_source() {
        let keyspace = Keyspace::new();
        let mut filter = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
        filter.insert_hash(7).unwrap();
        let source = Value::Bloom(Box::new(filter));
        // Use the item count that the filter has during a batch insert of four items that the
        // filter already contains.
        let mut image = Vec::new();
        source.write_image(Some(5), &mut image).unwrap();
        keyspace.shared().write(b"a", 0, |slot| *slot = Some(source));
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp2, 0);
        let alone = keyspace.exclusive();
        let version = alone.version(b"a", 0);
        for copied_at in [version, version - 1] {
            let copied = Value::from_image(&image).unwrap();
            assert_eq!(copied.counted_items(), Some(5));
            let argv: [&[u8]; 4] = [b"COPY", b"a", b"b", b"REPLACE"];
            let copied = Some((Some(copied), copied_at));
            assert_eq!(copy(&argv, &env, &alone, copied, u64::MAX), Ok(Reply::Integer(1)));
            let items = alone.read(b"b", 0, |value| value.and_then(Value::counted_items));
            assert_eq!(items, Some(1));
        }
    }
}
