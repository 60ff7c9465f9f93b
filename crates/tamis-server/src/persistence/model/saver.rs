//! The snapshot of the model: each step is the work of the saving thread between two moments at
//! which another thread may run.

use crate::persistence::folder::Folder;
use crate::persistence::log::state::LogState;
use crate::persistence::model::{KEYS, World};
use crate::persistence::sim_disk::SimDisk;
use crate::persistence::snapshot::writer::SnapshotWriter;

/// The progress of a snapshot.
pub(super) enum Saver {
    Idle,
    /// The log continues in another file from this position, once that file exists.
    Rotates {
        number: u64,
        position: u64,
    },
    Writes {
        number: u64,
        writer: SnapshotWriter<'static>,
        /// The keys that are not written yet. The last one is the next.
        left: Vec<&'static str>,
        /// The moment at which the snapshot reads the filter, which clients change meanwhile. It is
        /// the next key then.
        observed: Option<Observed>,
    },
    /// The log must be synced up to this position.
    Syncs {
        number: u64,
        writer: SnapshotWriter<'static>,
        until: u64,
    },
}

/// A position of the log, and the counted items of the value at that moment.
type Observed = (u64, Option<u64>);

impl World {
    /// Takes the next step of the snapshot.
    pub(super) fn save(&mut self) {
        let saver = std::mem::replace(&mut self.saver, Saver::Idle);
        self.saver = self.next_saver(saver).unwrap_or(Saver::Idle);
    }

    /// Returns the state after the next step; `None` if the snapshot has ended or failed.
    fn next_saver(&mut self, saver: Saver) -> Option<Saver> {
        match saver {
            Saver::Idle => {
                self.saves -= 1;
                let (number, position) = self.core.rotate().ok()?;
                Some(Saver::Rotates { number, position })
            }
            Saver::Rotates { number, position } => {
                // While the log cannot be written, the snapshot is given up. The rotation may
                // complete later.
                self.core.with(|state| state.rotated())?.ok()?;
                // The disk lives until the end of the test. Its files do not: see `World::crash`.
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

    /// Models a snapshot during `FLUSHALL`. The snapshot completes the filter that it is reading.
    /// It does not find a key that it was about to read, although a new key has the same name.
    pub(super) fn save_before_flush(&mut self) {
        if let Saver::Writes { observed: Some(_), .. } = self.saver {
            self.save();
        }
        if let Saver::Writes { left, .. } = &mut self.saver {
            left.pop();
        }
    }
}
