//! Parses the polling fields that all kinds of databases share.

use std::time::Duration;

use serde::Deserialize;
use tamis_sources::{ChangeColumn, PollOptions};

use crate::config::setting::{InvalidValue, invalid, set_to_text};
use crate::config::units::Text;

/// The way in which a source finds changes in a database.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Changes {
    Log,
    Poll,
}

/// Returns the settings for polling a table. Returns `None` if the source follows the log.
pub(super) fn poll(
    follow: Option<Changes>,
    changed: Option<&str>,
    overlap: Option<Text<Duration>>,
    deletions: &Option<String>,
    reread: Option<Text<Duration>>,
) -> Result<Option<PollOptions>, InvalidValue> {
    if follow != Some(Changes::Poll) {
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
    let mut poll = PollOptions { changes, deletions: deletions.clone(), ..PollOptions::default() };
    set_to_text(&mut poll.reread, reread);
    Ok(Some(poll))
}

/// Returns the column with which polls find new rows.
pub(super) fn change_column(
    column: Option<&str>,
    overlap: Option<Text<Duration>>,
) -> Result<Option<ChangeColumn>, InvalidValue> {
    let Some(column) = column else {
        return match overlap {
            Some(_) => Err(invalid("overlap", "only with the column `changed`")),
            None => Ok(None),
        };
    };
    let mut column = ChangeColumn::new(column);
    set_to_text(&mut column.overlap, overlap);
    Ok(Some(column))
}
