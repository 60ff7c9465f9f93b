//! Parses the table `[snapshots]`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tamis_sources::SnapshotOptions;

use crate::config::file;
use crate::config::set::SnapshotsConfig;
use crate::config::setting::{InvalidValue, invalid};
use crate::config::snapshot_folder::SnapshotFolder;
use crate::config::units::Text;

/// Returns the settings of the snapshots.
pub(super) fn snapshots(
    table: &file::Snapshots,
    sets: &BTreeMap<String, file::Ids>,
    folder: &Path,
) -> Result<SnapshotsConfig, InvalidValue> {
    if let Some(set) = sets.keys().find(|set| SnapshotFolder::file_name(set).is_none()) {
        return Err(invalid(
            format!("ids.{set}"),
            "the name is too long for the name of its snapshot file",
        ));
    }
    let every = table.every.map_or(SnapshotOptions::new("").every, |Text(time)| time);
    if every < Duration::from_secs(1) {
        return Err(invalid("snapshots.every", "must be at least 1s"));
    }
    Ok(SnapshotsConfig { folder: folder.join(&table.folder), every })
}
