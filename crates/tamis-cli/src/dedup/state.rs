//! What a run remembers for the next: a log of digests that survives being killed at any moment.
//!
//! The file is only ever appended to (`docs/formats/state.md` has the drawing):
//!
//! ```text
//! header | DATA … DATA MARK DATA … MARK DATA … DONE | DATA … DONE | DATA … MARK DATA … (torn)
//!          └────────── a finished run ────────────┘   └ another ┘   └ a run that was killed ┘
//! ```
//!
//! The order of writes is the whole protocol. A checkpoint first makes the output last, then appends
//! the digests of what it holds, then a MARK that says how far input and output were; a run's end
//! first gives the output its name, then appends DONE. So what the log holds is always a part of what
//! the output holds:
//!
//! * Killed before a MARK is on disk: the log is cut to the MARK before it, the output to the length
//!   that one states, and the input read again from there.
//! * Killed before the first MARK, or the output is gone (`> file` empties it, and a pipe keeps
//!   nothing): the log is cut to the last DONE, and the run starts over. It never happened.
//! * Killed between the renaming of the output and DONE: the output is complete, the run starts over
//!   and writes the same once more.
//!
//! * Killed after DONE but before its exit status was seen: the same command on unchanged files, with
//!   the same output file, is the same run. It is done if the output is still there, and is done again
//!   from where it started if `> file` has emptied it.
//!
//! A run that fails cuts the log to where it began. One process at a time holds the file's lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use tamis::Hasher;

use crate::exit::Failure;
use crate::output::Mark;

const MAGIC: [u8; 8] = *b"TAMISEEN";
/// The version of new files. Version 1 has no hasher of its own: its description ends with the seed of XXH3.
const VERSION: u8 = 2;
/// magic, version, width, length of the description.
const FIXED_BYTES: usize = 12;
/// Number of the hash function, seed or key.
const HASHER_BYTES: usize = 17;
const CHECKSUM_BYTES: usize = 8;
/// tag, payload length, checksum.
const BLOCK_HEADER_BYTES: usize = 16;
const MAX_DATA_BYTES: usize = 64 << 10;
const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// How much is read at once.
const BUFFER_BYTES: usize = 128 << 10;

const DATA: [u8; 4] = *b"DATA";
const MARK: [u8; 4] = *b"MARK";
const DONE: [u8; 4] = *b"DONE";

/// What an input is known by when it is given again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputId {
    /// Its path as typed.
    pub name: String,
    /// Size in bytes and time of the last change in nanoseconds, if it is a file.
    pub file: Option<(u64, u64)>,
}

/// How far a run was when its output and its digests were last on disk together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The inputs.
    pub inputs: Vec<InputId>,
    /// The input that was being read.
    pub input: usize,
    /// How many of its bytes, unpacked, were done with.
    pub at_bytes: u64,
    /// Where the output ended.
    pub output: Option<Mark>,
    /// Records read and written so far.
    pub records: u64,
    /// Of these, written.
    pub written: u64,
}

/// What a run asks of a state.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What records were reduced to digests.
    pub description: &'a str,
    /// The hasher of a new file.
    pub hasher: Hasher,
    /// Whether an old file must have that hasher.
    pub is_hasher_fixed: bool,
    /// The width of the digests of a new file.
    pub width_bits: u32,
    /// Whether an old file must have that width.
    pub is_width_fixed: bool,
}

/// An open state file, locked.
pub struct State {
    file: File,
    name: String,
    width_bytes: u8,
    hasher: Hasher,
    data_from: u64,
    // What a failure goes back to.
    cut: u64,
    end: u64,
    pending: Vec<u8>,
    is_done: bool,
}

/// A state file as it was found.
pub struct Found {
    /// The file, at the end of its last finished run.
    pub state: State,
    /// A later run that was killed, with where its part of the log ends.
    pub killed: Option<(Checkpoint, u64)>,
    /// The last finished run, with where its part of the log starts.
    pub last: Option<(Checkpoint, u64)>,
}

impl State {
    /// Opens the state file at `path`, or creates it. A new file is readable by its owner only, since it holds the key.
    ///
    /// # Errors
    ///
    /// A file that is used by another process, is no state file, is damaged, or was made by other
    /// options.
    pub fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Found, Failure> {
        let name = path.display().to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::new(format!("{name}: is not a regular file, so no state")));
        }
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failure)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{name}: another process is using this state; wait for it");
                return Err(Failure::new(message));
            }
            Err(TryLockError::Error(error)) => return Err(failure(error)),
        }
        let new = Header {
            width_bytes: (wanted.width_bits / 8) as u8,
            description: wanted.description.into(),
            hasher: wanted.hasher,
        };
        let bytes = new.to_bytes();
        let mut found = vec![0; bytes.len()];
        let len = read_up_to(&mut file, &mut found).map_err(failure)?;
        // The key of a file that was killed while it was being made is another one.
        let known_bytes = len.min(FIXED_BYTES + wanted.description.len());
        let is_new = len < bytes.len() && bytes.starts_with(&found[..known_bytes]);
        let (header, data_from) = if is_new {
            file.set_len(0).and_then(|()| file.rewind()).map_err(failure)?;
            // A file that existed, and was empty, has its own mode.
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .map_err(failure)?;
            file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(failure)?;
            crate::output::sync_folder(path).map_err(failure)?;
            (new, bytes.len() as u64)
        } else {
            let (header, end) = Header::read(&mut file, &name)?;
            header.check(&name, wanted)?;
            (header, end)
        };
        let width_bytes = header.width_bytes;
        let scan = scan(&mut file, &name, data_from, width_bytes)?;
        let end = scan.done_end;
        let state = State {
            file,
            name,
            width_bytes,
            hasher: header.hasher,
            data_from,
            cut: end,
            end,
            pending: Vec::new(),
            is_done: false,
        };
        Ok(Found { state, killed: scan.killed, last: scan.last })
    }

    /// Returns the width of the digests in bits.
    pub fn width_bits(&self) -> u32 {
        u32::from(self.width_bytes) * 8
    }

    /// Returns the hasher that makes the digests.
    pub fn hasher(&self) -> Hasher {
        self.hasher
    }

    /// Cuts off all that follows the last finished run; or all that follows `end`, if that is where
    /// the run goes on from.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn begin(&mut self, end: Option<u64>) -> Result<(), Failure> {
        self.cut = end.unwrap_or(self.cut);
        self.end = self.cut;
        let end = self.end;
        self.io(|file| file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)).map(drop)))
    }

    /// Hands out the bytes of all digests remembered, in batches.
    ///
    /// # Errors
    ///
    /// Those of the system and of `each`.
    pub fn replay(
        &mut self,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (from, end, name) = (self.data_from, self.end, self.name.clone());
        let failure = |error: io::Error| Failure::io(&name, &error);
        self.file.seek(SeekFrom::Start(from)).map_err(failure)?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, &self.file);
        let mut at = from;
        let mut block = Block::default();
        while at < end {
            if !block.read(&mut reader, at).map_err(failure)? {
                return Err(damaged(&name, at));
            }
            if block.tag == DATA {
                each(&block.payload)?;
            }
            at += block.len_bytes();
        }
        self.file.seek(SeekFrom::Start(end)).map(drop).map_err(failure)
    }

    /// Remembers digests, given as bytes.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn remember(&mut self, digests: &[u8]) -> Result<(), Failure> {
        for digests in digests.chunks(MAX_DATA_BYTES) {
            if self.pending.len() + digests.len() > MAX_DATA_BYTES {
                self.write_pending()?;
            }
            self.pending.extend_from_slice(digests);
        }
        Ok(())
    }

    /// Says that the output is on disk up to this checkpoint.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        let payload = serde_json::to_vec(checkpoint).expect("plain data");
        self.append(MARK, &payload)?;
        self.io(|file| file.sync_data())
    }

    /// Says that the run is over and its output has its name.
    ///
    /// # Errors
    ///
    /// A full disk.
    pub fn finish(mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        self.write_pending()?;
        let payload = serde_json::to_vec(checkpoint).expect("plain data");
        self.append(DONE, &payload)?;
        self.io(|file| file.sync_all())?;
        self.is_done = true;
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        let appended = self.append(DATA, &pending);
        pending.clear();
        self.pending = pending;
        appended
    }

    fn append(&mut self, tag: [u8; 4], payload: &[u8]) -> Result<(), Failure> {
        let block = block(tag, payload, self.end);
        self.end += block.len() as u64;
        self.io(|file| file.write_all(&block))
    }

    fn io<T>(&mut self, action: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T, Failure> {
        action(&mut self.file).map_err(|error| match Failure::io(&self.name, &error) {
            Failure::BrokenPipe => Failure::new(format!("{}: {error}", self.name)),
            failure => failure,
        })
    }
}

impl Drop for State {
    /// Forgets a run that did not finish.
    fn drop(&mut self) {
        if !self.is_done {
            // If even that fails, the next run does it: nothing after the cut is believed.
            self.file.set_len(self.cut).ok();
        }
    }
}

/// What stands at the start of a file.
struct Header {
    width_bytes: u8,
    description: String,
    hasher: Hasher,
}

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let len = u16::try_from(self.description.len()).unwrap_or(u16::MAX);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, self.width_bytes]);
        bytes.extend_from_slice(&len.to_le_bytes());
        bytes.extend_from_slice(&self.description.as_bytes()[..usize::from(len)]);
        let (function, key) = self.hasher.to_parts();
        bytes.push(function);
        bytes.extend_from_slice(&key);
        let checksum = Hasher::default().hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header of an old file, and returns it with the offset behind it.
    fn read(file: &mut File, name: &str) -> Result<(Self, u64), Failure> {
        let failure = |error: io::Error| Failure::io(name, &error);
        file.rewind().map_err(failure)?;
        let mut found = vec![0; FIXED_BYTES];
        if read_up_to(file, &mut found).map_err(failure)? < FIXED_BYTES || found[..8] != MAGIC {
            return Err(Failure::new(format!("{name}: is not a state file of 'tamis dedup'")));
        }
        let (version, width_bytes) = (found[8], found[9]);
        if !(1..=VERSION).contains(&version) {
            return Err(Failure::new(format!(
                "{name}: is a state of version {version}, and this program reads versions up to {VERSION}; use the \
                 newer tamis"
            )));
        }
        let text_end = FIXED_BYTES + usize::from(u16::from_le_bytes([found[10], found[11]]));
        let end = text_end + if version == 1 { 0 } else { HASHER_BYTES };
        found.resize(end + CHECKSUM_BYTES, 0);
        let rest = read_up_to(file, &mut found[FIXED_BYTES..]).map_err(failure)?;
        let (head, checksum) = found.split_at(end);
        let is_whole = FIXED_BYTES + rest == found.len();
        if !is_whole || checksum != Hasher::default().hash(head).to_le_bytes() {
            return Err(damaged(name, 0));
        }
        if !matches!(width_bytes, 8 | 16) {
            return Err(damaged(name, 9));
        }
        let mut description = String::from_utf8_lossy(&head[FIXED_BYTES..text_end]).into_owned();
        let hasher = if version == 1 {
            let seed = description
                .rsplit_once(", hash xxh3 seed ")
                .and_then(|(text, seed)| Some((text.to_owned(), seed.parse().ok()?)));
            let (text, seed) = seed.ok_or_else(|| damaged(name, FIXED_BYTES as u64))?;
            description = text;
            Hasher::xxh3(seed)
        } else {
            let key = head[text_end + 1..].try_into().expect("HASHER_BYTES follow the text");
            Hasher::from_parts(head[text_end], key).ok_or_else(|| damaged(name, text_end as u64))?
        };
        Ok((Self { width_bytes, description, hasher }, found.len() as u64))
    }

    /// Refuses the state of a run with other options.
    fn check(&self, name: &str, wanted: &Wanted<'_>) -> Result<(), Failure> {
        let (held, asked) = (&self.description, wanted.description);
        if held != asked {
            return Err(Failure::new(format!(
                "{name}: remembers '{held}', but this run asks for '{asked}'; use the same options \
                 or another state"
            )));
        }
        if wanted.is_hasher_fixed && self.hasher != wanted.hasher {
            return Err(Failure::new(format!(
                "{name}: hashes by {}, not by {}; leave out --seed or use another state",
                self.hasher, wanted.hasher
            )));
        }
        let width_bits = u32::from(self.width_bytes) * 8;
        if wanted.is_width_fixed && width_bits != wanted.width_bits {
            return Err(Failure::new(format!(
                "{name}: holds {width_bits}-bit hashes, not {}-bit ones; leave out --hash-bits \
                 or use another state",
                wanted.width_bits
            )));
        }
        Ok(())
    }
}

fn damaged(name: &str, at: u64) -> Failure {
    Failure::new(format!(
        "{name}: the state is damaged at byte {at}; restore it from a copy, or remove it to start over"
    ))
}

fn block(tag: [u8; 4], payload: &[u8], at: u64) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("payloads are small");
    let mut block = Vec::with_capacity(BLOCK_HEADER_BYTES + payload.len());
    block.extend_from_slice(&tag);
    block.extend_from_slice(&len.to_le_bytes());
    block.extend_from_slice(&checksum(tag, payload, at).to_le_bytes());
    block.extend_from_slice(payload);
    block
}

/// The position is the seed, so that a block is valid in its own place only.
fn checksum(tag: [u8; 4], payload: &[u8], at: u64) -> u64 {
    Hasher::xxh3(at ^ u64::from(u32::from_le_bytes(tag)) << 32).hash(payload)
}

/// A block as it is read back.
#[derive(Default)]
struct Block {
    tag: [u8; 4],
    payload: Vec<u8>,
}

impl Block {
    /// Reads the block at `at`; false if there is no valid one.
    fn read(&mut self, reader: &mut impl Read, at: u64) -> io::Result<bool> {
        let mut header = [0; BLOCK_HEADER_BYTES];
        if read_up_to(reader, &mut header)? < BLOCK_HEADER_BYTES {
            return Ok(false);
        }
        self.tag = header[..4].try_into().expect("four bytes");
        let len = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        let is_possible = match self.tag {
            DATA => len <= MAX_DATA_BYTES,
            MARK | DONE => len <= MAX_PAYLOAD_BYTES,
            _ => false,
        };
        if !is_possible {
            return Ok(false);
        }
        self.payload.resize(len, 0);
        let is_whole = read_up_to(reader, &mut self.payload)? == len;
        Ok(is_whole && checksum(self.tag, &self.payload, at).to_le_bytes() == header[8..])
    }

    fn len_bytes(&self) -> u64 {
        (BLOCK_HEADER_BYTES + self.payload.len()) as u64
    }
}

struct Scan {
    done_end: u64,
    killed: Option<(Checkpoint, u64)>,
    last: Option<(Checkpoint, u64)>,
}

/// Reads the whole log, and finds where its last finished run and its last checkpoint end.
fn scan(file: &mut File, name: &str, from: u64, width_bytes: u8) -> Result<Scan, Failure> {
    let failure = |error: io::Error| Failure::io(name, &error);
    file.seek(SeekFrom::Start(from)).map_err(failure)?;
    let mut scan = Scan { done_end: from, killed: None, last: None };
    let mut block = Block::default();
    let mut at = from;
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, &*file);
    while block.read(&mut reader, at).map_err(failure)? {
        let end = at + block.len_bytes();
        match block.tag {
            DATA if !block.payload.len().is_multiple_of(usize::from(width_bytes)) => {
                return Err(damaged(name, at));
            }
            MARK | DONE => {
                let checkpoint = serde_json::from_slice(&block.payload);
                let checkpoint = checkpoint.map_err(|_| damaged(name, at))?;
                if block.tag == MARK {
                    scan.killed = Some((checkpoint, end));
                } else {
                    scan.last = Some((checkpoint, scan.done_end));
                    (scan.done_end, scan.killed) = (end, None);
                }
            }
            _ => {}
        }
        at = end;
    }
    // A torn tail holds no valid end of a run or checkpoint: those were on disk before more followed.
    drop(reader);
    if holds_marker(file, at).map_err(failure)? {
        return Err(damaged(name, at));
    }
    Ok(scan)
}

/// Tells whether a valid MARK or DONE starts after byte `from`.
fn holds_marker(file: &mut File, from: u64) -> io::Result<bool> {
    const OVERLAP: usize = 3;
    let finders = [memmem::Finder::new(&MARK), memmem::Finder::new(&DONE)];
    let mut window = vec![0; BUFFER_BYTES];
    let mut at = from;
    let mut block = Block::default();
    loop {
        file.seek(SeekFrom::Start(at))?;
        let len = read_up_to(file, &mut window)?;
        for place in finders.iter().flat_map(|finder| finder.find_iter(&window[..len])) {
            let place = at + place as u64;
            file.seek(SeekFrom::Start(place))?;
            if block.read(file, place)? {
                return Ok(true);
            }
        }
        if len < window.len() {
            return Ok(false);
        }
        at += (len - OVERLAP) as u64;
    }
}

/// Fills `buffer` as far as there are bytes.
fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    const WANTED: Wanted<'_> = Wanted {
        description: "record",
        hasher: Hasher::keyed([1, 2]),
        is_hasher_fixed: false,
        width_bits: 64,
        is_width_fixed: false,
    };

    fn open(path: &Path) -> Result<Found, Failure> {
        State::open(path, &WANTED)
    }

    fn digests(state: &mut State) -> Vec<u8> {
        let mut all = Vec::new();
        state
            .replay(|bytes| {
                all.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
        all
    }

    /// One finished run of digest 1, then a killed one: digest 2, a checkpoint, digest 3.
    fn killed(folder: &Path) -> PathBuf {
        let path = folder.join("state");
        let mut state = open(&path).unwrap().state;
        state.begin(None).unwrap();
        state.remember(&1_u64.to_le_bytes()).unwrap();
        state.finish(&Checkpoint::default()).unwrap();
        let mut state = open(&path).unwrap().state;
        state.begin(None).unwrap();
        state.remember(&2_u64.to_le_bytes()).unwrap();
        state.checkpoint(&Checkpoint { at_bytes: 77, ..Checkpoint::default() }).unwrap();
        state.remember(&3_u64.to_le_bytes()).unwrap();
        state.write_pending().unwrap();
        std::mem::forget(state.file.try_clone().unwrap());
        let copy = folder.join("copy");
        fs::copy(&path, &copy).unwrap();
        copy
    }

    #[test]
    fn a_killed_run_goes_on_or_starts_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = killed(folder.path());
        let mut found = open(&path).unwrap();
        let (checkpoint, end) = found.killed.unwrap();
        assert_eq!(checkpoint.at_bytes, 77);
        found.state.begin(Some(end)).unwrap();
        assert_eq!(digests(&mut found.state), [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat());
        drop(found.state);
        let mut found = open(&path).unwrap();
        assert!(found.killed.is_some(), "a failure keeps the checkpoint it began with");
        found.state.begin(None).unwrap();
        assert_eq!(digests(&mut found.state), 1_u64.to_le_bytes());
    }

    #[test]
    fn a_log_cut_anywhere_is_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let whole = fs::read(killed(folder.path())).unwrap();
        let path = folder.path().join("cut");
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let mut found = open(&path).unwrap_or_else(|error| panic!("cut at {len}: {error:?}"));
            found.state.begin(None).unwrap();
            assert!([0, 8].contains(&digests(&mut found.state).len()));
        }
    }

    #[test]
    fn damage_before_the_last_marker_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let whole = fs::read(killed(folder.path())).unwrap();
        let marker = memmem::rfind(&whole, &MARK).unwrap();
        let path = folder.path().join("flipped");
        for at in 0..marker {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert!(open(&path).is_err(), "a flipped bit in byte {at}");
            assert_eq!(fs::read(&path).unwrap(), flipped, "a refused file is untouched");
        }
    }

    #[test]
    fn a_state_of_version_1_keeps_the_seed_in_its_description() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let text = b"record, hash xxh3 seed 7";
        let mut bytes = [&MAGIC[..], &[1, 8, text.len() as u8, 0], text].concat();
        bytes.extend(Hasher::default().hash(&bytes).to_le_bytes());
        let at = bytes.len() as u64;
        bytes.extend(block(DATA, &5_u64.to_le_bytes(), at));
        let end = bytes.len() as u64;
        let checkpoint = serde_json::to_vec(&Checkpoint::default()).unwrap();
        bytes.extend(block(DONE, &checkpoint, end));
        fs::write(&path, &bytes).unwrap();
        let mut state = open(&path).unwrap().state;
        assert_eq!(state.hasher(), Hasher::xxh3(7));
        state.begin(None).unwrap();
        assert_eq!(digests(&mut state), 5_u64.to_le_bytes());
    }

    #[test]
    fn a_second_process_and_other_options_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let found = open(&path).unwrap();
        assert!(
            matches!(open(&path), Err(Failure::Message(line)) if line.contains("another process"))
        );
        drop(found);
        let other = State::open(&path, &Wanted { description: "field 2", ..WANTED });
        assert!(
            matches!(other, Err(Failure::Message(line)) if line.contains("remembers 'record'"))
        );
        let wide = Wanted { width_bits: 128, ..WANTED };
        assert_eq!(State::open(&path, &wide).unwrap().state.width_bits(), 64);
        let wide = State::open(&path, &Wanted { is_width_fixed: true, ..wide });
        assert!(matches!(wide, Err(Failure::Message(line)) if line.contains("64-bit")));
        let seeded = Wanted { hasher: Hasher::xxh3(7), ..WANTED };
        assert_eq!(State::open(&path, &seeded).unwrap().state.hasher(), WANTED.hasher);
        let seeded = State::open(&path, &Wanted { is_hasher_fixed: true, ..seeded });
        assert!(matches!(seeded, Err(Failure::Message(line)) if line.contains("xxh3 seed 7")));
        fs::write(&path, "a text that is no state file").unwrap();
        assert!(
            matches!(open(&path), Err(Failure::Message(line)) if line.contains("is not a state"))
        );
    }
}
