//! Parses the tables `[ids.NAME]`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tamis_sources::{
    IdSetOptions, IdType, IntegerForm, PlainIo, Policies, SourceKind, SourceOptions,
};

use crate::config::file;
use crate::config::read::read_text;
use crate::config::set::SetConfig;
use crate::config::setting::{InvalidValue, bytes, invalid, set_to, set_to_text};
use crate::config::sources::SourceTables;
use crate::config::units::Text;
use crate::fleet::PublicationOptions;
use crate::http::bearer_token::BearerToken;

/// The default of `negative.ttl` for a source that reports each update of a row. An update of the row ends the time.
const TTL_WITH_UPDATES: Duration = Duration::from_secs(600);

/// Returns the settings of a set of ids.
pub(super) fn set(name: &str, table: &file::Ids, folder: &Path) -> Result<SetConfig, InvalidValue> {
    let in_set = |it: InvalidValue| it.with_prefix(format_args!("ids.{name}."));
    let id = id_type(table).map_err(in_set)?;
    let mut options = IdSetOptions::new(id.clone());
    set_to(&mut options.items, table.items);
    set_to(&mut options.rate, table.rate);
    if !(options.rate > 0.0 && options.rate < 1.0) {
        return Err(in_set(invalid("rate", "write a probability between 0 and 1, such as 0.001")));
    }
    options.policies = policies(table.policy);
    set_to(&mut options.negative_requests, table.negative.requests);
    if table.source.as_ref().is_some_and(SourceTables::reports_updates) {
        options.negative_for = TTL_WITH_UPDATES;
    }
    set_to_text(&mut options.negative_for, table.negative.ttl);
    set_to_text(&mut options.recent_for, table.recent);
    options.is_trusted = table.trust;
    set_to(&mut options.next_ids, table.next.ids);
    set_to(&mut options.next_per_second, table.next.per_second);
    if options.next_ids > 0 && !matches!(id, IdType::Integer { .. }) {
        return Err(in_set(invalid("next", "only for ids of the type integer")));
    }
    let sources = table.source.as_ref().map(|source| source.kinds(folder)).transpose();
    let sources = sources.map_err(in_set)?.unwrap_or_default();
    if table.publish.is_some() {
        check_publishable(&sources).map_err(in_set)?;
    }
    let list = |field, ids: &[String], file: &Option<PathBuf>| {
        list(field, ids, file.as_deref(), &id, folder).map_err(in_set)
    };
    Ok(SetConfig {
        sources,
        source_options: source_options(table).map_err(in_set)?,
        token: table.push.as_ref().map(|push| push.token.clone()),
        publish: table
            .publish
            .as_ref()
            .map(|it| publication(name, it))
            .transpose()
            .map_err(in_set)?,
        allowed: list("allow", &table.allow, &table.allow_file)?,
        denied: list("deny", &table.deny, &table.deny_file)?,
        options,
    })
}

/// Rejects sources whose ids the guard cannot publish to followers.
fn check_publishable(sources: &[Arc<dyn SourceKind>]) -> Result<(), InvalidValue> {
    let message = if sources.len() > 1 {
        "a set with several sources cannot be published: let each guard read the sources"
    } else if sources.iter().any(|source| !source.is_publishable()) {
        "a set with a Redis source cannot be published: let each guard read the Redis server"
    } else {
        return Ok(());
    };
    Err(invalid("publish", message))
}

fn id_type(table: &file::Ids) -> Result<IdType, InvalidValue> {
    let kind = table.id_type.unwrap_or(file::IdKind::Integer);
    let is_integer = kind == file::IdKind::Integer;
    let of_integers = [
        ("min", table.min.is_some()),
        ("max", table.max.is_some()),
        ("padded", table.padded.is_some()),
        ("spaced", table.spaced.is_some()),
    ];
    if let Some((field, _)) = of_integers.iter().find(|(_, is_given)| *is_given && !is_integer) {
        return Err(invalid(field, "only for ids of the type integer"));
    }
    if table.max_length.is_some() && kind != file::IdKind::Text {
        return Err(invalid("max_length", "only for ids of the type text"));
    }
    Ok(match kind {
        file::IdKind::Integer => {
            let mut form = IntegerForm::default();
            set_to(&mut form.is_padded, table.padded);
            set_to(&mut form.is_spaced, table.spaced);
            // Unsigned ids in a database may exceed the integer range of TOML.
            let (min, max) =
                (table.min.unwrap_or(1), table.max.map_or(u64::MAX.into(), i128::from));
            if i128::from(min) > max {
                return Err(invalid("max", "must be at least min, which is 1 unless given"));
            }
            IdType::Integer { min: min.into(), max, form }
        }
        file::IdKind::Uuid => IdType::Uuid,
        file::IdKind::Text => {
            let max_bytes = table.max_length.map(bytes);
            max_bytes.map_or_else(IdType::text, |max_bytes| IdType::Text { max_bytes })
        }
    })
}

fn policies(table: file::Policies) -> Policies {
    let mut policies = Policies::default();
    set_to_text(&mut policies.warming, table.warming);
    set_to_text(&mut policies.synced, table.synced);
    set_to_text(&mut policies.stale, table.stale);
    set_to_text(&mut policies.unproven, table.unproven);
    policies
}

fn source_options(table: &file::Ids) -> Result<SourceOptions, InvalidValue> {
    let mut options = SourceOptions::default();
    set_to_text(&mut options.interval, table.interval);
    set_to_text(&mut options.stale_after, table.stale_after);
    options.rebuild_after = table.rebuild_after.map(|Text(time)| time);
    set_to(&mut options.max_deleted, table.max_deleted);
    if options.interval.is_zero() {
        return Err(invalid("interval", "must be above 0"));
    }
    if options.stale_after <= options.interval {
        return Err(invalid("stale_after", "must be longer than `interval`"));
    }
    Ok(options)
}

/// Returns the ids of a list: the ids in the configuration and the ids in the file.
fn list(
    field: &str,
    ids: &[String],
    file: Option<&Path>,
    id: &IdType,
    folder: &Path,
) -> Result<HashSet<Box<[u8]>>, InvalidValue> {
    let mut list = HashSet::new();
    let mut add = |field: &str, text: &str| {
        let canonical = id.canonical(text.as_bytes());
        let canonical = canonical.map_err(|why| invalid(field, format!("{text:?} {why}")))?;
        list.insert(canonical.into());
        Ok::<(), InvalidValue>(())
    };
    for text in ids {
        add(field, text)?;
    }
    if let Some(path) = file {
        let (path, field) = (folder.join(path), format!("{field}_file"));
        let unreadable =
            |error| invalid(&field, format!("{}: {}", path.display(), PlainIo(&error)));
        let text = read_text(&path).map_err(unreadable)?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            add(&field, line)?;
        }
    }
    Ok(list)
}

/// Returns the settings for publishing a set.
fn publication(name: &str, table: &file::Publish) -> Result<PublicationOptions, InvalidValue> {
    let token = &table.token.0;
    let token = BearerToken::new(token).map_err(|error| invalid("publish.token", error))?;
    let mut options = PublicationOptions::new(name, token);
    set_to(&mut options.history_bytes, table.history.map(bytes));
    Ok(options)
}
