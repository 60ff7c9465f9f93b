//! `COPY source destination [DB 0] [REPLACE]`

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, Command, Env, Value, WriteKeys, parse_integer};
use tamis_resp::Reply;

use crate::handlers::{Done, keys, syntax_error};
use crate::keyspace::{ExclusiveAccess, KeyspaceRef};
use crate::session::{Session, at_present};

/// A copy of a value, `None` if there was not enough memory for it, and the version of its source
/// key.
pub(super) type Copied = (Option<Value>, u64);

/// Copies a value. A separate thread copies a large one under a lease, while other commands run.
/// The command locks the keys exclusively only while it stores the copy under its key. If the
/// source has changed in the meantime, a copy of a reserved Bloom filter takes over the bits that
/// differ. Any other value is copied again under that lock.
pub(super) async fn copy_in_background(
    session: &mut Session,
    command: &Command,
    argv: Argv<'_>,
    env: &Env<'_>,
) -> Reply {
    let server = session.server.clone();
    let bytes;
    let is_worth_it = {
        let keys = server.keyspace.shared();
        bytes = heap_bytes(argv, env, &keys);
        refusal(argv, env, &keys).is_none() && keys.is_large(argv[1], env.now_millis)
    };
    let (mut copied, mut permit, mut hold): (Option<Copied>, _, _) = (None, None, None);
    if is_worth_it {
        permit = Some(server.copies.acquire().await.expect("it is never closed"));
        // Other commands may have used memory in the meantime.
        if let Err(refusal) = session.check_change(command, &server.config()) {
            return Reply::error(refusal);
        }
        hold = server.reserve_memory(bytes);
        if hold.is_none() {
            return Reply::error(server::MEMORY);
        }
        let (server, key, now) =
            (session.server.clone(), argv[1].to_vec(), at_present(env).now_millis);
        let copying =
            tokio::task::spawn_blocking(move || server.keyspace.lease(&key, now, copy_of));
        let Ok(done) = copying.await else { return Reply::error(server::NOT_COPIED) };
        copied = done;
    }
    let is_meant = |leased: &[u8]| command.keys.of(argv).any(|key| key == leased);
    let alone = server.keyspace.exclusive_to_change(is_meant).await;
    if let Err(refusal) = session.check_change(command, &server.config()) {
        return Reply::error(refusal);
    }
    let env = &at_present(env);
    if let Some(refusal) = keys::must_wait(&server, WriteKeys::Copy, argv, env, &alone) {
        return refusal;
    }
    // From here on, the keyspace counts the memory of the copy.
    drop(hold);
    let done = copy(argv, env, &alone, copied, server.memory_left());
    keys::log(&server, WriteKeys::Copy, argv, env, &alone, &done);
    drop(permit);
    done.reply
}

/// Copies a value, or uses `copied` if it still matches its source.
pub(super) fn copy(
    argv: Argv<'_>,
    env: &Env<'_>,
    keys: &ExclusiveAccess<'_>,
    copied: Option<Copied>,
    left_bytes: u64,
) -> Done {
    if let Some(refusal) = refusal(argv, env, keys) {
        return Done::unchanged(refusal);
    }
    let (from, to, now) = (argv[1], argv[2], env.now_millis);
    if heap_bytes(argv, env, keys) > left_bytes {
        return Done::unchanged(Reply::error(server::MEMORY));
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
    let Some(value) = copy else {
        return Done::unchanged(Reply::error(text::NO_MEMORY_FOR_FILTER));
    };
    let expires = keys.expires_millis(from, now).flatten();
    keys.put(to, now, value, expires);
    Done::changed(Reply::Integer(1))
}

/// Tests whether a copy has the item count of its source. While a batch inserted, it counted all
/// missing items, before it knew which of them were new.
fn is_counted_as(source: &Value, copy: Option<&Value>) -> bool {
    copy.is_none_or(|copy| copy.counted_items() == source.counted_items())
}

/// Returns the copy with all later changes of its source; `None` if the source must be copied
/// again.
fn following(copy: Value, source: &Value) -> Option<Value> {
    let (Value::Bloom(mut copy), Value::Bloom(source)) = (copy, source) else { return None };
    copy.follow(source).then_some(Value::Bloom(copy))
}

/// Returns the memory that a copy takes, in bytes.
fn heap_bytes(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> u64 {
    keys.read(argv[1], env.now_millis, |value| value.map_or(0, Value::heap_bytes))
}

/// Returns the reply if the command copies nothing.
fn refusal(argv: Argv<'_>, env: &Env<'_>, keys: &KeyspaceRef<'_>) -> Option<Reply> {
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
            _ => return Some(syntax_error()),
        };
    }
    if from == to {
        return Some(Reply::error(server::SAME_KEY));
    }
    let is_there = |key: &[u8]| keys.read(key, env.now_millis, |value| value.is_some());
    (!is_there(from) || is_there(to) && !replaces).then_some(Reply::Integer(0))
}

fn copy_of(value: &Value) -> Option<Value> {
    let mut image = Vec::new();
    value.write_image(&mut image).expect("memory takes all");
    Value::read_image(&mut &image[..], image.len() as u64).ok()
}

#[cfg(test)]
mod tests {
    use tamis_commands::{ScalableBloom, Settings};
    use tamis_resp::Protocol;

    use super::*;
    use crate::keyspace::Keyspace;

    #[test]
    fn a_copy_counts_what_its_source_does() {
        let keyspace = Keyspace::new();
        let mut filter = ScalableBloom::reserve(100, 0.01, Some(2)).unwrap();
        filter.insert_hash(7).unwrap();
        let source = Value::Bloom(Box::new(filter));
        // The count while a batch inserts four items that are already in the filter.
        let mut image = Vec::new();
        source.write_image_counting(Some(5), &mut image).unwrap();
        keyspace.shared().write(b"a", 0, |slot| *slot = Some(source));
        let settings = Settings::default();
        let env = Env::new(&settings, Protocol::Resp2, 0);
        let alone = keyspace.exclusive();
        let version = alone.version(b"a", 0);
        for copied_at in [version, version - 1] {
            let copied = Value::read_image(&mut &image[..], image.len() as u64).unwrap();
            assert_eq!(copied.counted_items(), Some(5));
            let argv: [&[u8]; 4] = [b"COPY", b"a", b"b", b"REPLACE"];
            let copied = Some((Some(copied), copied_at));
            assert_eq!(copy(&argv, &env, &alone, copied, u64::MAX).reply, Reply::Integer(1));
            let items = alone.read(b"b", 0, |value| value.and_then(Value::counted_items));
            assert_eq!(items, Some(1));
        }
    }
}
