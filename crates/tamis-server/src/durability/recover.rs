//! After a start: the newest snapshot, and all changes behind it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use tamis_commands::{Env, Run, Settings, Value, find};
use tamis_resp::Protocol;

use super::error::DurabilityError;
use super::record::{HASHER, Record};
use super::{frame, log, snapshot};
use crate::host;
use crate::keyspace::Keyspace;
use crate::session::Keys;

/// What was found.
pub(crate) struct Recovered {
    /// Held as long as the server uses the folder.
    pub lock: File,
    /// The number of the log, and of the snapshot before it if there is one.
    pub number: u64,
    /// The log, which stands behind its last whole frame, and that frame's position.
    pub file: File,
    pub end: u64,
    /// Where that log begins.
    pub began: u64,
    /// How many changes the logs had.
    pub changes: u64,
    /// Bytes of a torn end that were cut off.
    pub cut_bytes: u64,
}

/// Fills a keyspace with what the folder has, which is made if there is none.
///
/// # Errors
///
/// [`DurabilityError`] if the folder is in use or its files are damaged: they are left as they are.
pub(crate) fn recover(dir: &Path, keyspace: &Keyspace) -> Result<Recovered, DurabilityError> {
    std::fs::create_dir_all(dir).map_err(DurabilityError::io(dir))?;
    let lock = lock(dir)?;
    let (snapshots, logs) = numbers(dir)?;
    let newest = snapshots.iter().max().copied();
    let first = newest.or_else(|| logs.iter().min().copied()).unwrap_or(0);
    let mut replay = Replay {
        keyspace,
        settings: Settings::default(),
        applied: HashMap::new(),
        gathered: Gathered::default(),
        changes: 0,
    };
    // Without a snapshot the first log has everything from the beginning.
    let mut position = Some(0);
    if let Some(number) = newest {
        let keys = keyspace.shared();
        let begins = snapshot::load(&snapshot::path(dir, number), |entry| {
            keys.write(&entry.key, 0, |value| *value = Some(entry.value));
            keys.expiry(&entry.key, 0, |at| *at = entry.expires_millis);
            replay.applied.insert(entry.key, entry.applied);
        })?;
        position = Some(begins);
    }
    let mut current = None;
    let (mut cut_bytes, mut began) = (0, position.unwrap_or(0));
    for number in first.. {
        let path = log::path(dir, number);
        if !path.exists() {
            break;
        }
        // One that follows may have been made, but the server ended before it went on with it.
        let is_last = !has_begun(&log::path(dir, number + 1))?;
        let read =
            read_log(&path, is_last, position, |position, record| replay.apply(position, &record))?;
        replay.insert_gathered().map_err(|what| {
            let at = log::HEAD_BYTES + (read.end - read.began);
            DurabilityError::Damaged { path: path.clone(), at, what }
        })?;
        cut_bytes = read.cut_bytes;
        began = read.began;
        position = Some(read.end);
        current = Some((number, read.file));
    }
    if let (Some(&last), Some((read, _))) = (logs.iter().max(), &current)
        && last > *read
    {
        let path = log::path(dir, read + 1);
        let error = io::Error::new(io::ErrorKind::NotFound, "a log between others is missing");
        return Err(DurabilityError::Io { path, error });
    }
    let end = position.unwrap_or(0);
    let (number, file) = match current {
        Some(current) => current,
        // A snapshot whose log is gone would lose what came after it.
        None if newest.is_some() => {
            let error =
                io::Error::new(io::ErrorKind::NotFound, "the log of the snapshot is missing");
            return Err(DurabilityError::Io { path: log::path(dir, first), error });
        }
        None => (first, log::create(dir, first, end)?),
    };
    forget_before(dir, first, &snapshots, &logs);
    Ok(Recovered { lock, number, file, end, began, changes: replay.changes, cut_bytes })
}

/// Tells whether a log is there that a server went on with.
fn has_begun(path: &Path) -> Result<bool, DurabilityError> {
    let mut head = [0; log::HEAD_BYTES as usize];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    match read {
        Ok(()) => Ok(head[12..] != log::NOT_BEGUN.to_le_bytes()),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof) =>
        {
            Ok(false)
        }
        Err(error) => Err(DurabilityError::Io { path: path.to_owned(), error }),
    }
}

fn lock(dir: &Path) -> Result<File, DurabilityError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(DurabilityError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => {
            Err(DurabilityError::Locked { path: dir.to_owned() })
        }
        Err(std::fs::TryLockError::Error(error)) => Err(DurabilityError::Io { path, error }),
    }
}

/// Returns the numbers of the snapshots and of the logs in the folder. What a snapshot that was not finished left is
/// removed.
fn numbers(dir: &Path) -> Result<(Vec<u64>, Vec<u64>), DurabilityError> {
    let (mut snapshots, mut logs) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(dir).map_err(DurabilityError::io(dir))? {
        let entry = entry.map_err(DurabilityError::io(dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = |prefix: &str, suffix: &str| {
            name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse::<u64>().ok()
        };
        snapshots.extend(number("snapshot-", ".tamis"));
        logs.extend(number("log-", ".tamis"));
        if number("snapshot-", ".part").is_some() {
            _ = std::fs::remove_file(entry.path());
        }
    }
    Ok((snapshots, logs))
}

/// Removes what the snapshot of this number and its log replace.
///
/// # Errors
///
/// [`DurabilityError`] if the folder cannot be read.
pub(crate) fn forget(dir: &Path, number: u64) -> Result<(), DurabilityError> {
    let (snapshots, logs) = numbers(dir)?;
    forget_before(dir, number, &snapshots, &logs);
    Ok(())
}

fn forget_before(dir: &Path, number: u64, snapshots: &[u64], logs: &[u64]) {
    let older = |all: &[u64]| all.iter().copied().filter(|&it| it < number).collect::<Vec<_>>();
    for number in older(snapshots) {
        _ = std::fs::remove_file(snapshot::path(dir, number));
    }
    for number in older(logs) {
        _ = std::fs::remove_file(log::path(dir, number));
    }
}

/// A log that was read.
struct Read {
    file: File,
    began: u64,
    end: u64,
    cut_bytes: u64,
}

/// Bytes that are read of a log at once; a frame may be longer.
const PIECE_BYTES: usize = 4 << 20;

/// Reads a log, which must go on at `position`. Only the last one may have a torn end, which is cut off.
fn read_log(
    path: &Path,
    is_last: bool,
    position: Option<u64>,
    mut each: impl FnMut(u64, Record<'_>) -> Result<(), &'static str>,
) -> Result<Read, DurabilityError> {
    let fail = |error| DurabilityError::Io { path: path.to_owned(), error };
    let damaged = |at, what| DurabilityError::Damaged { path: path.to_owned(), at, what };
    let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(fail)?;
    let total = file.metadata().map_err(fail)?.len();
    let mut head = [0; log::HEAD_BYTES as usize];
    let is_begun = total >= log::HEAD_BYTES && {
        file.read_exact(&mut head).map_err(fail)?;
        head[12..] != log::NOT_BEGUN.to_le_bytes()
    };
    if !is_begun && is_last {
        // The server ended before it went on with this one: as if it had just been made.
        let end = position.unwrap_or(0);
        let number =
            path.file_stem().and_then(|stem| stem.to_str()?.strip_prefix("log-")?.parse().ok());
        let dir = path.parent().expect("a log is in a folder");
        let file = log::create(dir, number.expect("its name has a number"), end)?;
        return Ok(Read { file, began: end, end, cut_bytes: 0 });
    }
    if &head[..8] != log::MAGIC || head[8..12] != log::VERSION.to_le_bytes() {
        return Err(DurabilityError::Version { path: path.to_owned() });
    }
    let begins = u64::from_le_bytes(head[12..].try_into().expect("eight bytes"));
    if position.is_some_and(|position| position != begins) {
        return Err(damaged(12, "it does not go on where the one before it ends"));
    }
    // The file's byte at which what is in `bytes` from `read` on begins, less that.
    let (mut bytes, mut read, mut at) = (Vec::new(), 0, log::HEAD_BYTES);
    loop {
        let frame_position = begins + (at - log::HEAD_BYTES);
        if let Some((records, len)) = frame::split(&bytes[read..], frame_position) {
            let mut rest = records;
            while !rest.is_empty() {
                let record =
                    Record::decode(&mut rest).ok_or(damaged(at, "a change has no meaning"))?;
                each(frame_position, record).map_err(|what| damaged(at, what))?;
            }
            read += len;
            at += len as u64;
            continue;
        }
        // Cut here, or only not read so far.
        let unread = total - at - (bytes.len() - read) as u64;
        if unread == 0 {
            break;
        }
        bytes.drain(..read);
        read = 0;
        let wanted = unread.min(PIECE_BYTES.max(bytes.len()) as u64);
        let before = bytes.len();
        (&mut file).take(wanted).read_to_end(&mut bytes).map_err(fail)?;
        if bytes.len() == before {
            break;
        }
    }
    let left = &bytes[read..];
    let end = begins + (at - log::HEAD_BYTES);
    if !left.is_empty() {
        if !is_last || has_frame_behind(left, end) {
            return Err(damaged(at, "the checksum of a change is wrong"));
        }
        // Not thrown away: somebody may want to see what it was.
        std::fs::write(path.with_extension("torn"), left).map_err(fail)?;
        file.set_len(at).map_err(fail)?;
        file.sync_all().map_err(fail)?;
    }
    file.seek(SeekFrom::Start(at)).map_err(fail)?;
    Ok(Read { file, began: begins, end, cut_bytes: left.len() as u64 })
}

/// Tells whether a whole frame stands somewhere behind a bad one: then it is no torn end.
fn has_frame_behind(left: &[u8], position: u64) -> bool {
    let is_frame = |at: usize| {
        left.get(at..).is_some_and(|bytes| frame::split(bytes, position + at as u64).is_some())
    };
    // Most places have no head, and where the length is sound the next frame is known.
    frame::length(left, position).is_some_and(|len| is_frame(frame::HEAD_BYTES + len))
        || (1..left.len())
            .any(|at| frame::length(&left[at..], position + at as u64).is_some() && is_frame(at))
}

/// Does changes again.
struct Replay<'k> {
    keyspace: &'k Keyspace,
    /// As they were when the commands ran.
    settings: Settings,
    /// Up to which position a key of the snapshot has the changes already.
    applied: HashMap<Vec<u8>, u64>,
    gathered: Gathered,
    changes: u64,
}

/// Items of neighbouring changes of a key, which are inserted as one batch: a filter that is in no cache takes large ones in two
/// thirds of the time.
#[derive(Default)]
struct Gathered {
    key: Vec<u8>,
    /// When the first of them came. As none came after the key's end, any of their times would do.
    now_millis: u64,
    hashes: Vec<u64>,
}

/// Items that are gathered at most.
const MAX_GATHERED: usize = 1 << 20;

impl Replay<'_> {
    /// Does a change again, unless the snapshot has it.
    fn apply(&mut self, position: u64, record: &Record<'_>) -> Result<(), &'static str> {
        self.changes += 1;
        if !matches!(record, Record::Inserted { .. }) {
            self.insert_gathered()?;
        }
        let is_done = |key: &[u8]| self.applied.get(key).is_some_and(|&applied| position < applied);
        match record {
            Record::Inserted { key, .. } if is_done(key) => Ok(()),
            Record::Inserted { now_millis, key, hashes } => self.gather(*now_millis, key, hashes),
            Record::Setting { name: HASHER, value } => {
                let is_known = self.settings.decode_hasher(value);
                is_known.then_some(()).ok_or("there is no such hash function")
            }
            Record::Setting { name, value } => {
                let name = std::str::from_utf8(name).map_err(|_| "a setting has no name")?;
                if name == Settings::ALL[0].name {
                    // All of them follow. Two limit each other, so those from before must not.
                    self.settings =
                        Settings { cf_bucket_size: 1, cf_capacity: 1 << 30, ..Settings::default() };
                }
                self.settings.set(name, value).map_err(|_| "a setting has no such value")
            }
            Record::Image { key, expires_millis, image } => {
                if !is_done(key) {
                    let value = Value::read_image(&mut &image[..], image.len() as u64);
                    let value = value.map_err(|_| "a value cannot be read")?;
                    let keys = self.keyspace.shared();
                    keys.write(key, 0, |slot| *slot = Some(value));
                    keys.expiry(key, 0, |at| *at = *expires_millis);
                }
                Ok(())
            }
            Record::Command { now_millis, words } => {
                let command = words.first().and_then(|name| find(name));
                let command = command.ok_or("there is no such command")?;
                if !command.arity.takes(words.len()) {
                    return Err("a command has too few or too many words");
                }
                let env = Env {
                    settings: &self.settings,
                    protocol: Protocol::Resp2,
                    now_millis: *now_millis,
                    items_per_second: None,
                };
                if command.name == "FLUSHALL" || command.name == "FLUSHDB" {
                    // Keys that the snapshot has from after it stay.
                    let kept: Vec<Vec<u8>> = self
                        .applied
                        .iter()
                        .filter(|(_, applied)| position < **applied)
                        .map(|(key, _)| key.clone())
                        .collect();
                    self.keyspace.exclusive().clear_but(&kept);
                    return Ok(());
                }
                if command.keys.of(words).any(is_done) {
                    return Ok(());
                }
                match command.run {
                    Run::Write(run) => {
                        let key = words[command.keys.first];
                        let keys = self.keyspace.shared();
                        keys.change(key, *now_millis, |value| run(value, words, &env));
                    }
                    Run::Read(_) | Run::Answer(_) => return Err("a command changes nothing"),
                    Run::Host => {
                        let alone = self.keyspace.exclusive();
                        host::redo(command, words, &env, Keys::Exclusive(&alone))
                            .ok_or("a command changes nothing")?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Has items wait, behind those of the same key.
    fn gather(&mut self, now_millis: u64, key: &[u8], hashes: &[u64]) -> Result<(), &'static str> {
        let len = self.gathered.hashes.len();
        if self.gathered.key != key || len + hashes.len() > MAX_GATHERED {
            self.insert_gathered()?;
        }
        if self.gathered.hashes.is_empty() {
            self.gathered.key = key.to_vec();
            self.gathered.now_millis = now_millis;
        }
        self.gathered.hashes.extend_from_slice(hashes);
        Ok(())
    }

    /// Inserts the items that wait.
    fn insert_gathered(&mut self) -> Result<(), &'static str> {
        let Gathered { key, now_millis, hashes } = &mut self.gathered;
        if hashes.is_empty() {
            return Ok(());
        }
        let inserted = self.keyspace.shared().write(key, *now_millis, |value| {
            // Without a filter there: it was taken away, as comes later in the log.
            let Some(Value::Bloom(filter)) = value else { return Ok(()) };
            filter.restore_hashes(hashes)
        });
        hashes.clear();
        inserted.map_err(|_| "there is not enough memory for it")
    }
}
