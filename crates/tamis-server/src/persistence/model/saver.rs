//! The snapshot of the model: each step is the work of the saving thread between two moments at
//! which another thread may run.

use std::path::Path;

use crate::persistence::model::{DIR, KEYS, World};
use crate::persistence::recover::forget;
use crate::persistence::sim_disk::SimDisk;
use crate::persistence::snapshot::writer::SnapshotWriter;
use crate::persistence::state::LogState;

/// The progress of a snapshot.
pub(super) enum Saver {
    Idle,
    /// The log continues in another file from this position, once that file exists.
    Rotates {
        number: u64,
        position: u64,
    },
    /// The keys in `left` are not written yet.
    Writes {
        number: u64,
        writer: SnapshotWriter<'static>,
        left: Vec<&'static str>,
    },
    /// The snapshot has noted the moment at which it reads a filter that clients change meanwhile.
    Reads {
        number: u64,
        writer: SnapshotWriter<'static>,
        left: Vec<&'static str>,
        noted: (u64, Option<u64>),
    },
    /// The log must be synced up to this position.
    Syncs {
        number: u64,
        writer: SnapshotWriter<'static>,
        until: u64,
    },
}

impl World {
    /// Takes the next step of the snapshot.
    pub(super) fn save(&mut self) {
        let saver = std::mem::replace(&mut self.saver, Saver::Idle);
        self.saver = match saver {
            Saver::Idle => {
                self.saves -= 1;
                match self.core.rotate() {
                    Ok((number, position)) => Saver::Rotates { number, position },
                    Err(_) => Saver::Idle,
                }
            }
            Saver::Rotates { number, position } => {
                // While the log cannot be written, the snapshot is given up. The rotation may
                // complete later.
                match self.core.with(|state| state.rotated()).unwrap_or(Err(String::new())) {
                    Ok(()) => {
                        // The disk lives until the end of the test. Its files do not: see
                        // `World::crash`.
                        let disk: &'static SimDisk = Box::leak(Box::new(self.disk.clone()));
                        match SnapshotWriter::new(disk, Path::new(DIR), number, position) {
                            Ok(writer) => Saver::Writes { number, writer, left: KEYS.to_vec() },
                            Err(_) => Saver::Idle,
                        }
                    }
                    Err(_) => Saver::Idle,
                }
            }
            Saver::Writes { number, mut writer, mut left } => match left.pop() {
                None => {
                    let until = self.core.with(LogState::want_sync);
                    Saver::Syncs { number, writer, until }
                }
                Some(key) => {
                    let noted = self.keyspace.shared().read(key.as_bytes(), 0, |value| {
                        value.map(|value| (self.end(), value.counted_items()))
                    });
                    match noted {
                        Some(noted) if key == "filter" => {
                            Saver::Reads { number, writer, left, noted }
                        }
                        Some(noted) => {
                            let written = self.write_entry(&mut writer, key, noted);
                            if written {
                                Saver::Writes { number, writer, left }
                            } else {
                                Saver::Idle
                            }
                        }
                        None => Saver::Writes { number, writer, left },
                    }
                }
            },
            Saver::Reads { number, mut writer, left, noted } => {
                let written = self.write_entry(&mut writer, "filter", noted);
                if written { Saver::Writes { number, writer, left } } else { Saver::Idle }
            }
            Saver::Syncs { number, writer, until } => {
                if self.core.with(|state| state.is_durable(until)) && writer.finish(until).is_ok() {
                    _ = forget(&self.disk, Path::new(DIR), number);
                }
                Saver::Idle
            }
        };
    }

    /// Models a snapshot during `FLUSHALL`. The snapshot completes the filter that it is reading.
    /// It does not find a key that it was about to read, although a new key has the same name.
    pub(super) fn save_before_flush(&mut self) {
        if let Saver::Reads { .. } = self.saver {
            self.save();
        }
        if let Saver::Writes { left, .. } = &mut self.saver {
            left.pop();
        }
    }

    fn write_entry(
        &self,
        writer: &mut SnapshotWriter<'_>,
        key: &str,
        noted: (u64, Option<u64>),
    ) -> bool {
        self.keyspace.shared().read(key.as_bytes(), 0, |value| {
            writer.entry(key.as_bytes(), value.expect("the filter stays"), None, noted).is_ok()
        })
    }
}
