//! The snapshot in the model test. Each step is the work of the saving thread between two points at
//! which another thread may run.

use crate::persistence::folder::Folder;
use crate::persistence::log::state::LogState;
use crate::persistence::model::{KEYS, World};
use crate::persistence::sim_disk::SimDisk;
use crate::persistence::snapshot::writer::SnapshotWriter;

/// The progress of a snapshot.
pub(super) enum Saver {
    Idle,
    /// The rotation of the log is running. After the rotation, the log continues in a new file at
    /// `position`.
    Rotates {
        number: u64,
        position: u64,
    },
    Writes {
        number: u64,
        writer: SnapshotWriter<'static>,
        /// The keys that are not yet written. The last key in the list is the next key.
        left: Vec<&'static str>,
        /// The state of the filter at the time when the snapshot began to read the filter. Clients
        /// change the filter during the read. During the read, the filter is the next key in
        /// `left`.
        observed: Option<Observed>,
    },
    /// The snapshot waits until the log is synced up to this position.
    Syncs {
        number: u64,
        writer: SnapshotWriter<'static>,
        until: u64,
    },
}

/// A position of the log, and the number of counted items of the value at that position.
type Observed = (u64, Option<u64>);

impl World {
    /// Runs the next step of the snapshot.
    pub(super) fn save(&mut self) {
        let saver = std::mem::replace(&mut self.saver, Saver::Idle);
        self.saver = self.next_saver(saver).unwrap_or(Saver::Idle);
    }

    /// Returns the state after the next step. Returns `None` if the snapshot has ended or failed.
    fn next_saver(&mut self, saver: Saver) -> Option<Saver> {
        match saver {
            Saver::Idle => {
                self.saves -= 1;
                let (number, position) = self.core.rotate().ok()?;
                Some(Saver::Rotates { number, position })
            }
            Saver::Rotates { number, position } => {
                // If the log cannot be written, the snapshot is aborted, but the rotation may
                // complete after this abort.
                self.core.with(|state| state.rotated())?.ok()?;
                // The disk exists until the end of the test, but `World::crash` erases the files of
                // the disk.
                let disk: &'static SimDisk = Box::leak(Box::new(self.disk.clone()));
                let writer = SnapshotWriter::new(disk, number, position).ok()?;
                Some(Saver::Writes { number, writer, left: KEYS.to_vec(), observed: None })
            }
            Saver::Writes { number, mut writer, mut left, observed } => {
                let Some(&key) = left.last() else {
                    let until = self.core.with(LogState::want_sync);
                    return Some(Saver::Syncs { number, writer, until });
                };
                let is_reading = observed.is_some();
                let observed = observed.or_else(|| {
                    self.keyspace.shared().read(key.as_bytes(), 0, |value| {
                        value.map(|value| (self.core.end(), value.counted_items()))
                    })
                });
                if observed.is_some() && key == "filter" && !is_reading {
                    return Some(Saver::Writes { number, writer, left, observed });
                }
                left.pop();
                if let Some(observed) = observed {
                    let written = self.keyspace.shared().read(key.as_bytes(), 0, |value| {
                        writer.entry(
                            key.as_bytes(),
                            value.expect("the filter stays"),
                            None,
                            observed,
                        )
                    });
                    written.ok()?;
                }
                Some(Saver::Writes { number, writer, left, observed: None })
            }
            Saver::Syncs { number, writer, until } => {
                if self.core.with(|state| state.is_durable(until)) {
                    writer.finish(until).ok()?;
                    Folder::read(&self.disk).ok()?.remove_before(number);
                }
                None
            }
        }
    }

    /// Models the effect of `FLUSHALL` on a running snapshot. The snapshot completes the filter
    /// that the snapshot is reading. The snapshot does not write a removed key that the snapshot
    /// has not read, even if a new key has the same name.
    pub(super) fn save_before_flush(&mut self) {
        if let Saver::Writes { observed: Some(_), .. } = self.saver {
            self.save();
        }
        if let Saver::Writes { left, .. } = &mut self.saver {
            left.pop();
        }
    }
}
