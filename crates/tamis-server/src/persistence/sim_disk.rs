//! A simulated disk for the model test. A seed determines what a crash leaves on it.
//!
//! A write goes to the page cache. A sync makes it durable. A power loss keeps any subset of the
//! unsynced pages, tears one of them, and keeps any length of a file that grew. File names become
//! durable when their folder is synced. A power loss keeps any prefix of the later changes of each
//! name, and no name in a folder whose own name is lost. A killed process loses nothing of the page
//! cache.
//!
//! A test can make an operation fail. A failed write leaves any part of its bytes. A failed sync
//! leaves the pages in the cache but marks them as written: no later sync writes them, as on Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::persistence::disk::{Disk, DiskFile};

/// The page size in bytes. It is small, so that frames span several pages.
const PAGE: usize = 32;

/// A random number generator with a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Returns true once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Debug, Default)]
struct Inode {
    cache: Vec<u8>,
    durable: Vec<u8>,
    /// Pages of the cache that are not on the disk.
    dirty: BTreeSet<usize>,
}

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Changes of names since the last sync of their folder.
    renamed: Vec<(PathBuf, Option<usize>)>,
    /// Folders below the first one.
    dirs: BTreeSet<PathBuf>,
    /// Hard links fail.
    refuses_links: bool,
    /// Counts operations that change the disk.
    operations: usize,
    /// The operation that fails, and its error.
    fault: Option<(usize, Fault)>,
    /// From this operation on no operation takes effect: the process or the machine has stopped.
    ends_at: Option<usize>,
    /// File bytes from this offset on cannot be read.
    unreadable_from: Option<u64>,
    /// The number of bytes read.
    bytes_read: u64,
}

/// How an operation fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Io,
    Full,
}

/// A disk. Clones share the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct SimDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

/// The result of an operation.
enum Step {
    Runs,
    Fails(io::Error),
}

impl State {
    /// Counts an operation and returns whether it runs.
    fn step(&mut self) -> Step {
        let now = self.operations;
        self.operations += 1;
        if self.ends_at.is_some_and(|at| now >= at) {
            return Step::Fails(io::Error::other("the process has ended"));
        }
        match self.fault {
            Some((at, Fault::Io)) if at == now => Step::Fails(io::Error::from_raw_os_error(5)),
            Some((at, Fault::Full)) if at == now => Step::Fails(io::Error::from_raw_os_error(28)),
            _ => Step::Runs,
        }
    }

    fn has_ended(&self) -> bool {
        self.ends_at.is_some_and(|at| self.operations > at)
    }

    fn name(&mut self, path: &Path, inode: Option<usize>) {
        match inode {
            Some(inode) => _ = self.names.insert(path.to_owned(), inode),
            None => _ = self.names.remove(path),
        }
        self.renamed.push((path.to_owned(), inode));
    }
}

impl SimDisk {
    /// Returns how many operations have changed the disk.
    pub fn operations(&self) -> usize {
        self.0.lock().operations
    }

    /// Makes an operation fail.
    pub fn fail_at(&self, operation: usize, fault: Fault) {
        self.0.lock().fault = Some((operation, fault));
    }

    /// Ends the process before an operation: neither it nor any later one takes effect.
    pub fn end_at(&self, operation: usize) {
        self.0.lock().ends_at = Some(operation);
    }

    /// Makes all file bytes from an offset on unreadable.
    pub fn fail_reads_from(&self, offset: u64) {
        self.0.lock().unreadable_from = Some(offset);
    }

    /// Returns how many bytes were read.
    pub fn bytes_read(&self) -> u64 {
        self.0.lock().bytes_read
    }

    /// Makes hard links fail from now on.
    pub fn refuse_links(&self) {
        self.0.lock().refuses_links = true;
    }

    /// Tests whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.0.lock().has_ended()
    }

    /// Frees the memory of all files.
    pub fn erase(&self) {
        *self.0.lock() = State::default();
    }

    /// Returns the disk as a new process finds it. With a `power_loss`, unsynced data is partly
    /// lost.
    pub fn after_crash(&self, power_loss: Option<&mut Random>) -> Self {
        let state = self.0.lock();
        let Some(random) = power_loss else {
            let names = state.names.clone();
            let left = State {
                inodes: state.inodes.clone(),
                durable_names: state.durable_names.clone(),
                renamed: state.renamed.clone(),
                dirs: state.dirs.clone(),
                refuses_links: state.refuses_links,
                names,
                ..State::default()
            };
            return Self(Arc::new(Mutex::new(left)));
        };
        let mut names = state.durable_names.clone();
        let paths: BTreeSet<&PathBuf> = state.renamed.iter().map(|(path, _)| path).collect();
        for path in paths {
            let changes: Vec<_> = state.renamed.iter().filter(|(its, _)| its == path).collect();
            let kept = random.below(changes.len() + 1);
            if let Some((_, inode)) = kept.checked_sub(1).map(|last| changes[last]) {
                match inode {
                    Some(inode) => _ = names.insert(path.clone(), *inode),
                    None => _ = names.remove(path),
                }
            }
        }
        let dirs: BTreeSet<PathBuf> =
            state.dirs.iter().filter(|dir| names.contains_key(*dir)).cloned().collect();
        let is_lost = |dir: &Path| state.dirs.contains(dir) && !dirs.contains(dir);
        names.retain(|path, _| !path.parent().is_some_and(is_lost));
        let inodes: Vec<Inode> =
            state.inodes.iter().map(|inode| inode.after_power_loss(random)).collect();
        let left = State {
            inodes,
            names: names.clone(),
            durable_names: names,
            dirs,
            refuses_links: state.refuses_links,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(left)))
    }
}

impl Inode {
    fn after_power_loss(&self, random: &mut Random) -> Self {
        let (short, long) = (self.durable.len(), self.cache.len());
        let len = if self.dirty.is_empty() {
            short
        } else {
            short.min(long) + random.below(short.abs_diff(long) + 1)
        };
        let mut bytes = self.durable.clone();
        bytes.resize(len, 0);
        let torn = random.below(self.dirty.len() + 1);
        for (i, &page) in self.dirty.iter().enumerate() {
            let start = (page * PAGE).min(len).min(long);
            let mut end = (page * PAGE + PAGE).min(len).min(long);
            if i == torn {
                end = start + random.below(end - start + 1);
            } else if random.one_in(2) {
                continue;
            }
            bytes[start..end].copy_from_slice(&self.cache[start..end]);
        }
        Self { cache: bytes.clone(), durable: bytes, dirty: BTreeSet::new() }
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if self.cache.len() < end {
            self.cache.resize(end, 0);
        }
        self.cache[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / PAGE..end.div_ceil(PAGE));
    }
}

impl Disk for SimDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        if let Step::Fails(error) = state.step() {
            return Err(error);
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.name(path, Some(inode));
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.0.lock();
        let inode = *state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let step = state.step();
        // A rename that reports an error may have taken effect.
        let happens = !state.has_ended()
            && (matches!(step, Step::Runs) || state.operations.is_multiple_of(2));
        if happens {
            let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
            state.name(from, None);
            state.name(to, Some(inode));
        }
        if let Step::Fails(error) = step { Err(error) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        if let Step::Fails(error) = state.step() {
            return Err(error);
        }
        state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        state.name(path, None);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        if let Step::Fails(error) = state.step() {
            return Err(error);
        }
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.name(path, Some(inode));
        state.dirs.insert(path.to_owned());
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let step = state.step();
        if state.refuses_links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // A link that reports an error may exist.
        let happens = !state.has_ended()
            && (matches!(step, Step::Runs) || state.operations.is_multiple_of(2));
        if happens {
            let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
            if state.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.name(to, Some(inode));
        }
        if let Step::Fails(error) = step { Err(error) } else { Ok(()) }
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        let here = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        if let Step::Fails(error) = state.step() {
            return Err(error);
        }
        let is_here = |path: &Path| path.parent() == Some(dir);
        let here: Vec<(PathBuf, usize)> = state
            .names
            .iter()
            .filter(|(path, _)| is_here(path))
            .map(|(path, inode)| (path.clone(), *inode))
            .collect();
        state.durable_names.retain(|path, _| !is_here(path));
        state.durable_names.extend(here);
        state.renamed.retain(|(path, _)| !is_here(path));
        Ok(())
    }

    fn is_at(&self, path: &Path, file: &dyn DiskFile) -> bool {
        let found = self.0.lock().names.get(path).map(|inode| (0, *inode as u64));
        found.is_some() && found == file.identity()
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.disk.0.lock();
        if state.unreadable_from.is_some_and(|from| offset + bytes.len() as u64 > from) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let from = state.inodes[self.inode].cache.get(offset as usize..).unwrap_or_default();
        let len = from.len().min(bytes.len());
        bytes[..len].copy_from_slice(&from[..len]);
        state.bytes_read += len as u64;
        Ok(len)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let step = state.step();
        let written = match step {
            Step::Runs => bytes.len(),
            Step::Fails(_) if state.has_ended() => 0,
            Step::Fails(_) => bytes.len() * (state.operations % 5) / 4,
        };
        state.inodes[self.inode].write(&bytes[..written], offset as usize);
        if let Step::Fails(error) = step { Err(error) } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().inodes[self.inode].cache.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        if let Step::Fails(error) = state.step() {
            return Err(error);
        }
        let inode = &mut state.inodes[self.inode];
        if inode.cache.len() as u64 != len {
            inode.cache.resize(len as usize, 0);
            // The page at the end is written with the length.
            inode.dirty.insert(len as usize / PAGE);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let step = state.step();
        let has_ended = state.has_ended();
        let inode = &mut state.inodes[self.inode];
        match step {
            Step::Runs => {
                // Writes only dirty pages. The pages of a failed sync are not dirty.
                let len = inode.cache.len();
                inode.durable.resize(len, 0);
                for page in std::mem::take(&mut inode.dirty) {
                    let (start, end) = ((page * PAGE).min(len), (page * PAGE + PAGE).min(len));
                    inode.durable[start..end].copy_from_slice(&inode.cache[start..end]);
                }
                Ok(())
            }
            Step::Fails(error) => {
                if !has_ended {
                    inode.dirty.clear();
                }
                Err(error)
            }
        }
    }

    fn identity(&self) -> Option<(u64, u64)> {
        Some((0, self.inode as u64))
    }
}
