//! The append-only log as a state machine without threads, files and clocks.
//!
//! ```text
//! position   0 ........ synced ........ written ........ end
//!              durable       in the file       in memory
//! ```
//!
//! All logs together are one stream of bytes, and a position counts its bytes. Frames are appended
//! at `end`; a file job writes them, a sync job makes them durable. At most one job of each type
//! runs at a time. The driver (`log.rs`) requests jobs, runs them, and reports their results. The
//! model test (`model.rs`) does the same in every order.
//!
//! **Rotation.** From a certain position on, the stream continues in another file. A file job
//! writes the bytes up to this position, and the next file job switches files. Bytes before the
//! position are always in the old file and bytes after it in the new one.
//!
//! **Space.** A change that cannot be logged must not be applied. So a caller first asks for disk
//! space for its frame ([`LogState::admit`]), and keeps that space until the frame is appended. A
//! write into reserved space does not fail because the disk is full. A new file gets space for all
//! frames that are admitted but not written, and no more. A failed reservation may leave blocks
//! behind the end of the file; a job then frees them ([`FileJob::Trim`]). That job frees all reserved
//! space, so it waits until every admitted change is written.
//!
//! **Groups.** The records of a transaction are kept apart until it ends, and then become one
//! frame (`group.rs`). So there is never a part of a frame between `written` and `end`.

pub(crate) mod answers;
mod group;

use std::collections::BTreeSet;

use crate::persistence::log::frame;
use crate::system::held_memory::{HeldMemory, Hold};
use group::Group;

/// When the log is synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// Before a change is answered.
    Always,
    /// Once a second.
    #[default]
    EverySecond,
    /// Only when the operating system does it.
    Never,
}

/// The time from one sync to the next with [`FsyncPolicy::EverySecond`], in milliseconds.
const SYNC_EVERY_MILLIS: u64 = 1000;

/// The state of the log.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    pub sync: FsyncPolicy,
    /// The secret in the seed of all frame checks.
    pub secret: u64,
    /// Whole frames from `written` on, without those of a running job.
    waiting: Vec<u8>,
    /// The position after the last frame.
    pub end: u64,
    written: u64,
    /// The position up to which the current file has disk space. `u64::MAX` if the file system
    /// cannot reserve any.
    pub reserved: u64,
    /// The bytes of all changes that are admitted and not appended yet.
    admitted: HeldMemory,
    /// Counts the jobs that changed the space of the current file or replaced that file.
    pub space_version: u64,
    /// Such a job runs.
    is_space_changing: bool,
    /// A failed reservation may have left blocks behind the end of the file.
    has_leftover: bool,
    /// The position up to which the stream is durable.
    pub synced: u64,
    group: Option<Group>,
    /// Inserts that may have set bits and have not appended their frame yet.
    tickets: BTreeSet<u64>,
    next_ticket: u64,
    /// The position at which the next file begins, and its number.
    rotation: Option<(u64, u64)>,
    /// Why the last rotation failed. The next rotation clears it.
    rotation_error: Option<String>,
    /// A file job runs.
    is_writing: bool,
    /// The position up to which the running sync job makes the stream durable.
    pub syncing: Option<u64>,
    /// The current file is new: neither its header nor its name is durable.
    is_file_new: bool,
    /// A caller requires a sync up to this position, with any `sync` policy.
    sync_wanted: u64,
    /// When the last sync job began.
    last_sync_millis: u64,
    /// When the oldest byte was written that the running sync job covers.
    unsynced_since: Option<u64>,
    /// When the oldest byte was written that no sync job covers yet.
    uncovered_since: Option<u64>,
    /// Why the last write failed. The log repeats that write.
    write_error: Option<String>,
    /// Why a sync failed. The system may have dropped bytes that it could not write, so a later
    /// sync may succeed although bytes are lost.
    sync_error: Option<String>,
    /// Why a start would not find the current file.
    pub gone: Option<String>,
    pub is_closing: bool,
}

/// Why a change cannot be logged now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The log cannot be written, for this reason.
    Failed(String),
    /// There is no disk space up to this position yet.
    Space(u64),
    /// There is not enough disk space, and a job that changes the space runs.
    Busy,
}

/// Work on the current file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileJob {
    /// Write these bytes at this position.
    Write { position: u64, bytes: Vec<u8> },
    /// Continue in the file with this number, which begins at this position and has disk space up to
    /// `reserved`. The stream is durable up to `synced`.
    Switch { number: u64, position: u64, synced: u64, reserved: u64 },
    /// Free the blocks behind the end of the file.
    Trim,
}

impl LogState {
    /// Continues a stream that is durable up to `end`.
    pub fn new(end: u64, sync: FsyncPolicy) -> Self {
        Self { sync, end, written: end, reserved: end, synced: end, ..Self::default() }
    }

    /// Tests whether the stream is durable up to a position, and so is the current file.
    pub fn is_durable(&self, position: u64) -> bool {
        self.synced >= position && !self.is_file_new
    }

    /// Admits a change of at most `bytes` bytes. Its disk space is kept until the caller drops the
    /// result, which must be after the change was appended. A transaction is admitted before its
    /// group begins, except images ([`image_admitted`](Self::image_admitted)).
    ///
    /// # Errors
    ///
    /// Returns why the change cannot be logged now, or how much disk space must be reserved first.
    pub fn admit(&self, bytes: u64) -> Result<Hold, Refusal> {
        if let Some(error) = self.failure() {
            return Err(Refusal::Failed(error.to_owned()));
        }
        let end = self.admitted_end().saturating_add(bytes);
        match end <= self.reserved {
            true => Ok(self.admitted.hold(bytes)),
            false if self.is_space_changing => Err(Refusal::Busy),
            false => Err(Refusal::Space(end)),
        }
    }

    /// Returns the position up to which admitted changes need disk space.
    fn admitted_end(&self) -> u64 {
        self.end.saturating_add(self.admitted.bytes())
    }

    /// Reports that the current file has disk space up to a position. The caller began to reserve it
    /// at the given [`space_version`](Self::space_version).
    pub fn reserved(&mut self, to: u64, space_version: u64) {
        if self.space_version == space_version {
            self.reserved = self.reserved.max(to);
        }
    }

    /// Reports that disk space for the current file could not be reserved.
    pub fn not_reserved(&mut self, space_version: u64) {
        self.has_leftover |= self.space_version == space_version;
    }

    /// Appends the records that `encode` writes, as a frame or to the open group.
    pub fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        if let Some(group) = &mut self.group {
            return encode(&mut group.records);
        }
        let before = self.waiting.len();
        frame::append(&mut self.waiting, self.end ^ self.secret, encode);
        self.end += (self.waiting.len() - before) as u64;
    }

    /// Returns why changes cannot be written at the moment; `None` if they can.
    pub fn failure(&self) -> Option<&str> {
        let errors = [&self.sync_error, &self.write_error, &self.gone];
        errors.into_iter().find_map(Option::as_deref)
    }

    /// Starts a rotation to the file with this number; returns the position from which the stream
    /// continues there.
    ///
    /// # Errors
    ///
    /// Returns why the rotation cannot start now.
    pub fn rotate(&mut self, number: u64) -> Result<u64, String> {
        if let Some(error) = self.failure() {
            return Err(error.to_owned());
        }
        if self.rotation.is_some() {
            return Err("the last log is still being ended".to_owned());
        }
        if self.is_closing {
            return Err("the server ends".to_owned());
        }
        self.rotation = Some((self.end, number));
        self.rotation_error = None;
        Ok(self.end)
    }

    /// Returns the result of the last rotation; `None` while it has not ended.
    pub fn rotated(&self) -> Option<Result<(), String>> {
        if let Some(error) = &self.rotation_error {
            return Some(Err(error.clone()));
        }
        self.rotation.is_none().then_some(Ok(()))
    }

    /// Takes the next job on the file, if one is due and none runs. The caller must report its end.
    pub fn next_file_job(&mut self) -> Option<FileJob> {
        if !self.has_file_job() {
            return None;
        }
        let job = match self.rotation {
            _ if self.is_trim_due() => {
                self.begin_space_job();
                // Until the job ends, no change gets space that the job may free.
                self.reserved = self.written;
                self.has_leftover = false;
                FileJob::Trim
            }
            Some((position, number)) if position == self.written => {
                self.begin_space_job();
                if self.reserved < u64::MAX {
                    // The disk may be full, and the snapshot that begins with this file may be the
                    // way to free space.
                    self.reserved = self.reserved.min(self.admitted_end());
                }
                let (synced, reserved) = (self.synced, self.reserved);
                FileJob::Switch { number, position, synced, reserved }
            }
            rotation => {
                let limit = rotation.map_or(self.end, |(position, _)| position);
                let rest = self.waiting.split_off((limit - self.written) as usize);
                let bytes = std::mem::replace(&mut self.waiting, rest);
                FileJob::Write { position: self.written, bytes }
            }
        };
        self.is_writing = true;
        Some(job)
    }

    /// Begins a job that changes the disk space of the current file or replaces that file. While it
    /// runs, only changes are admitted for which there is space already.
    fn begin_space_job(&mut self) {
        self.is_space_changing = true;
        self.space_version += 1;
    }

    /// Tests whether blocks behind the end of the file should be freed, and no admitted change needs
    /// them. Another program may take freed blocks before the log can reserve them again.
    fn is_trim_due(&self) -> bool {
        self.has_leftover && self.written == self.end && self.admitted.bytes() == 0
    }

    /// Tests whether [`next_file_job`](Self::next_file_job) would return a job.
    pub fn has_file_job(&self) -> bool {
        !self.is_writing
            && self.sync_error.is_none()
            && (self.written < self.end || self.rotation.is_some() || self.is_trim_due())
    }

    /// Reports the end of a write.
    pub fn wrote(&mut self, mut bytes: Vec<u8>, result: Result<(), String>, now_millis: u64) {
        self.is_writing = false;
        match result {
            Ok(()) => {
                self.written += bytes.len() as u64;
                self.uncovered_since.get_or_insert(now_millis);
                self.write_error = None;
                if self.waiting.is_empty() && bytes.capacity() <= KEEP_BYTES {
                    bytes.clear();
                    self.waiting = bytes;
                }
            }
            Err(error) => {
                bytes.append(&mut self.waiting);
                self.waiting = bytes;
                self.write_error = Some(error);
            }
        }
    }

    /// Reports that the blocks behind the end of the file were freed.
    pub fn trimmed(&mut self) {
        (self.is_writing, self.is_space_changing) = (false, false);
    }

    /// Reports that the file was switched.
    pub fn switched(&mut self) {
        (self.is_writing, self.is_space_changing) = (false, false);
        self.is_file_new = true;
        // The old file has lost the blocks behind its end.
        self.has_leftover = false;
        self.rotation = None;
    }

    /// Reports that the file was not switched: the stream continues in the old one. If the new file
    /// `may_exist`, the log writes nothing more, since a start could find both files.
    pub fn not_switched(&mut self, error: String, may_exist: bool) {
        (self.is_writing, self.is_space_changing) = (false, false);
        self.rotation = None;
        if may_exist {
            self.sync_error = Some(error.clone());
        }
        self.rotation_error = Some(error);
    }

    /// Requests a sync of the stream up to its current end, and of the current file; returns that
    /// end.
    pub fn want_sync(&mut self) -> u64 {
        self.sync_wanted = self.end;
        self.end
    }

    /// Tests whether [`next_sync`](Self::next_sync) would return a job.
    pub fn has_sync(&self, now_millis: u64) -> bool {
        let has_work = self.written > self.synced || self.is_file_new;
        if self.syncing.is_some() || self.sync_error.is_some() || !has_work {
            return false;
        }
        let is_due = match self.sync {
            FsyncPolicy::Always => true,
            FsyncPolicy::EverySecond => {
                now_millis.saturating_sub(self.last_sync_millis) >= SYNC_EVERY_MILLIS
            }
            FsyncPolicy::Never => false,
        };
        is_due || self.is_closing || !self.is_durable(self.sync_wanted)
    }

    /// Takes a sync job if one is due and none runs. The job makes the stream durable up to the
    /// returned position, and also the name of the current file if that is new. The caller must
    /// report its end.
    pub fn next_sync(&mut self, now_millis: u64) -> Option<(u64, bool)> {
        if !self.has_sync(now_millis) {
            return None;
        }
        self.last_sync_millis = now_millis;
        self.syncing = Some(self.written);
        self.unsynced_since = self.uncovered_since.take();
        self.syncing.map(|position| (position, self.is_file_new))
    }

    /// Reports the end of a sync job. `is_present` means that the job included the current file and
    /// its name; otherwise the file was switched after the job began.
    pub fn sync_ended(&mut self, result: Result<(), String>, is_present: bool) {
        let Some(position) = self.syncing.take() else { return };
        match result {
            Ok(()) => {
                self.synced = position;
                self.is_file_new &= !is_present;
                self.unsynced_since = None;
            }
            Err(error) => self.sync_error = Some(error),
        }
    }

    /// Tests whether all changes are durable, or cannot become durable.
    pub fn is_done(&self) -> bool {
        let has_failed = self.sync_error.is_some() || self.write_error.is_some();
        !self.is_writing
            && self.syncing.is_none()
            && (has_failed || self.is_durable(self.end) && self.rotation.is_none())
    }
}

/// A buffer up to this capacity is reused for the next frames.
const KEEP_BYTES: usize = 1 << 20;

impl LogState {
    /// Opens a group: all records appended until its end take effect as a whole or not at all.
    /// `images` is the disk space for the images that the commands of the group will log.
    pub fn begin_group(&mut self, images: Option<Hold>) {
        debug_assert!(self.group.is_none(), "a transaction is alone");
        let space = images.unwrap_or_else(|| self.admitted.hold(0));
        let unused_bytes = space.bytes();
        self.group = Some(Group { records: Vec::new(), space, unused_bytes });
    }

    /// Returns the length of the open group in bytes; `None` if no group is open.
    pub fn group_bytes(&self) -> Option<usize> {
        self.group.as_ref().map(|group| group.records.len())
    }

    /// Returns how many bytes of an image must be [admitted](Self::admit): the open group may have
    /// disk space for the others.
    pub fn missing_image_bytes(&self, image_bytes: u64) -> u64 {
        image_bytes.saturating_sub(self.group.as_ref().map_or(0, |group| group.unused_bytes))
    }

    /// Reports that the missing bytes of an image were admitted. An open group keeps their disk
    /// space until it ends. Without a group, the caller keeps the returned space.
    pub fn image_admitted(&mut self, image_bytes: u64, missing: Hold) -> Option<Hold> {
        let Some(group) = &mut self.group else { return Some(missing) };
        group.unused_bytes = group.unused_bytes.saturating_sub(image_bytes);
        group.space.add(missing.bytes());
        None
    }

    /// Ends the group and appends its frame, unless it is empty. Then releases the disk space of
    /// the images.
    pub fn end_group(&mut self) {
        let Some(Group { records, space, .. }) = self.group.take() else { return };
        if !records.is_empty() {
            self.append(|out| out.extend_from_slice(&records));
        }
        drop(space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::log::state::answers::Readiness;

    /// Runs a write job; returns the position and the number of the written bytes.
    pub(crate) fn write(state: &mut LogState) -> (u64, usize) {
        match state.next_file_job() {
            Some(FileJob::Write { position, bytes }) => {
                let len = bytes.len();
                state.wrote(bytes, Ok(()), 0);
                (position, len)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_before_the_rotation_are_written_to_the_old_file() {
        let mut state = LogState::new(100, FsyncPolicy::EverySecond);
        state.append(|out| out.extend(b"before"));
        let between = state.rotate(1).unwrap();
        state.append(|out| out.extend(b"after"));
        assert_eq!(write(&mut state), (100, (between - 100) as usize));
        let switch = FileJob::Switch { number: 1, position: between, synced: 100, reserved: 100 };
        assert_eq!(state.next_file_job(), Some(switch));
        assert_eq!(state.next_file_job(), None, "one at a time");
        state.switched();
        assert_eq!(write(&mut state), (between, (state.end - between) as usize));
    }

    #[test]
    fn a_rotation_inside_a_group_leaves_the_group_whole() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.append(|out| out.extend(b"before"));
        state.begin_group(None);
        state.append(|out| out.extend(b"one"));
        let between = state.rotate(1).unwrap();
        state.append(|out| out.extend(b"two"));
        assert_eq!(state.end, between, "a group has no position before it ends");
        state.end_group();
        write(&mut state);
        assert!(matches!(state.next_file_job(), Some(FileJob::Switch { .. })));
        state.switched();
        let (position, len) = write(&mut state);
        assert_eq!((position, len), (between, frame::HEADER_BYTES + 6));
    }

    #[test]
    fn a_failed_write_is_repeated_with_later_frames() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.append(|out| out.extend(b"one"));
        let Some(FileJob::Write { bytes, .. }) = state.next_file_job() else { panic!() };
        state.append(|out| out.extend(b"two"));
        state.wrote(bytes, Err("full".to_owned()), 0);
        let mut needs = state.needs();
        assert_eq!(state.readiness(&mut needs, true, 0), Readiness::Failed("full".to_owned()));
        assert_eq!(state.readiness(&mut needs, false, 0), Readiness::Ready);
        assert_eq!(write(&mut state), (0, state.end as usize));
        assert_eq!(state.failure(), None);
    }

    /// Returns the position up to which disk space is missing for a change.
    fn missing(state: &LogState, bytes: u64) -> Option<u64> {
        match state.admit(bytes) {
            Ok(_) => None,
            Err(Refusal::Space(to)) => Some(to),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_change_is_admitted_only_within_the_reserved_space() {
        let mut state = LogState::new(100, FsyncPolicy::EverySecond);
        assert_eq!(missing(&state, 1000), Some(1100));
        state.reserved(1100, 0);
        assert_eq!(missing(&state, 1000), None);
        assert_eq!(missing(&state, 1001), Some(1101));
        assert_eq!(missing(&state, u64::MAX), Some(u64::MAX));
        state.reserved = u64::MAX;
        assert_eq!(missing(&state, u64::MAX), None);
        state.gone = Some("gone".to_owned());
        assert_eq!(state.admit(0).unwrap_err(), Refusal::Failed("gone".to_owned()));
    }

    #[test]
    fn an_admitted_change_keeps_its_space_until_it_is_appended() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        let one = state.admit(60).unwrap();
        assert_eq!(missing(&state, 41), Some(101));
        let two = state.admit(40).unwrap();
        assert_eq!(missing(&state, 1), Some(101));
        drop(two);
        state.append(|out| out.extend([0; 20]));
        drop(one);
        assert_eq!((state.end, missing(&state, 60), missing(&state, 61)), (40, None, Some(101)));
    }

    #[test]
    fn a_new_file_needs_space_only_for_admitted_changes() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(1000, 0);
        let admitted = state.admit(60).unwrap();
        state.rotate(1).unwrap();
        let switch = FileJob::Switch { number: 1, position: 0, synced: 0, reserved: 60 };
        assert_eq!(state.next_file_job(), Some(switch));
        assert_eq!(state.admit(1).unwrap_err(), Refusal::Busy, "the new file may be small");
        state.reserved(1000, 0);
        state.switched();
        assert_eq!(missing(&state, 1), Some(61), "space of the old file");
        drop(admitted);
    }

    #[test]
    fn blocks_of_a_failed_reservation_are_freed() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        state.not_reserved(0);
        assert_eq!(state.next_file_job(), Some(FileJob::Trim));
        state.reserved(1000, 0);
        assert_eq!(state.admit(1).unwrap_err(), Refusal::Busy, "the job may free its space");
        state.not_reserved(0);
        state.trimmed();
        assert_eq!((state.next_file_job(), missing(&state, 1)), (None, Some(1)));
        state.not_reserved(1);
        assert_eq!(state.next_file_job(), Some(FileJob::Trim));
    }

    #[test]
    fn space_of_admitted_changes_is_not_freed() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        let admitted = state.admit(60).unwrap();
        state.not_reserved(0);
        assert_eq!(state.next_file_job(), None, "an admitted change is not appended yet");
        state.append(|out| out.extend([0; 20]));
        drop(admitted);
        assert_eq!(write(&mut state), (0, 40), "the appended frame is written first");
        assert_eq!(state.next_file_job(), Some(FileJob::Trim));
        state.trimmed();
        assert_eq!((state.next_file_job(), missing(&state, 1)), (None, Some(41)));
    }

    #[test]
    fn a_switch_goes_before_blocks_that_cannot_be_freed_yet() {
        let mut state = LogState::new(0, FsyncPolicy::EverySecond);
        state.reserved(100, 0);
        let admitted = state.admit(60).unwrap();
        state.not_reserved(0);
        state.rotate(1).unwrap();
        assert!(matches!(state.next_file_job(), Some(FileJob::Switch { .. })));
        state.not_switched("full".to_owned(), false);
        drop(admitted);
        assert_eq!(state.next_file_job(), Some(FileJob::Trim), "the old file is used again");
        state.trimmed();
        state.rotate(1).unwrap();
        state.not_reserved(2);
        assert_eq!(state.next_file_job(), Some(FileJob::Trim), "the new file may need the space");
    }

    #[test]
    fn nothing_is_taken_for_durable_after_a_failed_sync() {
        let mut state = LogState::new(0, FsyncPolicy::Always);
        state.append(|out| out.extend(b"one"));
        write(&mut state);
        state.next_sync(0).unwrap();
        state.sync_ended(Err("lost".to_owned()), true);
        state.append(|out| out.extend(b"two"));
        assert_eq!((state.next_file_job(), state.next_sync(9000)), (None, None));
        assert!(state.is_done() && state.synced == 0);
    }
}
