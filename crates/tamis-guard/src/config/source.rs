//! Reads the field `source` of a set.

use std::path::Path;
#[cfg(feature = "sources")]
use std::time::Duration;

use crate::config::file;
#[cfg(feature = "sources")]
use crate::config::redis::redis;
use crate::config::set::SourceConfig;
use crate::config::setting::{InvalidValue, invalid, set_to, set_to_text};
use crate::config::units::{Secret, Size, Text};
use crate::http::bearer_token::BearerToken;
use crate::source::{CsvColumn, FileFormat, FileOptions, LeaderOptions};

/// Returns the settings of a source.
pub(super) fn source(table: &file::Source, folder: &Path) -> Result<SourceConfig, InvalidValue> {
    let options = |path: &Path, format| FileOptions::new(folder.join(path), format);
    Ok(match table {
        file::Source::Lines { path, quiet, min_items, min_share, max_invalid } => {
            let mut options = options(path, FileFormat::Lines);
            set_to_text(&mut options.quiet, *quiet);
            set_to(&mut options.min_items, *min_items);
            set_to(&mut options.min_share, *min_share);
            set_to(&mut options.max_invalid, *max_invalid);
            SourceConfig::File(options)
        }
        file::Source::Csv { path, column, delimiter, quiet, min_items, min_share, max_invalid } => {
            let column = match column {
                file::Column::Name(name) => CsvColumn::Name(name.clone()),
                file::Column::Number(0) => {
                    return Err(invalid("column", "the first column has the number 1"));
                }
                file::Column::Number(number) => CsvColumn::Number(number - 1),
            };
            let delimiter = u8::try_from(delimiter.unwrap_or(','));
            let delimiter = delimiter.ok().filter(u8::is_ascii);
            let delimiter =
                delimiter.ok_or_else(|| invalid("delimiter", "write one ASCII character"))?;
            let mut options = options(path, FileFormat::Csv { column, delimiter });
            set_to_text(&mut options.quiet, *quiet);
            set_to(&mut options.min_items, *min_items);
            set_to(&mut options.min_share, *min_share);
            set_to(&mut options.max_invalid, *max_invalid);
            SourceConfig::File(options)
        }
        #[cfg(feature = "sources")]
        file::Source::Parquet { path, column, quiet, min_items, min_share, max_invalid } => {
            let mut options = options(path, FileFormat::Parquet { column: column.clone() });
            set_to_text(&mut options.quiet, *quiet);
            set_to(&mut options.min_items, *min_items);
            set_to(&mut options.min_share, *min_share);
            set_to(&mut options.max_invalid, *max_invalid);
            SourceConfig::File(options)
        }
        file::Source::Filter { path, quiet, max_size } => {
            let mut options = options(path, FileFormat::Filter);
            set_to_text(&mut options.quiet, *quiet);
            set_to(&mut options.max_bytes, max_size.map(|Text(Size(bytes))| bytes));
            SourceConfig::File(options)
        }
        file::Source::Leader { url, token, max_size, ca } => {
            SourceConfig::Leader(leader(url, token, *max_size, ca.as_deref(), folder)?)
        }
        #[cfg(feature = "sources")]
        file::Source::Sqlite {
            path,
            table,
            column,
            condition,
            changed,
            overlap,
            deletions,
            reread,
            chunk,
        } => {
            let mut options = crate::source::SqliteOptions::new(folder.join(path), table, column);
            options.condition.clone_from(condition);
            options.deletions.clone_from(deletions);
            set_to_text(&mut options.reread, *reread);
            set_to(&mut options.chunk, *chunk);
            options.changes = change_column(changed.as_deref(), *overlap)?;
            SourceConfig::Sqlite(options)
        }
        #[cfg(feature = "sources")]
        file::Source::Mysql {
            url,
            primary,
            ca,
            table,
            column,
            exact,
            server_id,
            follow,
            changed,
            overlap,
            deletions,
            reread,
        } => {
            let mut options = crate::source::MysqlOptions::new(&url.0, table, column);
            options.primary = primary.as_ref().map(|primary| primary.0.clone());
            options.ca = ca.as_ref().map(|ca| folder.join(ca));
            if *server_id == Some(0) {
                return Err(invalid("server_id", "the smallest number is 1"));
            }
            options.exact = exact.unwrap_or(false);
            options.server_id = *server_id;
            options.poll = poll(*follow, changed.as_deref(), *overlap, deletions, *reread)?;
            if options.poll.is_some() && server_id.is_some() {
                return Err(invalid("server_id", "only with follow = \"log\""));
            }
            SourceConfig::Mysql(options)
        }
        #[cfg(feature = "sources")]
        file::Source::Postgres {
            url,
            ca,
            table,
            column,
            exact,
            publication,
            slot,
            follow,
            changed,
            overlap,
            deletions,
            reread,
        } => {
            let mut options = crate::source::PostgresOptions::new(&url.0, table, column);
            options.ca = ca.as_ref().map(|ca| folder.join(ca));
            options.exact = exact.unwrap_or(false);
            set_to(&mut options.publication, publication.clone());
            if slot.as_ref().is_some_and(|slot| !is_slot_name(slot)) {
                let message = "write a name that begins with tamis_guard and has at most 63 lower-case \
                    letters, digits and underscores";
                return Err(invalid("slot", message));
            }
            options.slot.clone_from(slot);
            options.poll = poll(*follow, changed.as_deref(), *overlap, deletions, *reread)?;
            let of_log = [("publication", publication.is_some()), ("slot", slot.is_some())];
            if let Some((field, _)) = of_log.iter().find(|(_, is_given)| *is_given)
                && options.poll.is_some()
            {
                return Err(invalid(field, "only with follow = \"log\""));
            }
            SourceConfig::Postgres(options)
        }
        #[cfg(feature = "sources")]
        file::Source::Redis(table) => SourceConfig::Redis(redis(table)?),
        #[cfg(not(feature = "sources"))]
        file::Source::Parquet { .. }
        | file::Source::Redis(_)
        | file::Source::Mysql { .. }
        | file::Source::Postgres { .. }
        | file::Source::Sqlite { .. } => {
            return Err(invalid(
                "kind",
                "this build of tamis reads ids only from text, CSV and filter files and from leaders",
            ));
        }
    })
}

/// Tests whether a name is one for the replication slot of a guard. The guard drops such a slot when it
/// cannot use it, so the slots of other programs must have other names.
#[cfg(feature = "sources")]
fn is_slot_name(name: &str) -> bool {
    let is_allowed = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    name.starts_with("tamis_guard") && name.len() <= 63 && name.bytes().all(is_allowed)
}

/// Returns how the table of a server is polled; `None` if its log is followed.
#[cfg(feature = "sources")]
fn poll(
    follow: Option<file::Follow>,
    changed: Option<&str>,
    overlap: Option<Text<Duration>>,
    deletions: &Option<String>,
    reread: Option<Text<Duration>>,
) -> Result<Option<crate::source::PollOptions>, InvalidValue> {
    if follow != Some(file::Follow::Poll) {
        let of_polls = [
            ("changed", changed.is_some()),
            ("overlap", overlap.is_some()),
            ("deletions", deletions.is_some()),
            ("reread", reread.is_some()),
        ];
        let Some((field, _)) = of_polls.iter().find(|(_, is_given)| *is_given) else {
            return Ok(None);
        };
        return Err(invalid(field, "only with follow = \"poll\""));
    }
    let changes = change_column(changed, overlap)?;
    if changes.is_none() {
        let message = "name a column whose values never decrease, such as \"updated_at\"";
        return Err(invalid("changed", message));
    }
    let mut poll = crate::source::PollOptions {
        changes,
        deletions: deletions.clone(),
        ..crate::source::PollOptions::default()
    };
    set_to_text(&mut poll.reread, reread);
    Ok(Some(poll))
}

/// Returns the column by which polls find new rows.
#[cfg(feature = "sources")]
fn change_column(
    column: Option<&str>,
    overlap: Option<Text<Duration>>,
) -> Result<Option<crate::source::ChangeColumn>, InvalidValue> {
    let Some(column) = column else {
        return match overlap {
            Some(_) => Err(invalid("overlap", "only with the column `changed`")),
            None => Ok(None),
        };
    };
    let mut column = crate::source::ChangeColumn::new(column);
    set_to_text(&mut column.overlap, overlap);
    Ok(Some(column))
}

fn leader(
    url: &Secret,
    token: &Secret,
    max_size: Option<Text<Size>>,
    ca: Option<&Path>,
    folder: &Path,
) -> Result<LeaderOptions, InvalidValue> {
    let url: http::Uri = url.0.parse().map_err(|error| invalid("url", error))?;
    let form = "write http://HOST:PORT/filters/NAME, or the same with https";
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.query().is_some() {
        return Err(invalid("url", form));
    }
    if url.authority().is_none_or(|it| it.as_str().contains('@')) {
        return Err(invalid("url", format!("has a user name; {form}")));
    }
    let token = BearerToken::new(&token.0).map_err(|error| invalid("token", error))?;
    let mut options = LeaderOptions::new(url, token);
    set_to(&mut options.max_bytes, max_size.map(|Text(Size(bytes))| bytes));
    options.ca = ca.map(|ca| folder.join(ca));
    Ok(options)
}
