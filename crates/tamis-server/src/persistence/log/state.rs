//! The append-only log as a state machine. The state machine uses no threads, no files and no
//! clock.
//!
//! ```text
//! position   0 ........ synced ........ written ........ end
//!              durable       in the file       in memory
//! ```
//!
//! All logs together are one stream of bytes. A position is an offset in this stream. The log
//! appends frames at the position `end`. A file job writes the frames, and a sync job makes the
//! frames durable. At most one job of each type runs at a time. The code that drives the state
//! machine (`log.rs`) requests jobs, runs the jobs, and reports their results. The model test
//! (`model.rs`) requests, runs and reports the jobs in every order.
//!
//! **Rotation.** A rotation selects a position from which the stream continues in a new file. A
//! file job writes the bytes before this position, and the next file job switches files. Bytes
//! before the position are always in the old file, and bytes after the position are always in the
//! new file.
//!
//! **Space.** A change that cannot be logged must not be applied. Before a caller applies a change,
//! the caller reserves disk space for the frame ([`LogState::admit`]), and keeps the reservation
//! until the frame is appended. A full disk cannot cause an error when the log writes into reserved
//! space. A new file gets space only for the frames that are admitted but not written. A failed
//! reservation may leave blocks after the end of the file. A trim job ([`FileJob::Trim`]) frees the
//! blocks that a failed reservation leaves. The trim job frees all reserved space, so the job waits
//! until every admitted change is written.
//!
//! **Groups.** The records of a transaction are stored separately until the transaction ends, and
//! become one frame at its end (`group.rs`). The bytes between `written` and `end` contain only
//! whole frames, because the log stores an open transaction separately.

pub(crate) mod answers;
mod group;

use std::collections::BTreeSet;

use crate::persistence::log::frame;
use crate::system::held_memory::{HeldMemory, Hold};
use group::Group;

/// The times at which the log is synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// The log is synced before the reply to a change is sent.
    Always,
    /// The log is synced once per second.
    #[default]
    EverySecond,
    /// The log is synced only when the operating system writes its cache to the disk.
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
    /// Whole frames after `written`, without the frames of a running job.
    waiting: Vec<u8>,
    /// The position after the last frame.
    pub end: u64,
    written: u64,
    /// The position up to which the current file has disk space. The value is `u64::MAX` if the
    /// file system cannot reserve space.
    pub reserved: u64,
    /// The number of bytes of all changes that are admitted but not yet appended.
    admitted: HeldMemory,
    /// Counts the jobs that changed the space of the current file or replaced the current file.
    pub space_version: u64,
    /// True while a job changes the space of the current file or replaces the current file.
    is_space_changing: bool,
    /// True if a failed reservation may have left blocks after the end of the file.
    has_leftover: bool,
    /// The position up to which the stream is durable.
    pub synced: u64,
    group: Option<Group>,
    /// The numbers (tickets) of inserts that may have set bits but have not yet appended their
    /// frame.
    tickets: BTreeSet<u64>,
    next_ticket: u64,
    /// The position at which the next file begins, and the number of the next file.
    rotation: Option<(u64, u64)>,
    /// The reason why the last rotation failed. The next rotation clears the error of the last
    /// rotation.
    rotation_error: Option<String>,
    /// True while a file job is running.
    is_writing: bool,
    /// The position up to which the running sync job makes the stream durable.
    pub syncing: Option<u64>,
    /// True if the current file is new, so that neither the header nor the name of the file is
    /// durable.
    is_file_new: bool,
    /// The position up to which a caller requires a sync, whatever the `sync` policy is.
    sync_wanted: u64,
    /// The time at which the last sync job began.
    last_sync_millis: u64,
    /// The time of the oldest write that the running sync job covers.
    unsynced_since: Option<u64>,
    /// The time of the oldest write that no sync job covers yet.
    uncovered_since: Option<u64>,
    /// The reason why the last write failed. The log repeats the failed write.
    write_error: Option<String>,
    /// The reason why a sync failed. After a failed sync, a later sync may succeed although the
    /// system has dropped the bytes that the system could not write.
    sync_error: Option<String>,
    /// The reason why a server that starts would not find the current file.
    pub gone: Option<String>,
    pub is_closing: bool,
}

/// The reason why a change cannot be logged now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Changes to the log cannot be written. The text contains the reason why the log cannot be
    /// written.
    Failed(String),
    /// The caller must reserve disk space up to this position before the change.
    Space(u64),
    /// The current file has not enough disk space for the change, and a job that changes the disk
    /// space is running.
    Busy,
}

/// A job on the current file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileJob {
    /// The job writes `bytes` at `position`.
    Write { position: u64, bytes: Vec<u8> },
    /// The job switches to the file with this number. The file begins at `position` and has disk
    /// space up to `reserved`. The stream is durable up to `synced`.
    Switch { number: u64, position: u64, synced: u64, reserved: u64 },
    /// The job frees the blocks after the end of the file.
    Trim,
}

impl LogState {
    /// Continues a stream that is durable up to `end`.
    pub fn new(end: u64, sync: FsyncPolicy) -> Self {
        Self { sync, end, written: end, reserved: end, synced: end, ..Self::default() }
    }

    /// Tests whether the stream is durable up to a position, and whether the current file is
    /// durable.
    pub fn is_durable(&self, position: u64) -> bool {
        self.synced >= position && !self.is_file_new
    }

    /// Admits a change of at most `bytes` bytes. The disk space is reserved until the caller drops
    /// the returned `Hold`. The caller drops the `Hold` after the change is appended to the log.
    /// The caller admits a transaction before the group of the transaction begins, except for the
    /// serialized values ([`image_admitted`](Self::image_admitted)).
    ///
    /// # Errors
    ///
    /// Returns the reason why the change cannot be logged now, or the disk space that the caller
    /// must reserve before the change.
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

    /// Reports that the current file has disk space up to a position. `space_version` is the value
    /// of [`space_version`](Self::space_version) at the time when the caller began to reserve the
    /// space.
    pub fn reserved(&mut self, to: u64, space_version: u64) {
        if self.space_version == space_version {
            self.reserved = self.reserved.max(to);
        }
    }

    /// Reports that disk space for the current file could not be reserved.
    pub fn not_reserved(&mut self, space_version: u64) {
        self.has_leftover |= self.space_version == space_version;
    }

    /// Appends the records that `encode` writes. The records become a frame, or a part of the open
    /// group.
    pub fn append(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        if let Some(group) = &mut self.group {
            return encode(&mut group.records);
        }
        let before = self.waiting.len();
        frame::append(&mut self.waiting, self.end ^ self.secret, encode);
        self.end += (self.waiting.len() - before) as u64;
    }

    /// Returns the reason why the log cannot write changes at this time. Returns `None` if the log
    /// can write changes.
    pub fn failure(&self) -> Option<&str> {
        let errors = [&self.sync_error, &self.write_error, &self.gone];
        errors.into_iter().find_map(Option::as_deref)
    }

    /// Starts a rotation to the file with this number. Returns the position at which the new file
    /// begins.
    ///
    /// # Errors
    ///
    /// Returns the reason why the rotation cannot start now.
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

    /// Returns the result of the last rotation. Returns `None` if the rotation has not ended.
    pub fn rotated(&self) -> Option<Result<(), String>> {
        if let Some(error) = &self.rotation_error {
            return Some(Err(error.clone()));
        }
        self.rotation.is_none().then_some(Ok(()))
    }

    /// Takes the next job on the log file, if a job is due and no job is running. The caller must
    /// report the end of the job.
    pub fn next_file_job(&mut self) -> Option<FileJob> {
        if !self.has_file_job() {
            return None;
        }
        let job = match self.rotation {
            _ if self.is_trim_due() => {
                self.begin_space_job();
                // Until the trim job ends, no change may get space that the job could free.
                self.reserved = self.written;
                self.has_leftover = false;
                FileJob::Trim
            }
            Some((position, number)) if position == self.written => {
                self.begin_space_job();
                if self.reserved < u64::MAX {
                    // If the disk is full, the snapshot that begins with this file may free disk
                    // space, so require only the necessary space.
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

    /// Begins a job that changes the disk space of the current file or replaces that file. While
    /// the job is running, the log admits a change only if disk space for the change is already
    /// reserved.
    fn begin_space_job(&mut self) {
        self.is_space_changing = true;
        self.space_version += 1;
    }

    /// Tests whether the log should free the blocks after the end of the file. The log frees the
    /// blocks only if no admitted change may need the blocks, because another program may take the
    /// freed blocks.
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

    /// Reports that the blocks after the end of the file were freed.
    pub fn trimmed(&mut self) {
        (self.is_writing, self.is_space_changing) = (false, false);
    }

    /// Reports that the file was switched.
    pub fn switched(&mut self) {
        (self.is_writing, self.is_space_changing) = (false, false);
        self.is_file_new = true;
        // The switch has freed the blocks after the end of the old file.
        self.has_leftover = false;
        self.rotation = None;
    }

    /// Reports that the file was not switched. The stream continues in the old file. If the new
    /// file `may_exist`, the log stops writing, because a start could find both the old and the new
    /// file.
    pub fn not_switched(&mut self, error: String, may_exist: bool) {
        (self.is_writing, self.is_space_changing) = (false, false);
        self.rotation = None;
        if may_exist {
            self.sync_error = Some(error.clone());
        }
        self.rotation_error = Some(error);
    }

    /// Requests a sync of the stream up to its current end, and a sync of the current file. Returns
    /// the end of the stream at the time of the call.
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

    /// Takes a sync job if a sync is due and no sync is running. The job makes the stream durable
    /// up to the returned position. The returned flag is true if the job must make the name of a
    /// new file durable. The caller must report the end of the job.
    pub fn next_sync(&mut self, now_millis: u64) -> Option<(u64, bool)> {
        if !self.has_sync(now_millis) {
            return None;
        }
        self.last_sync_millis = now_millis;
        self.syncing = Some(self.written);
        self.unsynced_since = self.uncovered_since.take();
        self.syncing.map(|position| (position, self.is_file_new))
    }

    /// Reports the end of a sync job. `is_present` is true if the job included the current file and
    /// its name. `is_present` is false if the file was switched after the job began.
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

    /// Tests whether every change is either durable or can never become durable.
    pub fn is_done(&self) -> bool {
        let has_failed = self.sync_error.is_some() || self.write_error.is_some();
        !self.is_writing
            && self.syncing.is_none()
            && (has_failed || self.is_durable(self.end) && self.rotation.is_none())
    }
}

/// The log reuses a buffer for later frames if the capacity of the buffer is at most this number of
/// bytes.
const KEEP_BYTES: usize = 1 << 20;

impl LogState {
    /// Opens a group. All records that are appended before the end of the group become one atomic
    /// change. `images` is the disk space for the serialized values that the commands of the group
    /// will log.
    pub fn begin_group(&mut self, images: Option<Hold>) {
        debug_assert!(self.group.is_none(), "a transaction is alone");
        let space = images.unwrap_or_else(|| self.admitted.hold(0));
        let unused_bytes = space.bytes();
        self.group = Some(Group { records: Vec::new(), space, unused_bytes });
    }

    /// Returns the length of the open group in bytes. Returns `None` if no group is open.
    pub fn group_bytes(&self) -> Option<usize> {
        self.group.as_ref().map(|group| group.records.len())
    }

    /// Returns the number of bytes of an image (a serialized value) that must still be
    /// [admitted](Self::admit). The open group may have disk space for the other bytes of the
    /// image.
    pub fn missing_image_bytes(&self, image_bytes: u64) -> u64 {
        image_bytes.saturating_sub(self.group.as_ref().map_or(0, |group| group.unused_bytes))
    }

    /// Reports that the missing bytes of an image (a serialized value) were admitted. An open group
    /// keeps the disk space of the serialized value until the group ends. Without a group, the
    /// caller keeps the returned `Hold`.
    pub fn image_admitted(&mut self, image_bytes: u64, missing: Hold) -> Option<Hold> {
        let Some(group) = &mut self.group else { return Some(missing) };
        group.unused_bytes = group.unused_bytes.saturating_sub(image_bytes);
        group.space.add(missing.bytes());
        None
    }

    /// Ends the group. If the group contains records, appends the frame of the records. After the
    /// append, releases the disk space of the serialized values.
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

    /// Runs a write job. Returns the position of the written bytes and the number of the written
    /// bytes.
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

    /// Returns the position up to which disk space must be reserved for a change.
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
