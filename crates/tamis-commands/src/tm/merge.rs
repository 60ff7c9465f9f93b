//! Implements `TM.MERGE`: merges the values of several keys. The server locks the values.

use tamis::{
    AnyFilter, Bitmap, BitsMut as _, FilterWords as _, Kind, Layout, MergeError, NoRoom, Plan,
    PlanError,
};
use tamis_formats::TamisFile;
use tamis_resp::Reply;

use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, tm};
use crate::value::Value;

/// Runs `TM.MERGE destination source [source ...]`: inserts all items of the sources into the value of the destination.
/// If the key does not exist, the value becomes a copy of the first source with all items.
///
/// `sources` contains the key and the value of each source, without the destination.
///
/// # Errors
///
/// The error reply. After an error, the value is unchanged.
pub fn merge(
    key: &[u8],
    value: &mut Option<Value>,
    sources: &[(&[u8], Option<&Value>)],
    env: &Env<'_>,
) -> Written {
    match value.as_ref().or_else(|| sources.first()?.1) {
        Some(Value::Bloom(_)) => merge_scalable_blooms(key, value, sources)?,
        _ => merge_files(key, value, sources, env)?,
    }
    Ok(Outcome::changed(Reply::ok()))
}

fn merge_scalable_blooms(
    key: &[u8],
    value: &mut Option<Value>,
    sources: &[(&[u8], Option<&Value>)],
) -> Result<(), Reply> {
    let mut filters = Vec::with_capacity(sources.len());
    for &(key, value) in sources {
        filters.push((key, value.ok_or_else(|| tm::no_source(key))?));
    }
    let (first_key, first) = match (&*value, filters.first()) {
        (Some(Value::Bloom(held)), _) => (key, held),
        (None, Some(&(key, Value::Bloom(first)))) => (key, first),
        _ => unreachable!("it was looked at above"),
    };
    let mut others = Vec::with_capacity(filters.len());
    for (other_key, other) in filters {
        match other {
            Value::Bloom(other) if first.is_made_as(other) => others.push(&**other),
            Value::Bloom(other) if first.hasher() != other.hasher() => {
                return Err(tm::hash_keys(first_key, other_key));
            }
            Value::Bloom(_) => return Err(tm::made_otherwise(first_key, other_key)),
            Value::Bytes(_) => return Err(error(text::WRONG_TYPE)),
            Value::PartialLoad(_) => return Err(error(text::bf::INCOMPLETE)),
            other => {
                let one = (first_key, first.kind_name());
                return Err(tm::other_kinds(one, (other_key, other.kind_name())));
            }
        }
    }
    match value {
        Some(Value::Bloom(held)) => held.merge(&others).map_err(refused),
        _ => {
            let mut made = first.emptied().map_err(tm::because)?;
            made.merge(&others).map_err(refused)?;
            *value = Some(Value::Bloom(Box::new(made)));
            Ok(())
        }
    }
}

fn merge_files(
    key: &[u8],
    value: &mut Option<Value>,
    sources: &[(&[u8], Option<&Value>)],
    env: &Env<'_>,
) -> Result<(), Reply> {
    let mut files = Vec::with_capacity(sources.len());
    for &(key, value) in sources {
        files.push((key, file_of(key, value)?));
    }
    // All other filters must be compatible with the first filter.
    let (first_key, first) = match (&*value, files.first()) {
        (Some(held), _) => (key, file_of(key, Some(held))?),
        (None, Some(&(key, file))) => (key, file),
        (None, None) => return Err(tm::no_source(key)),
    };
    for &(other_key, other) in &files {
        let (one, two) = (first.filter.layout(), other.filter.layout());
        if one.hasher != two.hasher && (Layout { hasher: one.hasher, ..two }) == one {
            return Err(tm::hash_keys(first_key, other_key));
        }
        if one != two {
            return Err(tm::layouts((first_key, one), (other_key, two)));
        }
        if !is_of_one_span(&first.filter, &other.filter) {
            return Err(error(tm::SPAN));
        }
    }
    // If the filter can reject items, merge into a copy, so that a failure changes nothing.
    let can_refuse = may_refuse(&first.filter);
    let copied = match value {
        Some(_) if !can_refuse || files.len() <= 1 => None,
        _ => Some(copy(first).map_err(tm::because)?),
    };
    let others = if value.is_none() { &files[1..] } else { &files };
    // A new window gets the clock of the first source, so that every replica has the same clock.
    let env = &env.at(if value.is_none() { 0 } else { env.now_millis });
    match (copied, &mut *value) {
        (Some(mut file), value) => {
            add_all(&mut file, others, env)?;
            *value = Some(Value::Filter(Box::new(file)));
            Ok(())
        }
        (None, Some(Value::Filter(file))) => add_all(file, others, env),
        (None, _) => unreachable!("it was looked at above"),
    }
}

fn add_all(
    file: &mut TamisFile,
    others: &[(&[u8], &TamisFile)],
    env: &Env<'_>,
) -> Result<(), Reply> {
    // At time 0, the file keeps its clock, also if the clock awaits its first time.
    if env.now_millis > 0 {
        file.filter.advance(env.now_millis);
    }
    for (_, other) in others {
        file.filter.merge(&other.filter).map_err(refused)?;
        file.added = file.added.saturating_add(other.added);
    }
    Ok(())
}

fn refused(reason: MergeError) -> Reply {
    match reason {
        MergeError::NoRoom(NoRoom::Full { .. }) => error(tm::FULL),
        MergeError::NoRoom(NoRoom::Copies { .. }) => error(tm::COPIES),
        MergeError::NoRoom(NoRoom::Crowded) => error(tm::CROWDED),
        MergeError::NoRoom(_) => error(tm::NO_MEMORY),
        reason => tm::because(reason),
    }
}

fn file_of<'v>(key: &[u8], value: Option<&'v Value>) -> Result<&'v TamisFile, Reply> {
    match value {
        None => Err(tm::no_source(key)),
        Some(Value::Filter(file)) => Ok(file),
        Some(Value::Bytes(_)) => Err(error(text::WRONG_TYPE)),
        Some(Value::PartialLoad(_)) => Err(error(text::bf::INCOMPLETE)),
        Some(value) => Err(tm::no_merge(key, value.kind_name())),
    }
}

/// Tests whether the filter can become full and reject an item.
fn may_refuse(filter: &AnyFilter) -> bool {
    let kind = filter.plan().kind();
    kind == Kind::Cuckoo || kind.grows()
}

fn is_of_one_span(one: &AnyFilter, other: &AnyFilter) -> bool {
    match (one, other) {
        (AnyFilter::Window(one), AnyFilter::Window(other)) => {
            (one.span(), one.refreshes()) == (other.span(), other.refreshes())
        }
        _ => true,
    }
}

/// Copies a filter. Returns an error if there is not enough memory, whereas `clone` would abort the program.
fn copy(file: &TamisFile) -> Result<TamisFile, PlanError> {
    let (filter, plan) = (&file.filter, file.filter.plan());
    let bits = if plan.kind().grows() { filter.len_words() * 64 } else { plan.bits() };
    let plan = Plan::from_parts(plan.kind(), plan.items(), plan.rate(), bits, plan.geometry())?;
    let mut words = Bitmap::zeroed(bits)?;
    let mut at = 0;
    let Ok(()) = filter.each_words_from(0, |part| {
        words.words_mut()[at..at + part.len()].copy_from_slice(part);
        at += part.len();
        Ok::<(), std::convert::Infallible>(())
    });
    let filter = AnyFilter::restore(&plan, filter.hasher(), words)?;
    Ok(TamisFile { filter, added: file.added, metadata: file.metadata.clone() })
}
