//! The log: changes of all connections, written and synced together.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tamis_commands::{Env, Settings, Words};
use tokio::sync::watch;

use super::error::DurabilityError;
use super::frame;
use super::record::{HASHER, Record};

/// When what was written is synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Before a change is answered.
    Always,
    /// Once a second.
    #[default]
    EverySecond,
    /// When the system likes.
    Never,
}

/// The log of a server that runs.
#[derive(Debug)]
pub(crate) struct Log {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    dir: PathBuf,
    state: Mutex<State>,
    /// Told when there is something to write, or to end.
    work: Condvar,
    /// Told when the writer has done what it could.
    done: Condvar,
    /// Up to where the stream is as safe as `appendfsync` has it before an answer.
    safe: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    sync: Sync,
    /// Whole frames that are not written yet.
    waiting: Vec<u8>,
    /// The position behind the last frame of all.
    end: u64,
    /// Where in `waiting` the frame begins that is not whole yet: changes of a transaction go into one.
    open: Option<usize>,
    /// The file shall end here, at this position, and the next begin.
    rotate: Option<(u64, File)>,
    /// Why nothing can be written at the moment.
    failed: Option<String>,
    is_ending: bool,
    /// Up to here the stream shall be on the disk, whatever `appendfsync` says, and up to here it is.
    sync_wanted: u64,
    synced: u64,
    /// The settings that the present file has told so far.
    settings: Option<Settings>,
}

/// Changes that wait for a disk above this hold up whoever makes more.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// How long the writer gathers before it writes, when nobody waits for it.
const GATHER: Duration = Duration::from_millis(5);

/// What a log starts with: a name, the version, and the position of its first frame.
pub(super) const MAGIC: &[u8; 8] = b"TAMISLOG";
pub(super) const VERSION: u32 = 1;
pub(super) const HEAD_BYTES: u64 = 20;

/// Returns the name of a log.
pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("log-{number}.tamis"))
}

/// The position in the head of a log that no server has gone on with yet.
pub(crate) const NOT_BEGUN: u64 = u64::MAX;

/// Makes an empty log.
pub(crate) fn create(dir: &Path, number: u64, position: u64) -> Result<File, DurabilityError> {
    let path = path(dir, number);
    let make = || -> io::Result<File> {
        let mut file =
            OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path)?;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend(position.to_le_bytes());
        file.write_all(&head)?;
        file.sync_all()?;
        File::open(dir)?.sync_all()?;
        Ok(file)
    };
    make().map_err(DurabilityError::io(&path))
}

/// Fills in where a log begins.
fn begin(mut file: &File, position: u64) -> io::Result<()> {
    file.seek(io::SeekFrom::Start(HEAD_BYTES - 8))?;
    file.write_all(&position.to_le_bytes())?;
    file.sync_data()
}

impl Log {
    /// Goes on with a log, whose file stands behind its last frame.
    pub fn start(dir: &Path, file: File, end: u64, sync: Sync) -> io::Result<Self> {
        let state = State {
            sync,
            waiting: Vec::new(),
            end,
            open: None,
            rotate: None,
            failed: None,
            is_ending: false,
            sync_wanted: end,
            synced: end,
            settings: None,
        };
        let shared = Arc::new(Shared {
            dir: dir.to_owned(),
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            safe: watch::Sender::new(end),
        });
        let writer = Writer { shared: shared.clone(), file, written: end, synced: end, lost: None };
        let thread = std::thread::Builder::new().name("tamis-log".to_owned());
        let thread = thread.spawn(move || writer.run())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Appends a change. Whoever holds the lock of the key it is about calls this before letting go of it.
    pub fn append(&self, record: &Record<'_>) {
        self.push(&mut self.shared.state.lock(), [record]);
    }

    /// Appends a command in the same way, behind the settings that it depends on if they have changed.
    pub fn append_command(&self, words: Words<'_>, env: &Env<'_>) {
        let command = Record::Command { now_millis: env.now_millis, words: words.to_vec() };
        let mut state = self.shared.state.lock();
        if state.settings.as_ref() == Some(env.settings) {
            return self.push(&mut state, [command]);
        }
        let told: Vec<(&str, String)> = Settings::ALL
            .iter()
            .filter_map(|setting| Some((setting.name, env.settings.get(setting.name)?)))
            .collect();
        let settings = told.iter().map(|(name, value)| Record::Setting {
            name: name.as_bytes(),
            value: value.as_bytes(),
        });
        let hasher = env.settings.encode_hasher();
        let hasher = Record::Setting { name: HASHER, value: &hasher };
        self.push(&mut state, settings.chain([hasher, command]));
        state.settings = Some(env.settings.clone());
    }

    /// Appends commands that take effect together, and that no setting changes.
    pub fn append_together<'r>(
        &self,
        commands: impl Iterator<Item = Vec<&'r [u8]>>,
        env: &Env<'_>,
    ) {
        let records = commands.map(|words| Record::Command { now_millis: env.now_millis, words });
        self.push(&mut self.shared.state.lock(), records);
    }

    /// Begins a group: what is appended until its end is in the log as a whole or not at all. Nobody else appends
    /// meanwhile.
    #[must_use]
    pub fn begin_group(&self) -> Group<'_> {
        let mut state = self.shared.state.lock();
        let start = frame::begin(&mut state.waiting);
        state.open = Some(start);
        Group(self)
    }

    /// Tells whether the log takes nothing any more.
    pub fn is_ending(&self) -> bool {
        self.shared.state.lock().is_ending
    }

    /// Tells whether a group is open: what it changes is not at a position of its own yet.
    pub fn has_group(&self) -> bool {
        self.shared.state.lock().open.is_some()
    }

    /// Appends records that take effect together: a frame of their own, or more of the open one.
    fn push<'r>(
        &self,
        state: &mut State,
        records: impl IntoIterator<Item = impl std::borrow::Borrow<Record<'r>>>,
    ) {
        let start = match state.open {
            Some(_) => None,
            None => Some(frame::begin(&mut state.waiting)),
        };
        for record in records {
            record.borrow().encode(&mut state.waiting);
        }
        if let Some(start) = start {
            self.end_frame(state, start);
        }
    }

    fn end_frame(&self, state: &mut State, start: usize) {
        if frame::end(&mut state.waiting, start, state.end) {
            state.end += (state.waiting.len() - start) as u64;
        } else {
            unreachable!(
                "no command is so long, and values so large are not renamed while they are saved"
            );
        }
        // The writer sleeps while nothing waits; then it gathers for a moment by itself.
        if state.sync == Sync::Always || start == 0 || state.waiting.len() > MAX_WAITING_BYTES / 4 {
            self.shared.work.notify_one();
        }
    }

    /// Returns the position behind the last change.
    pub fn end(&self) -> u64 {
        self.shared.state.lock().end
    }

    /// Says why changes cannot be kept at the moment, if so.
    pub fn failed(&self) -> Option<String> {
        self.shared.state.lock().failed.clone()
    }

    /// Changes when is synced.
    pub fn set_sync(&self, sync: Sync) {
        self.shared.state.lock().sync = sync;
        self.shared.work.notify_one();
    }

    /// Waits until all changes so far are as safe as they must be before an answer.
    ///
    /// # Errors
    ///
    /// Why they are not, if the disk refuses. Whoever only `reads` is not held up by that: others' changes are in
    /// memory, and their makers are told.
    pub async fn settle(&self, reads: bool) -> Result<(), String> {
        let (end, must_wait) = {
            let state = self.shared.state.lock();
            let must_wait = state.sync == Sync::Always || state.waiting.len() > MAX_WAITING_BYTES;
            (state.end, must_wait)
        };
        if !must_wait {
            return Ok(());
        }
        let mut safe = self.shared.safe.subscribe();
        loop {
            if *safe.borrow_and_update() >= end {
                return Ok(());
            }
            if let Some(error) = self.failed() {
                return if reads { Ok(()) } else { Err(error) };
            }
            self.shared.work.notify_one();
            if safe.changed().await.is_err() {
                return Err("the log has ended".to_owned());
            }
        }
    }

    /// Waits until all changes so far are on the disk.
    ///
    /// # Errors
    ///
    /// Why they are not.
    pub fn sync(&self) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        let end = state.end;
        state.sync_wanted = state.sync_wanted.max(end);
        self.shared.work.notify_one();
        while state.synced < end {
            if let Some(error) = &state.failed {
                return Err(io::Error::other(error.clone()));
            }
            if state.is_ending {
                return Err(io::Error::other("the server ends"));
            }
            self.shared.done.wait_for(&mut state, IDLE);
        }
        Ok(())
    }

    /// Tells why no other file can be begun now, if so: what waits belongs into the present one.
    pub fn must_stay(&self) -> Option<String> {
        let state = self.shared.state.lock();
        let pending = || "the last log is still being ended".to_owned();
        state.failed.clone().or_else(|| state.rotate.is_some().then(pending))
    }

    /// Ends the present file and goes on with this one, which is [empty](create); returns the position between them.
    ///
    /// Whoever calls this sees to it that nobody appends meanwhile.
    pub fn rotate(&self, file: File) -> u64 {
        let mut state = self.shared.state.lock();
        let end = state.end;
        state.rotate = Some((end, file));
        // The next file tells them again.
        state.settings = None;
        drop(state);
        self.shared.work.notify_one();
        end
    }

    /// Writes and syncs what is left, and takes nothing any more.
    ///
    /// # Errors
    ///
    /// Why something was not kept.
    pub fn finish(&self) -> Result<(), String> {
        self.shared.state.lock().is_ending = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            _ = thread.join();
        }
        match self.failed() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// A group that is open, until this is gone.
#[derive(Debug)]
pub(crate) struct Group<'l>(&'l Log);

impl Drop for Group<'_> {
    /// Ends the group, even if a command of it has panicked: an open one would hold up the writer, and all behind it, for ever.
    fn drop(&mut self) {
        let mut state = self.0.shared.state.lock();
        let Some(start) = state.open.take() else { return };
        if state.waiting.len() == start + frame::HEAD_BYTES {
            state.waiting.truncate(start);
        } else {
            self.0.end_frame(&mut state, start);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        _ = self.finish();
    }
}

/// The thread that writes.
struct Writer {
    shared: Arc<Shared>,
    file: File,
    /// Up to here the stream is in the file, and up to here on the disk.
    written: u64,
    synced: u64,
    /// What a sync failed with: the system may have dropped what it could not write, so no later one proves
    /// anything about this file.
    lost: Option<String>,
}

impl Writer {
    fn run(mut self) {
        let mut bytes = Vec::new();
        let mut last_sync = Instant::now();
        loop {
            let (sync, sync_wanted, rotate, is_ending) = {
                let mut state = self.shared.state.lock();
                let is_behind = state.sync_wanted > state.synced;
                if state.waiting.is_empty()
                    && state.rotate.is_none()
                    && !state.is_ending
                    && !is_behind
                {
                    let wait =
                        if state.failed.is_some() { Duration::from_millis(200) } else { IDLE };
                    self.shared.work.wait_for(&mut state, wait);
                }
                if state.sync != Sync::Always
                    && !state.is_ending
                    && !is_behind
                    && state.waiting.len() < MAX_WAITING_BYTES / 4
                {
                    // More of them come.
                    self.shared.work.wait_for(&mut state, GATHER);
                }
                if bytes.is_empty() && state.open.is_none() {
                    std::mem::swap(&mut bytes, &mut state.waiting);
                }
                // What waits behind a failed write stays where it is, until that is done.
                let rotate = if bytes.is_empty() || state.waiting.is_empty() {
                    state.rotate.take()
                } else {
                    None
                };
                (state.sync, state.sync_wanted, rotate, state.is_ending)
            };
            let result = self.write(&mut bytes, rotate).and_then(|()| {
                let due = match sync {
                    Sync::Always => true,
                    Sync::EverySecond => last_sync.elapsed() >= Duration::from_secs(1),
                    Sync::Never => false,
                };
                if (due || is_ending || sync_wanted > self.synced) && self.synced < self.written {
                    self.sync()?;
                    last_sync = Instant::now();
                }
                Ok(())
            });
            self.tell(&result);
            if is_ending
                && (bytes.is_empty() && self.shared.state.lock().waiting.is_empty()
                    || result.is_err())
            {
                return;
            }
            if result.is_err() {
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(lost) = &self.lost {
            return Err(io::Error::other(format!("{lost}; start the server again")));
        }
        match self.file.sync_data() {
            Ok(()) => {
                self.synced = self.written;
                Ok(())
            }
            Err(error) => {
                self.lost = Some(format!("the disk lost what was written: {error}"));
                Err(error)
            }
        }
    }

    /// Writes frames; those that are in the file are taken off `bytes`.
    fn write(&mut self, bytes: &mut Vec<u8>, rotate: Option<(u64, File)>) -> io::Result<()> {
        if let Some((position, file)) = rotate {
            // What belongs before it was gathered before it.
            let before = (position - self.written) as usize;
            let later = bytes.split_off(before.min(bytes.len()));
            let ended = self.write(bytes, None).and_then(|()| self.sync());
            bytes.extend(later);
            // It says where it begins before it has anything to say.
            let begun = ended.and_then(|()| begin(&file, position));
            if let Err(error) = begun {
                self.shared.state.lock().rotate = Some((position, file));
                return Err(error);
            }
            self.file = file;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let start = self.file.stream_position()?;
        if let Err(error) = self.file.write_all(bytes) {
            // Nothing half-written stays behind: the next try begins where this one did.
            _ = self.file.set_len(start);
            _ = self.file.seek(io::SeekFrom::Start(start));
            return Err(error);
        }
        self.written += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }

    /// Tells those who wait how far it is, or why it is not.
    fn tell(&self, result: &io::Result<()>) {
        let mut state = self.shared.state.lock();
        let failed = result.as_ref().err().map(ToString::to_string);
        if let Some(error) = &failed
            && state.failed.is_none()
        {
            tracing::error!(%error, dir = %self.shared.dir.display(), "the log cannot be written: changes are refused");
        } else if failed.is_none() && state.failed.is_some() {
            tracing::info!("the log can be written again");
        }
        let has_changed = failed != state.failed;
        state.failed = failed;
        state.synced = self.synced;
        let safe = if state.sync == Sync::Always { self.synced } else { self.written };
        drop(state);
        self.shared.done.notify_all();
        self.shared.safe.send_if_modified(|before| {
            let is_new = *before < safe;
            *before = safe.max(*before);
            is_new || has_changed
        });
    }
}

/// How often the writer looks after itself.
const IDLE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_even_if_a_command_of_it_panics() {
        let dir = tempfile::tempdir().unwrap();
        let file = create(dir.path(), 1, 0).unwrap();
        let log = Log::start(dir.path(), file, 0, Sync::Always).unwrap();
        let run = || {
            let _group = log.begin_group();
            log.append(&Record::Command { now_millis: 0, words: vec![b"DEL", b"a"] });
            assert!(log.has_group());
            panic!("a command does");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert!(!log.has_group() && log.end() > 0);
        log.sync().unwrap();
        drop(log.begin_group());
        log.finish().unwrap();
    }
}
