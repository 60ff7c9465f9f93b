//! The tables `[ids.NAME]` and `[snapshots]`.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::bearer_token::BearerToken;
use crate::config::file;
use crate::config::read::read_text;
use crate::config::set::{SetConfig, SnapshotsConfig};
use crate::config::setting::{Wrong, bytes, set_to, set_to_text, wrong};
use crate::config::source::source;
use crate::config::units::Text;
use crate::fleet::PublicationOptions;
use crate::id::{IdType, IntegerForm};
use crate::id_set_options::IdSetOptions;
use crate::plain_io::PlainIo;
use crate::snapshot::{SnapshotOptions, file_name};
use crate::source::SourceOptions;
use crate::state::Policies;

/// Returns the settings of snapshots.
pub(super) fn snapshots(
    table: &file::Snapshots,
    sets: &BTreeMap<String, file::Ids>,
    folder: &Path,
) -> Result<SnapshotsConfig, Wrong> {
    if let Some(set) = sets.keys().find(|set| file_name(set).is_none()) {
        return Err(wrong(
            format!("ids.{set}"),
            "the name is too long for the name of its snapshot file",
        ));
    }
    let every = table.every.map_or(SnapshotOptions::new("").every, |Text(time)| time);
    if every < Duration::from_secs(1) {
        return Err(wrong("snapshots.every", "must be at least 1s"));
    }
    Ok(SnapshotsConfig { folder: folder.join(&table.folder), every })
}

/// Returns the settings of a set of ids.
pub(super) fn set(name: &str, table: &file::Ids, folder: &Path) -> Result<SetConfig, Wrong> {
    let in_set = |it: Wrong| it.within(format_args!("ids.{name}."));
    let id = id_type(table).map_err(in_set)?;
    let mut options = IdSetOptions::new(id.clone());
    set_to(&mut options.items, table.items);
    set_to(&mut options.rate, table.rate);
    if !(options.rate > 0.0 && options.rate < 1.0) {
        return Err(in_set(wrong("rate", "write a probability between 0 and 1, such as 0.001")));
    }
    options.policies = policies(table.policy);
    set_to(&mut options.negative_ids, table.negative.ids);
    set_to_text(&mut options.negative_for, table.negative.ttl);
    set_to_text(&mut options.recent_for, table.recent);
    set_to(&mut options.next_ids, table.next.ids);
    set_to(&mut options.next_per_second, table.next.per_second);
    if options.next_ids > 0 && !matches!(id, IdType::Integer { .. }) {
        return Err(in_set(wrong("next", "only for ids of the type integer")));
    }
    if table.publish.is_some() && matches!(table.source, Some(file::Source::Redis(_))) {
        let message =
            "a set with a Redis source cannot be published: let each guard read the Redis server";
        return Err(in_set(wrong("publish", message)));
    }
    let list = |field, ids: &[String], file: &Option<PathBuf>| {
        list(field, ids, file.as_deref(), &id, folder).map_err(in_set)
    };
    Ok(SetConfig {
        source: table.source.as_ref().map(|it| source(it, folder)).transpose().map_err(in_set)?,
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

fn id_type(table: &file::Ids) -> Result<IdType, Wrong> {
    let kind = table.id_type.unwrap_or(file::IdKind::Integer);
    let is_integer = kind == file::IdKind::Integer;
    let of_integers = [
        ("min", table.min.is_some()),
        ("max", table.max.is_some()),
        ("padded", table.padded.is_some()),
        ("spaced", table.spaced.is_some()),
    ];
    if let Some((field, _)) = of_integers.iter().find(|(_, is_given)| *is_given && !is_integer) {
        return Err(wrong(field, "only for ids of the type integer"));
    }
    if table.max_length.is_some() && kind != file::IdKind::Text {
        return Err(wrong("max_length", "only for ids of the type text"));
    }
    Ok(match kind {
        file::IdKind::Integer => {
            let mut form = IntegerForm::default();
            set_to(&mut form.is_padded, table.padded);
            set_to(&mut form.is_spaced, table.spaced);
            // Unsigned ids of a database may be larger than the numbers of TOML.
            let (min, max) =
                (table.min.unwrap_or(1), table.max.map_or(u64::MAX.into(), i128::from));
            if i128::from(min) > max {
                return Err(wrong("max", "must be at least min, which is 1 unless given"));
            }
            IdType::Integer { min: min.into(), max, form }
        }
        file::IdKind::Uuid => IdType::Uuid,
        file::IdKind::Text => IdType::Text { max_bytes: table.max_length.map_or(256, bytes) },
    })
}

fn policies(table: file::Policies) -> Policies {
    let mut policies = Policies::default();
    set_to_text(&mut policies.warming, table.warming);
    set_to_text(&mut policies.synced, table.synced);
    set_to_text(&mut policies.stale, table.stale);
    policies
}

fn source_options(table: &file::Ids) -> Result<SourceOptions, Wrong> {
    let mut options = SourceOptions::default();
    set_to_text(&mut options.interval, table.interval);
    set_to_text(&mut options.stale_after, table.stale_after);
    options.rebuild_after = table.rebuild_after.map(|Text(time)| time);
    set_to(&mut options.max_deleted, table.max_deleted);
    if options.interval.is_zero() {
        return Err(wrong("interval", "must be above 0"));
    }
    if options.stale_after <= options.interval {
        return Err(wrong("stale_after", "must be longer than `interval`"));
    }
    Ok(options)
}

/// Reads a list of ids from the file and from the configuration itself.
fn list(
    field: &str,
    ids: &[String],
    file: Option<&Path>,
    id: &IdType,
    folder: &Path,
) -> Result<HashSet<Box<[u8]>>, Wrong> {
    let mut list = HashSet::new();
    let mut add = |field: &str, text: &str| {
        let canonical = id.canonical(text.as_bytes());
        let canonical = canonical.map_err(|why| wrong(field, format!("{text:?} {why}")))?;
        list.insert(canonical.into());
        Ok::<(), Wrong>(())
    };
    for text in ids {
        add(field, text)?;
    }
    if let Some(path) = file {
        let (path, field) = (folder.join(path), format!("{field}_file"));
        let unreadable = |error| wrong(&field, format!("{}: {}", path.display(), PlainIo(&error)));
        let text = read_text(&path).map_err(unreadable)?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            add(&field, line)?;
        }
    }
    Ok(list)
}

/// Returns how a set is published.
fn publication(name: &str, table: &file::Publish) -> Result<PublicationOptions, Wrong> {
    let token = &table.token.0;
    let token = BearerToken::new(token).map_err(|error| wrong("publish.token", error))?;
    let mut options = PublicationOptions::new(name, token);
    set_to(&mut options.history_bytes, table.history.map(bytes));
    Ok(options)
}
