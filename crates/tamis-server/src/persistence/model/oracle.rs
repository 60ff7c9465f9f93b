//! Checks the state after a crash. The state must equal a prefix of the history, and the prefix
//! must contain all promised changes.

use std::collections::{BTreeMap, BTreeSet};

use tamis_testing::Random;

use crate::keyspace::Keyspace;
use crate::persistence::disk::Disk;
use crate::persistence::error::DurabilityError;
use crate::persistence::folder::Folder;
use crate::persistence::log::log_file::{Header, LogFile};
use crate::persistence::log::state::FsyncPolicy;
use crate::persistence::model::saver::Saver;
use crate::persistence::model::{World, contains, counter};
use crate::persistence::recover::recover;
use crate::persistence::sim_disk::{Fault, SimDisk};
use crate::persistence::snapshot;

/// A change of the history, with the position after its frame.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub changes: Vec<KeyChange>,
    pub end: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum KeyChange {
    Inserted(Vec<u32>),
    Incremented(&'static str),
    Removed(&'static str),
    Flushed,
}

impl World {
    /// Simulates a crash, starts the server again, and checks that all promised changes exist.
    pub(super) fn crash(
        mut self,
        is_power_loss: bool,
        random: &mut Random,
    ) -> Result<Self, String> {
        let sync = self.core.with(|state| state.sync);
        let synced = self.core.with(|state| state.synced);
        let mut disk = self.disk.after_crash(is_power_loss.then_some(&mut *random));
        // Erase only the data of this disk, because the snapshot keeps a reference to the disk
        // until the end of the test.
        self.saver = Saver::Idle;
        self.disk.erase();
        if random.one_in(3) {
            // Let the process crash again during the start, or let an operation fail.
            let at = random.below(12);
            if random.one_in(2) {
                disk.end_at(at);
            } else {
                disk.fail_at(at, if random.one_in(2) { Fault::Io } else { Fault::Full });
            }
            _ = Self::start(disk.clone(), sync, Vec::new());
            // If the process was killed without a power loss, the second start must find every
            // change. After a power loss, changes that the first crash lost were never promised.
            disk = disk.after_crash(is_power_loss.then_some(&mut *random));
        }
        check_damage(&disk, random)?;
        let torn = torn_files(&disk);
        let mut next = Self::start(disk.clone(), sync, self.history)
            .map_err(|error| format!("it does not start: {error}"))?;
        let kept = torn_files(&disk);
        if let Some((name, _)) = torn.iter().find(|(name, bytes)| kept.get(*name) != Some(bytes)) {
            return Err(format!("{name}, which was put aside, is overwritten"));
        }
        let is_kept = sync == FsyncPolicy::Always || !is_power_loss;
        let least = if is_kept { synced.max(self.promised_end) } else { synced };
        next.check(least, if is_kept { &self.promised_items } else { &NONE })?;
        // After this check, the history ends with the recovered prefix.
        Ok(next)
    }

    /// Finds the prefix of the history that produces the recovered keys. Truncates the history to
    /// the found prefix.
    fn check(&mut self, least: u64, promised: &BTreeSet<u32>) -> Result<(), String> {
        let counters = COUNTERS.map(|key| counter(&self.keyspace, key));
        let counted = self.keyspace.shared().read(b"filter", 0, |value| value?.counted_items());
        let counted = counted.unwrap_or(0);
        let promised: Vec<u32> = promised.iter().copied().collect();
        let found = contains(&self.keyspace, &promised);
        if let Some((lost, _)) = promised.iter().zip(found).find(|(_, is_there)| !is_there) {
            return Err(format!("item {lost} is lost"));
        }
        let place = |key: &str| COUNTERS.iter().position(|it| *it == key).expect("a counter");
        let mut state = ([0; 3], BTreeSet::new());
        let mut fits = Vec::new();
        for n in 0..=self.history.len() {
            for change in n.checked_sub(1).into_iter().flat_map(|last| &self.history[last].changes)
            {
                match change {
                    KeyChange::Inserted(items) => state.1.extend(items.iter().copied()),
                    KeyChange::Incremented(key) => state.0[place(key)] += 1,
                    KeyChange::Removed(key) => state.0[place(key)] = 0,
                    KeyChange::Flushed => state = ([0; 3], BTreeSet::new()),
                }
            }
            let items: Vec<u32> = state.1.iter().copied().collect();
            let has_all = contains(&self.keyspace, &items).iter().all(|is_there| *is_there);
            if state.0 == counters && items.len() as u64 == counted && has_all {
                fits.push(n);
            }
        }
        let end_of = |n: usize| n.checked_sub(1).map_or(0, |last| self.history[last].end);
        let end = self.core.end();
        let Some(&n) = fits.iter().find(|n| end_of(**n) == end) else {
            return Err(format!(
                "{counters:?} and {counted} items are not the state at position {end}: \
                 fits {fits:?} of {:?}",
                self.history
            ));
        };
        if end < least {
            return Err(format!("the log ends at {end}, and {least} was promised"));
        }
        self.history.truncate(n);
        Ok(())
    }
}

const COUNTERS: [&str; 3] = ["one", "other", "alone"];

static NONE: BTreeSet<u32> = BTreeSet::new();

/// Damages a byte before the synced position, checks that the server does not start, and restores
/// the byte.
fn check_damage(disk: &SimDisk, random: &mut Random) -> Result<(), String> {
    let fail = |error: DurabilityError| error.to_string();
    let folder = Folder::read(disk).map_err(fail)?;
    let (mut logs, mut recorded) = (Vec::new(), 0);
    if let Some(number) = folder.snapshot() {
        (_, recorded) = snapshot::reader::load(disk, number, drop).map_err(fail)?;
    }
    for number in folder.logs() {
        if let Ok((log, Header::Valid { synced })) = LogFile::open(disk, number) {
            let is_recorded = folder.recorded.is_some_and(|recorded| number <= recorded);
            recorded = recorded.max(synced).max(if is_recorded { log.began } else { 0 });
            logs.push(log);
        }
    }
    let Some(first) = logs.first().map(|log| log.began).filter(|first| *first < recorded) else {
        return Ok(());
    };
    let position = first + random.below((recorded - first) as usize) as u64;
    let log = logs.iter().rev().find(|log| log.began <= position).expect("the first does");
    let (at, mut byte) = (log.offset_of(position), [0]);
    log.file.read_at(&mut byte, at).map_err(|error| error.to_string())?;
    let write = |byte| log.file.write_all_at(&[byte], at).map_err(|error| error.to_string());
    write(byte[0] ^ 1 << random.below(8))?;
    let started = recover(disk, &Keyspace::new());
    if !matches!(started, Err(DurabilityError::Damaged { .. })) {
        return Err(format!("damage at position {position} is not refused: {recorded} is synced"));
    }
    write(byte[0])
}

/// Returns the files with torn bytes that the starts before this call have written.
fn torn_files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.names(disk.dir()).expect("a folder").into_iter();
    let torn = names.filter(|name| name.contains(".torn"));
    torn.map(|name| (name.clone(), disk.contents(&disk.dir().join(name)).expect("it has a name")))
        .collect()
}
