//! A simulated disk for the model test. A seed determines which data a crash leaves on the disk.
//!
//! A write goes to the page cache. A sync makes the written bytes durable. After a power loss, any
//! subset of the unsynced pages remains. One of the unsynced pages is torn. After a power loss, a
//! file that grew has any length up to the new length. A file name becomes durable when its folder
//! is synced. After a power loss, each name has a prefix of the changes to this name since the last
//! sync of the folder. If the name of a folder is lost, all names in the folder are lost. A killed
//! process loses no data of the page cache.
//!
//! A test can make an operation fail. A failed write writes any part of its bytes. A failed sync
//! leaves the pages in the cache but marks the pages as written: no later sync writes these pages,
//! as on Linux. A test can limit the capacity of a disk. A reservation that does not fit takes all
//! remaining space, as on ext4. A change of the file length frees the space after the end of the
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tamis_testing::Random;

use crate::persistence::disk::{Disk, DiskFile};

/// The page size in bytes. The size is small, so that a frame spans several pages.
const PAGE: usize = 32;

#[derive(Clone, Debug, Default)]
struct Inode {
    cache: Vec<u8>,
    durable: Vec<u8>,
    /// The pages of the cache that are not on the disk.
    dirty: BTreeSet<usize>,
    /// The disk space of the file, in bytes. If the file is longer than this number, the file has
    /// disk space for its length.
    allocated: usize,
}

#[derive(Clone, Debug, Default)]
struct DiskState {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// The changes of file names since the last sync of their folder.
    renamed: Vec<(PathBuf, Option<usize>)>,
    /// The folders inside the root folder of the disk.
    dirs: BTreeSet<PathBuf>,
    /// True if hard links fail.
    refuses_links: bool,
    /// True if the file system cannot reserve space.
    refuses_reservations: bool,
    /// The maximum bytes of all named files together. `None` means that the disk has no limit.
    capacity: Option<usize>,
    /// Counts operations that change the disk.
    operations: usize,
    /// The operation that fails, and its error.
    fault: Option<(usize, Fault)>,
    /// The operation at which the process or the machine stops. The operation at which the disk
    /// stops, and all operations after it, have no effect.
    ends_at: Option<usize>,
    /// The offset from which the bytes of files cannot be read.
    unreadable_from: Option<u64>,
    /// The number of bytes that were read.
    bytes_read: u64,
}

/// The error with which an operation fails.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Io = 5,
    Full = 28,
}

/// A simulated disk. All clones of a `SimDisk` share one disk.
#[derive(Clone, Debug, Default)]
pub(super) struct SimDisk(Arc<Mutex<DiskState>>);

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl DiskState {
    /// Counts an operation. Returns an error if the operation fails.
    fn step(&mut self) -> io::Result<()> {
        let now = self.operations;
        self.operations += 1;
        if self.has_ended() {
            return Err(io::Error::other("the process has ended"));
        }
        match self.fault {
            Some((at, fault)) if at == now => Err(io::Error::from_raw_os_error(fault as i32)),
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.ends_at.is_some_and(|at| self.operations > at)
    }

    /// Counts an operation. Returns the result of the operation, and whether the operation takes
    /// effect. An operation may take effect although the operation returns an error.
    fn uncertain_step(&mut self) -> (io::Result<()>, bool) {
        let result = self.step();
        let happens = result.is_ok() || self.operations.is_multiple_of(2);
        (result, happens && !self.has_ended())
    }

    /// Returns the disk space of all named files, in bytes.
    fn used_bytes(&self) -> usize {
        let named: BTreeSet<usize> = self.names.values().copied().collect();
        named.into_iter().map(|inode| self.inodes[inode].used_bytes()).sum()
    }

    /// Gives a file disk space up to an offset. If the disk has too little space, the file gets all
    /// remaining space.
    fn allocate(&mut self, inode: usize, end: usize) -> io::Result<()> {
        let used = self.inodes[inode].used_bytes();
        let left = self.capacity.map_or(usize::MAX, |all| all.saturating_sub(self.used_bytes()));
        self.inodes[inode].allocated = end.min(used.saturating_add(left)).max(used);
        if end > used.saturating_add(left) {
            return Err(io::Error::from_raw_os_error(Fault::Full as i32));
        }
        Ok(())
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        Ok(*self.names.get(path).ok_or(io::ErrorKind::NotFound)?)
    }

    /// Creates an inode and gives the inode a name.
    fn create(&mut self, path: &Path) -> usize {
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.name(path, Some(inode));
        inode
    }

    fn name(&mut self, path: &Path, inode: Option<usize>) {
        set_name(&mut self.names, path, inode);
        self.renamed.push((path.to_owned(), inode));
    }

    /// Loses a part of the unsynced data.
    fn lose_power(&mut self, random: &mut Random) {
        let renamed = std::mem::take(&mut self.renamed);
        let paths: BTreeSet<&PathBuf> = renamed.iter().map(|(path, _)| path).collect();
        let mut names = self.durable_names.clone();
        for path in paths {
            let changes: Vec<_> = renamed.iter().filter(|(its, _)| its == path).collect();
            if let Some(last) = random.below(changes.len() + 1).checked_sub(1) {
                set_name(&mut names, path, changes[last].1);
            }
        }
        let (dirs, lost): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.dirs).into_iter().partition(|dir| names.contains_key(dir));
        self.dirs = dirs;
        names.retain(|path, _| !path.parent().is_some_and(|dir| lost.contains(dir)));
        self.inodes.iter_mut().for_each(|inode| inode.lose_power(random));
        (self.names, self.durable_names) = (names.clone(), names);
    }
}

fn set_name(names: &mut BTreeMap<PathBuf, usize>, path: &Path, inode: Option<usize>) {
    match inode {
        Some(inode) => _ = names.insert(path.to_owned(), inode),
        None => _ = names.remove(path),
    }
}

impl SimDisk {
    /// Returns the number of operations that have changed the disk.
    pub fn operations(&self) -> usize {
        self.0.lock().operations
    }

    /// Makes an operation on the disk fail.
    pub fn fail_at(&self, operation: usize, fault: Fault) {
        self.0.lock().fault = Some((operation, fault));
    }

    /// Ends the process before an operation. The operation at which the disk stops, and all
    /// operations after it, have no effect.
    pub fn end_at(&self, operation: usize) {
        self.0.lock().ends_at = Some(operation);
    }

    /// Makes all bytes of files after an offset unreadable.
    pub fn fail_reads_from(&self, offset: u64) {
        self.0.lock().unreadable_from = Some(offset);
    }

    /// Returns the number of bytes that were read.
    pub fn bytes_read(&self) -> u64 {
        self.0.lock().bytes_read
    }

    /// Makes hard links fail after this call.
    pub fn refuse_links(&self) {
        self.0.lock().refuses_links = true;
    }

    /// Makes reservations of disk space fail after this call.
    pub fn refuse_reservations(&self) {
        self.0.lock().refuses_reservations = true;
    }

    /// Limits the remaining space on the disk, in bytes.
    pub fn limit_space(&self, left: usize) {
        let mut state = self.0.lock();
        state.capacity = Some(state.used_bytes() + left);
    }

    /// Returns the remaining space on the disk, in bytes.
    pub fn space_left(&self) -> usize {
        let state = self.0.lock();
        state.capacity.map_or(usize::MAX, |all| all.saturating_sub(state.used_bytes()))
    }

    /// Tests whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.0.lock().has_ended()
    }

    /// Frees the memory of all files.
    pub fn erase(&self) {
        *self.0.lock() = DiskState::default();
    }

    /// Returns the bytes of a file. Returns `None` if the file does not exist.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.0.lock();
        Some(state.inodes[*state.names.get(path)?].cache.clone())
    }

    /// Flips the lowest bit of a byte of a file.
    pub fn flip(&self, path: &Path, at: u64) {
        let byte = self.contents(path).expect("a file")[at as usize];
        self.open(path).and_then(|file| file.write_all_at(&[byte ^ 1], at)).expect("it is open");
    }

    /// Returns the disk in the state that a new process finds. If `power_loss` is `Some`, a part of
    /// the unsynced data is lost.
    pub fn after_crash(&self, power_loss: Option<&mut Random>) -> Self {
        let mut state = DiskState {
            operations: 0,
            fault: None,
            ends_at: None,
            unreadable_from: None,
            refuses_reservations: false,
            capacity: None,
            bytes_read: 0,
            ..self.0.lock().clone()
        };
        if let Some(random) = power_loss {
            state.lose_power(random);
        }
        Self(Arc::new(Mutex::new(state)))
    }
}

impl Inode {
    /// Returns the disk space of the file, in bytes.
    fn used_bytes(&self) -> usize {
        self.allocated.max(self.cache.len())
    }

    fn lose_power(&mut self, random: &mut Random) {
        let (short, long) = (self.durable.len(), self.cache.len());
        let len = if self.dirty.is_empty() {
            short
        } else {
            short.min(long) + random.below(short.abs_diff(long) + 1)
        };
        let cache = std::mem::take(&mut self.cache);
        let dirty = std::mem::take(&mut self.dirty);
        self.durable.resize(len, 0);
        let torn = random.below(dirty.len() + 1);
        for (i, &page) in dirty.iter().enumerate() {
            let start = (page * PAGE).min(len).min(long);
            let mut end = (page * PAGE + PAGE).min(len).min(long);
            if i == torn {
                end = start + random.below(end - start + 1);
            } else if random.one_in(2) {
                continue;
            }
            self.durable[start..end].copy_from_slice(&cache[start..end]);
        }
        self.cache = self.durable.clone();
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
    fn dir(&self) -> &Path {
        Path::new("/data")
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.step()?;
        Ok(Arc::new(SimFile { disk: self.clone(), inode: state.create(path) }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.0.lock().inode(path)?;
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let (result, happens) = state.uncertain_step();
        if happens {
            let inode = state.inode(from)?;
            state.name(from, None);
            state.name(to, Some(inode));
        }
        result
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        state.inode(path)?;
        state.name(path, None);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.create(path);
        state.dirs.insert(path.to_owned());
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        let (result, happens) = state.uncertain_step();
        if state.refuses_links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if happens {
            let inode = state.inode(from)?;
            if state.names.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.name(to, Some(inode));
        }
        result
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock();
        let here = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        let is_here = |path: &Path| path.parent() == Some(dir);
        let here = state.names.clone().into_iter().filter(|(path, _)| is_here(path));
        state.durable_names.retain(|path, _| !is_here(path));
        state.durable_names.extend(here);
        state.renamed.retain(|(path, _)| !is_here(path));
        Ok(())
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
        let result = state.step();
        if state.has_ended() {
            return result;
        }
        let end = offset as usize + bytes.len();
        let result = result.and_then(|()| state.allocate(self.inode, end));
        let written = match result {
            Ok(()) => bytes.len(),
            Err(_) => {
                let fits = state.inodes[self.inode].used_bytes().saturating_sub(offset as usize);
                fits.min(bytes.len() * (state.operations % 5) / 4)
            }
        };
        state.inodes[self.inode].write(&bytes[..written], offset as usize);
        result
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().inodes[self.inode].cache.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.step()?;
        let inode = &mut state.inodes[self.inode];
        inode.allocated = 0;
        if inode.cache.len() as u64 != len {
            inode.cache.resize(len as usize, 0);
            // The last page is written together with the length.
            inode.dirty.insert(len as usize / PAGE);
        }
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        state.step()?;
        if state.refuses_reservations {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let end = usize::try_from(offset.saturating_add(len)).unwrap_or(usize::MAX);
        state.allocate(self.inode, end)
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.0.lock();
        let result = state.step();
        if state.has_ended() {
            return result;
        }
        // A failed sync marks its pages as written, so no later sync writes these pages.
        let inode = &mut state.inodes[self.inode];
        let dirty = std::mem::take(&mut inode.dirty);
        if result.is_ok() {
            let len = inode.cache.len();
            inode.durable.resize(len, 0);
            for page in dirty {
                let (start, end) = ((page * PAGE).min(len), (page * PAGE + PAGE).min(len));
                inode.durable[start..end].copy_from_slice(&inode.cache[start..end]);
            }
        }
        result
    }

    fn is_at(&self, path: &Path) -> bool {
        self.disk.0.lock().names.get(path) == Some(&self.inode)
    }
}
