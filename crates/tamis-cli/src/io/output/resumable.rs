//! Outputs that a later run can resume after a kill.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom};
use std::path::Path;

use crate::exit::Failure;
use crate::io::attributes;
use crate::io::output::place::{folder, is_stdout, resolved, stdout_file};
use crate::io::output::position::OutputPosition;
use crate::io::output::{Output, Sink, check_writable, not_created, note_other_names};
use crate::io::standard;

impl Output {
    /// Opens `path` like [`open`](Self::open), but keeps the file if the program is killed. `mark`
    /// is the [`mark`](Self::mark) of an earlier run. If the file of the mark still exists,
    /// truncates the file to the mark and resumes the output. If the file of the mark does not
    /// exist, or if `mark` is `None`, the output starts empty.
    ///
    /// The returned boolean is true if the file is resumed.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open), and a message if another run writes to the file.
    pub fn open_resumable(
        path: Option<&Path>,
        mark: Option<&OutputPosition>,
    ) -> Result<(Self, bool), Failure> {
        match path.filter(|path| !is_stdout(path)) {
            None => Self::open_appended(mark),
            Some(path) => Self::open_partial(path, mark),
        }
    }

    /// Opens standard output. Standard output can be resumed if it is redirected to a file.
    fn open_appended(mark: Option<&OutputPosition>) -> Result<(Self, bool), Failure> {
        standard::check_output()?;
        let name = "standard output".to_string();
        let failure = |error: io::Error| Failure::io(&name, &error);
        if let Some(file) = stdout_file()
            && OutputPosition::of(&file).map_err(failure)?.is_some()
        {
            let is_resumed = resume(&file, mark).map_err(failure)?;
            return Ok((Self::new(name, Sink::Appended(file)), is_resumed));
        }
        Ok((Self::open(None)?, false))
    }

    /// Opens the unfinished file that will replace `path`.
    fn open_partial(path: &Path, mark: Option<&OutputPosition>) -> Result<(Self, bool), Failure> {
        let (name, target) = (path.display().to_string(), resolved(path));
        let failure = |error: io::Error| Failure::io(&name, &error);
        check_writable(&target).map_err(failure)?;
        let is_new = matches!(target.metadata(),
            Err(error) if error.kind() == io::ErrorKind::NotFound);
        if !is_new && !target.is_file() {
            return Ok((Self::open(Some(path))?, false));
        }
        let mut file_name = std::ffi::OsString::from(".");
        file_name.push(target.file_name().unwrap_or_default());
        file_name.push(".tamis-part");
        let partial = target.with_file_name(file_name);
        let earlier = OpenOptions::new().read(true).write(true).open(&partial).ok();
        let mut is_resumed = false;
        if let Some(file) = &earlier {
            // The lock lasts until the run ends, so that no other run removes or writes the file.
            lock_part(file, &name)?;
            is_resumed = resume(file, mark).map_err(failure)?;
        }
        let file = match earlier {
            Some(file) if is_resumed => file,
            // The lock of the earlier file lasts until the file is replaced.
            _locked => create_partial(&name, &partial, &target)?,
        };
        Ok((Self::new(name, Sink::Partial { file, partial, path: target }), is_resumed))
    }
}

/// Truncates the output of an earlier run to `mark`, and moves to the end of the output. Returns
/// false if `mark` is `None` or belongs to another file.
fn resume(mut file: &File, mark: Option<&OutputPosition>) -> io::Result<bool> {
    let Some(mark) = mark else { return Ok(false) };
    let is_resumed = OutputPosition::of(file)?.is_some_and(|found| found.continues(mark));
    if is_resumed {
        file.set_len(mark.len_bytes)?;
        file.seek(SeekFrom::End(0))?;
    }
    Ok(is_resumed)
}

/// Creates an empty file at `partial`, which will replace `target`.
fn create_partial(name: &str, partial: &Path, target: &Path) -> Result<File, Failure> {
    let failure = |error: io::Error| Failure::io(name, &error);
    // A new file has another inode, so the marks of an abandoned run do not match the new file.
    match std::fs::remove_file(partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failure(error)),
        _ => {}
    }
    let file =
        File::create_new(partial).map_err(|error| not_created(name, folder(target), &error))?;
    lock_part(&file, name)?;
    if let Ok(existing) = target.metadata() {
        note_other_names(name, &existing);
        attributes::keep(target, &existing, &file).map_err(failure)?;
    }
    Ok(file)
}

/// Locks the unfinished output of a run with `--state`.
fn lock_part(file: &File, name: &str) -> Result<(), Failure> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::new(format!(
            "{name}: another run with a --state is writing to it; wait for its end, or name \
             another output"
        ))),
        // Some network file systems do not support locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
